# The calibration of the timing model: grader/timing/*.{h,cc} runs the probes, grader/timing/kernels/*.cu. The test timing.agrees
# measures the emulator with its Hopper set of constants and compares each line with what a GPU measured, the last
# docs/results/timing-*.json. Without nvcc it is skipped; where nothing is recorded, too.
handoff_layer(timing grader/timing QUICK DEPENDS harness)
target_link_libraries(handoff_cli PUBLIC handoff_timing)

add_test(NAME timing.agrees COMMAND handoff timing --model hopper --compare ${CMAKE_SOURCE_DIR}/docs/results)
set_tests_properties(timing.agrees PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS content)
