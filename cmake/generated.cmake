# Documents that a program writes. docs.instructions_up_to_date compares docs/instructions.md with the table of instructions it comes from;
# `gen_instructions --write docs/instructions.md` in the build folder writes it anew.
add_executable(gen_instructions ${CMAKE_SOURCE_DIR}/tools/gen_instructions.cc)
target_link_libraries(gen_instructions PRIVATE handoff_emulator)
add_test(NAME docs.instructions_up_to_date COMMAND gen_instructions ${CMAKE_SOURCE_DIR}/docs/instructions.md)
set_tests_properties(docs.instructions_up_to_date PROPERTIES TIMEOUT 60)
