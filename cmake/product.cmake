# The command line program, with every exercise's harness linked in; its tests; the benchmark; one test NNx.grade for each exercise.
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/grader/cli/*.cc)
set(cli_tests ${cli_sources})
list(FILTER cli_sources EXCLUDE REGEX "(_test|/main)\\.cc$")
list(FILTER cli_tests INCLUDE REGEX "_test\\.cc$")
file(GLOB grade_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/exercises/*/grade.cc)

add_library(handoff_cli STATIC ${cli_sources})
target_link_libraries(handoff_cli PUBLIC handoff_report CLI11::CLI11)
handoff_compile_quickly(handoff_cli)
include(cmake/conformance.cmake)
include(cmake/timing.cmake)

add_executable(handoff ${CMAKE_SOURCE_DIR}/grader/cli/main.cc ${grade_sources})
target_compile_definitions(handoff PRIVATE HANDOFF_VERSION="${PROJECT_VERSION}")
target_link_libraries(handoff PRIVATE handoff_cli)
handoff_compile_quickly(handoff)

if(cli_tests)
  handoff_test_program(cli handoff_cli ${cli_tests})
endif()

# `ctest -R '^07a'` grades exercise 07a. A plain `ctest` skips these tests, because starters fail by design: cmake/grade_test.sh.
file(GLOB exercise_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/exercises/*/exercise.toml)
foreach(exercise_file IN LISTS exercise_files)
  cmake_path(GET exercise_file PARENT_PATH folder)
  cmake_path(GET folder FILENAME folder_name)
  string(SUBSTRING ${folder_name} 0 3 id)
  add_test(NAME ${id}.grade COMMAND ${CMAKE_SOURCE_DIR}/cmake/grade_test.sh $<TARGET_FILE:handoff> check ${id})
  set_tests_properties(${id}.grade PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300 LABELS grade)
endforeach()

if(HANDOFF_BENCH)
  file(GLOB bench_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/grader/bench/*.cc)
  if(bench_sources)
    add_executable(handoff_bench EXCLUDE_FROM_ALL ${bench_sources})
    target_link_libraries(handoff_bench PRIVATE handoff_device benchmark::benchmark)

    # The same program with every call of an observer compiled out: what the calls cost where nobody watches is the difference of the
    # two (tools/hooks_cost.py). The flags of the arithmetic loops are properties of their files and hold here too.
    set(bare_sources "")
    foreach(folder emulator/ptx emulator/machine emulator/async emulator/check emulator/trace emulator device)
      file(GLOB folder_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/grader/${folder}/*.cc)
      list(APPEND bare_sources ${folder_sources})
    endforeach()
    list(FILTER bare_sources EXCLUDE REGEX "(_test|_fuzz)\\.cc$")
    add_library(handoff_bare STATIC EXCLUDE_FROM_ALL ${bare_sources})
    target_compile_definitions(handoff_bare PUBLIC HANDOFF_NO_HOOKS)
    target_link_libraries(handoff_bare PUBLIC handoff_options fmt::fmt ${CMAKE_DL_LIBS} Threads::Threads)
    add_executable(handoff_bench_bare EXCLUDE_FROM_ALL ${bench_sources})
    target_link_libraries(handoff_bench_bare PRIVATE handoff_bare benchmark::benchmark)
  endif()
endif()
