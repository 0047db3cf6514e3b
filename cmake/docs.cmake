# The documentation site: target `docs` (BUILD/docs/html/index.html) and the test docs.doxygen_no_warnings, which builds it and fails on
# any warning of Doxygen, an undocumented public name of a header included.
find_program(HANDOFF_DOXYGEN doxygen)
find_program(HANDOFF_DOT dot)
find_package(Python3 QUIET COMPONENTS Interpreter)

if(HANDOFF_DOT)
  set(HANDOFF_HAVE_DOT YES)
else()
  set(HANDOFF_HAVE_DOT NO)
endif()
set(HANDOFF_DOCS_OUTPUT ${CMAKE_BINARY_DIR}/docs)
set(HANDOFF_DOCS_LOG ${CMAKE_BINARY_DIR}/docs/warnings.log)
set(HANDOFF_DOCS_INPUT "")
set(HANDOFF_DOCS_IMAGES "")
foreach(input README.md CONTRIBUTING.md docs chapters grader)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${input})
    string(APPEND HANDOFF_DOCS_INPUT " \"${CMAKE_SOURCE_DIR}/${input}\"")
  endif()
endforeach()
# Figures that pages show with ![…](file.svg).
file(GLOB figures CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.svg ${CMAKE_SOURCE_DIR}/chapters/*/figures/*.svg)
set(HANDOFF_DOCS_FIGURES "")
foreach(figure IN LISTS figures)
  cmake_path(GET figure PARENT_PATH folder)
  string(APPEND HANDOFF_DOCS_FIGURES " \"${figure}\"")
  string(APPEND HANDOFF_DOCS_IMAGES " \"${folder}\"")
endforeach()
configure_file(docs/Doxyfile.in ${CMAKE_BINARY_DIR}/Doxyfile @ONLY)

if(HANDOFF_DOXYGEN AND Python3_Interpreter_FOUND)
  set(run_doxygen Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tools/lint/doxygen.py ${HANDOFF_DOXYGEN} ${CMAKE_BINARY_DIR}/Doxyfile
                  ${HANDOFF_DOCS_OUTPUT})
  add_custom_target(docs COMMAND ${run_doxygen} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  add_test(NAME docs.doxygen_no_warnings COMMAND ${run_doxygen} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
else()
  add_custom_target(docs COMMAND ${CMAKE_COMMAND} -E echo "docs needs doxygen and python3: apt install doxygen graphviz python3"
                    COMMAND ${CMAKE_COMMAND} -E false)
  add_test(NAME docs.doxygen_no_warnings
           COMMAND sh -c "echo 'skipped: doxygen or python3 was not found (apt install doxygen graphviz python3)'; exit 77")
endif()
set_tests_properties(docs.doxygen_no_warnings PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS lint)
