# Tests of the source text itself: lint.clang_format, lint.clang_tidy, lint.includes, lint.docs. Each is a script under tools/lint/ that
# can be run by hand; exit status 77 means that the tool is not installed, and ctest reports the test as skipped.
find_package(Python3 QUIET COMPONENTS Interpreter)

# handoff_lint(NAME SCRIPT ARGS…): one ctest test NAME that runs tools/lint/SCRIPT at the project's root.
function(handoff_lint name script)
  if(Python3_Interpreter_FOUND)
    add_test(NAME ${name} COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tools/lint/${script} ${ARGN}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  else()
    add_test(NAME ${name} COMMAND sh -c "echo 'skipped: python3 was not found (apt install python3)'; exit 77")
  endif()
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300 LABELS lint)
endfunction()

handoff_lint(lint.includes includes.py)
handoff_lint(lint.docs links.py)
handoff_lint(lint.clang_format clang_format.py)
handoff_lint(lint.clang_tidy clang_tidy.py --build ${CMAKE_BINARY_DIR})
# It starts one clang-tidy a core; the first run reads every file, later ones only what changed.
set_tests_properties(lint.clang_tidy PROPERTIES TIMEOUT 1200 RUN_SERIAL ON)
