# `handoff run`: the drop-in libcudart.so.13 and libcuda.so.1 (one library, two names) in BUILD/cuda, made of the emulator's layers and
# grader/runtime, and its tests: unit tests of the layer, and run.programs, which builds grader/runtime/programs/*.cu with nvcc, runs each
# with `handoff run`, and compares what its head comment says. Without nvcc it is skipped.
find_path(HANDOFF_ZSTD_H zstd.h)
find_library(HANDOFF_ZSTD zstd)
if(NOT HANDOFF_ZSTD_H OR NOT HANDOFF_ZSTD)
  message(FATAL_ERROR "libzstd was not found. Install it: apt install libzstd-dev")
endif()
handoff_layer(runtime grader/runtime QUICK DEPENDS emulator LIBRARIES nlohmann_json::nlohmann_json ${HANDOFF_ZSTD} ${CMAKE_DL_LIBS})
target_include_directories(handoff_runtime SYSTEM PRIVATE ${HANDOFF_ZSTD_H})
target_link_libraries(handoff_cli PUBLIC handoff_runtime)

# A library that is loaded into other people's programs: position independent, and nothing in it can be replaced by theirs, which also
# keeps its calls as direct as a program's own. It costs no speed that handoff_bench --benchmark_filter='arithmetic|shared' shows.
foreach(layer ptx machine async check trace emulator runtime)
  set_target_properties(handoff_${layer} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(handoff_${layer} PRIVATE -fno-semantic-interposition)
endforeach()

# Instrumented code needs its runtime in the program that loads it, which a user's program has not.
if(NOT HANDOFF_SANITIZE AND NOT HANDOFF_FUZZ)
  add_library(handoff_cudart SHARED $<TARGET_OBJECTS:handoff_runtime>)
  target_link_libraries(handoff_cudart PRIVATE handoff_emulator ${HANDOFF_ZSTD} ${CMAKE_DL_LIBS})
  set(exports ${CMAKE_SOURCE_DIR}/grader/runtime/exports.map)
  set_target_properties(handoff_cudart PROPERTIES OUTPUT_NAME cudart SOVERSION 13 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/cuda
                                                  LINKER_LANGUAGE CXX LINK_DEPENDS ${exports})
  target_link_options(handoff_cudart PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
  add_custom_command(TARGET handoff_cudart POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink libcudart.so.13 ${CMAKE_BINARY_DIR}/cuda/libcuda.so.1)

  add_dependencies(handoff handoff_cudart)

  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    add_test(NAME run.programs COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/grader/runtime/programs/test.py --handoff $<TARGET_FILE:handoff>
                                       --out ${CMAKE_BINARY_DIR}/run-programs)
  else()
    add_test(NAME run.programs COMMAND sh -c "echo 'skipped: python3 was not found (apt install python3)'; exit 77")
  endif()
  set_tests_properties(run.programs PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 LABELS content)
endif()
