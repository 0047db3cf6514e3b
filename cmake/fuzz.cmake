# HANDOFF_FUZZ=ON (preset "fuzz"; clang only): every DIR/NAME_fuzz.cc below grader/ becomes the libFuzzer program LAYER_NAME_fuzz, LAYER being
# the last component of DIR (grader/emulator/ptx/parser_fuzz.cc: ptx_parser_fuzz). All layers are then instrumented for coverage, and
# AddressSanitizer and UndefinedBehaviorSanitizer are on. The target `fuzzers` builds all of them. The test fuzz.LAYER_NAME runs each
# over its kept corpus, DIR/corpus, without making new inputs.
if(NOT HANDOFF_FUZZ)
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "HANDOFF_FUZZ needs clang (libFuzzer): cmake --preset fuzz, or -DCMAKE_CXX_COMPILER=clang++-14; "
                      "apt install clang-14 libclang-rt-14-dev")
endif()

set(fuzz_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
target_compile_options(handoff_options INTERFACE -fsanitize=fuzzer-no-link ${fuzz_flags})
target_link_options(handoff_options INTERFACE ${fuzz_flags})

add_custom_target(fuzzers)
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/grader/*_fuzz.cc)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source PARENT_PATH dir)
  cmake_path(GET dir FILENAME layer)
  cmake_path(GET source STEM name)
  set(target ${layer}_${name})
  add_executable(${target} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${target} PRIVATE handoff_${layer})
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${target})
  string(REGEX REPLACE "_fuzz$" "" short ${target})
  add_test(NAME fuzz.${short} COMMAND ${target} -runs=0 -timeout=10 ${dir}/corpus)
  set_tests_properties(fuzz.${short} PROPERTIES TIMEOUT 300)
endforeach()
