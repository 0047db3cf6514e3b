# Tests of the course's content, label `content`: each exercise's starter, solution, variants, bypasses and wrong submissions, the
# GPUs that it compiles for, the PTX kept for machines without nvcc, the figures, and the catalogue of diagnostics. They run `handoff`;
# without nvcc they are skipped. Label `mutants`, which `handoff test --mutants` asks for: the wrong submissions, and the table of
# them all in BUILD/content/mutants.txt.
find_package(Python3 QUIET COMPONENTS Interpreter)
set(HANDOFF_CONTENT_OUT ${CMAKE_BINARY_DIR}/content)

# handoff_content_test(NAME ARGS…): one ctest test content.NAME that runs tools/content_test.py.
function(handoff_content_test name)
  if(Python3_Interpreter_FOUND)
    add_test(NAME content.${name}
             COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tools/content_test.py --handoff $<TARGET_FILE:handoff> --out ${HANDOFF_CONTENT_OUT}
                     ${ARGN})
  else()
    add_test(NAME content.${name} COMMAND sh -c "echo 'skipped: python3 was not found (apt install python3)'; exit 77")
  endif()
  set_tests_properties(content.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS content)
endfunction()

set(mutant_tests "")
file(GLOB exercise_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/exercises/*/exercise.toml)
foreach(exercise_file IN LISTS exercise_files)
  cmake_path(GET exercise_file PARENT_PATH folder)
  cmake_path(GET folder FILENAME folder_name)
  string(SUBSTRING ${folder_name} 0 3 id)
  foreach(kind catalog starter solution variants bypasses mutants architectures)
    handoff_content_test(${id}.${kind} ${kind} ${id})
  endforeach()
  set_tests_properties(content.${id}.mutants PROPERTIES LABELS "content;mutants")
  list(APPEND mutant_tests content.${id}.mutants)
endforeach()
handoff_content_test(mutants summary)
set_tests_properties(content.mutants PROPERTIES LABELS "content;mutants" DEPENDS "${mutant_tests}")
handoff_content_test(resources resources)
handoff_content_test(kept_ptx kept_ptx)
handoff_content_test(no_nvcc no_nvcc)

# Every figure of the chapters is recorded anew and compared with the one that is kept. Those of kernels without kept PTX take nvcc.
add_test(NAME content.figures COMMAND handoff figure --check)
set_tests_properties(content.figures PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300 LABELS content)

handoff_lint(docs.diagnostics diagnostics.py)
