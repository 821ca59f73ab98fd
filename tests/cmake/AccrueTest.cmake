# SPDX-License-Identifier: Apache-2.0
# accrue_add_test(NAME n SOURCES f... LIBS l... LABELS l... TIMEOUT s [SERIAL] [ENVIRONMENT VAR=value...])
# One Qt Test executable per file, run by CTest; JUnit output lies in build/test-results/. Labels say which part of the tree a test guards:
# core (std-only), engine (LibTorch, one process), ranks (several processes), ui (offscreen), realx (a real X server), slow.

function(accrue_add_test)
  cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  set_target_properties(${T_NAME} PROPERTIES AUTOMOC ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${T_NAME} PRIVATE accrue_options Qt6::Core Qt6::Test ${T_LIBS})
  target_compile_definitions(${T_NAME} PRIVATE QT_NO_KEYWORDS ACCRUE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ACCRUE_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  target_include_directories(${T_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # One precompiled <QtTest> for the tests of a folder that link the same: the first makes it, the others use it.
  get_property(maker DIRECTORY PROPERTY "accrue_qttest_${T_LIBS}")
  if(maker)
    target_precompile_headers(${T_NAME} REUSE_FROM ${maker})
    target_compile_options(${T_NAME} PRIVATE ${accrue_precompiled_flags})
  else()
    set_property(DIRECTORY PROPERTY "accrue_qttest_${T_LIBS}" ${T_NAME})
    accrue_precompile(${T_NAME} <QtTest>)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  add_test(NAME ${T_NAME}
    COMMAND ${T_NAME} -o ${PROJECT_BINARY_DIR}/test-results/${T_NAME}.xml,junitxml -o -,txt)
  set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}"
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;LANG=C.UTF-8;LC_ALL=C.UTF-8;${T_ENVIRONMENT}")
  if(T_SERIAL)
    set_tests_properties(${T_NAME} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
