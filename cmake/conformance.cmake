# The conformance suite (docs/conformance.md): the runner, grader/conformance/*.{h,cc}, and its cases,
# grader/conformance/FAMILY/NAME.cu and the lines of grader/conformance/encode/cases.txt. The test conformance.agrees runs every case on
# the emulator: it must compile, draw no error from the checker that its head does not name, give the same answer on two schedules, and
# the answer that a GPU gave where docs/results/conformance-*.json has one. Without nvcc it is skipped; where nothing is recorded, too,
# after the cases have run.
handoff_layer(conformance grader/conformance QUICK DEPENDS harness)
target_link_libraries(handoff_cli PUBLIC handoff_conformance)

add_test(NAME conformance.agrees COMMAND handoff conformance --compare ${CMAKE_SOURCE_DIR}/docs/results)
set_tests_properties(conformance.agrees PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1200 LABELS content)
