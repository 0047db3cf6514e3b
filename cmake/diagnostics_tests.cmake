# diagnostics.examples: each example of the catalogue (docs/diagnostics/examples) is compiled and run on the emulator, on all schedules.
# Without nvcc it is skipped.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  add_test(NAME diagnostics.examples COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tools/diagnostics_test.py --handoff $<TARGET_FILE:handoff>)
else()
  add_test(NAME diagnostics.examples COMMAND sh -c "echo 'skipped: python3 was not found (apt install python3)'; exit 77")
endif()
set_tests_properties(diagnostics.examples PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1200 LABELS content)
