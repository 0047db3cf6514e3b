include(GoogleTest)

# Compiles TARGET quickly rather than for speed: a third of the time of -O3, for code that nobody waits for.
function(handoff_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# handoff_test_program(NAME LIBRARY FILES…): the test program NAME_test. Each test of it is a ctest test named NAME.Suite.Test; in the
# sanitizers' build, where a process takes longer to begin than most tests to run, NAME.shard_1 and NAME.shard_2 run them all.
function(handoff_test_program name library)
  add_executable(${name}_test ${ARGN})
  target_link_libraries(${name}_test PRIVATE ${library} GTest::gtest GTest::gmock GTest::gtest_main)
  # What is tested is in the library: it is that which must be fast, or watched by the sanitizers. The tests themselves compile in half the
  # time without optimisation, without instrumentation, and without reading GoogleTest's headers again for each file.
  handoff_compile_quickly(${name}_test)
  target_compile_options(${name}_test PRIVATE $<$<BOOL:${HANDOFF_SANITIZE}>:-O0>)
  set_target_properties(${name}_test PROPERTIES HANDOFF_TESTS ON)
  target_precompile_headers(${name}_test PRIVATE <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
  if(HANDOFF_SANITIZE)
    foreach(shard 0 1)
      math(EXPR number "${shard} + 1")
      add_test(NAME ${name}.shard_${number} COMMAND ${name}_test --gtest_brief=1)
      set_tests_properties(${name}.shard_${number} PROPERTIES TIMEOUT 1200
        ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  else()
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# handoff_layer(NAME DIR [QUICK] [DEPENDS layers…] [LIBRARIES libs…]): a static library handoff_NAME from DIR/*.cc and, where there are
# any, the test program NAME_test from DIR/*_test.cc. QUICK: compiled quickly.
function(handoff_layer name dir)
  cmake_parse_arguments(ARG "QUICK" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|_bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ARG_DEPENDS PREPEND handoff_)
  if(sources)
    add_library(handoff_${name} STATIC ${sources})
    target_link_libraries(handoff_${name} PUBLIC handoff_options ${ARG_DEPENDS} ${ARG_LIBRARIES})
    if(ARG_QUICK)
      handoff_compile_quickly(handoff_${name})
    endif()
  else()
    add_library(handoff_${name} INTERFACE)
    target_link_libraries(handoff_${name} INTERFACE handoff_options ${ARG_DEPENDS} ${ARG_LIBRARIES})
  endif()
  if(tests)
    handoff_test_program(${name} handoff_${name} ${tests})
  endif()
endfunction()
