# SPDX-License-Identifier: Apache-2.0
# accrue_add_test(NAME n SOURCES f... LIBS l... LABELS l... TIMEOUT s [SERIAL] [ENVIRONMENT VAR=value...])
# One Qt Test executable, run by CTest; JUnit output lies in build/test-results/. Labels say which part of the tree a test guards:
# core (std-only), engine (LibTorch, one process), ranks (several processes), ui (offscreen), realx (a real X server), slow;
# sanitized: run with the engine under AddressSanitizer and UBSan, and built by the target of that name: what reads files, shares
# memory, counts windows, does arithmetic of its own, and calls them under the names of other systems.
#
# accrue_add_tests(NAME program TESTS t... [SOURCES f...] LIBS l... LABELS l... TIMEOUT s [SERIAL])
# One executable of several test classes, whose files t.cpp are compiled together: what they share of LibTorch, three seconds a
# file, is compiled once. Each is still a test of its own, with a process of its own: `program t [function]`; a target t builds it.
set(accrue_sanitized engine_models engine_checkpoint engine_memory engine_systems engine_accelerate ranks_comm ranks_parallel
  ranks_training ranks_resume)
add_custom_target(sanitized)

# A test is compiled far more often than its own code is waited for.
set(accrue_test_optimisation -O1)

# accrue_test_support(variable libraries): the small library that every test links, with the precompiled headers of the
# tests in it. One for each set of Qt's modules, because those are defined as macros, which the headers read, and one
# with LibTorch's: half a million lines that a test would otherwise read for ten seconds.
function(accrue_test_support variable libraries)
  set(modules Core)
  set(headers <QtTest> <QTemporaryDir> <filesystem> <fstream> <functional> <random> <tl/expected.hpp>)
  set(torch "")
  if(libraries MATCHES "accrue_ui(;|$)")
    set(modules Core Gui Widgets PrintSupport Svg)
    list(APPEND headers <QtWidgets>)
  elseif(libraries MATCHES "accrue_ui_models|Qt6::Gui")
    set(modules Core Gui)
  endif()
  list(GET modules -1 last)
  string(TOLOWER "accrue_test_${last}" name)
  if(libraries MATCHES "accrue_engine|Accrue::engine")
    set(name accrue_test_torch)
    set(torch accrue_engine)
    list(APPEND headers <torch/nn/modules/linear.h> <torch/optim/sgd.h> <torch/optim/adamw.h> <ATen/ops/full.h>)
  endif()
  set(${variable} ${name} PARENT_SCOPE)
  if(TARGET ${name})
    return()
  endif()
  add_library(${name} STATIC ${PROJECT_SOURCE_DIR}/tests/support/places.cpp ${PROJECT_SOURCE_DIR}/tests/support/test_program.cpp)
  list(TRANSFORM modules PREPEND Qt6::)
  target_link_libraries(${name} PRIVATE accrue_options Qt6::Test ${modules} ${torch})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE QT_NO_KEYWORDS)
  if(NOT last STREQUAL Core)
    target_compile_definitions(${name} PUBLIC QT_NO_CAST_FROM_ASCII QT_NO_FOREACH)  # as the studio's libraries ask for
  endif()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/support/places.cpp PROPERTIES
    COMPILE_DEFINITIONS "ACCRUE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";ACCRUE_BIN_DIR=\"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\"")
  # An executable's code, as that of the tests that use the headers.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE ${accrue_test_optimisation})
  accrue_precompile(${name} ${headers})
endfunction()

# accrue_moc_test(target source...): NAME.moc for the source that includes it. moc is given no include paths: a test's own
# class is all it needs, and reading LibTorch's headers for it took longer than compiling many a test.
function(accrue_moc_test target)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} includes REGEX "^#include \".*\\.moc\"")
    if(includes)
      get_filename_component(name ${source} NAME_WE)
      get_filename_component(path ${source} ABSOLUTE)
      set(folder ${CMAKE_CURRENT_BINARY_DIR}/moc)
      add_custom_command(OUTPUT ${folder}/${name}.moc COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
        COMMAND Qt6::moc -o ${folder}/${name}.moc ${path} DEPENDS ${path} COMMENT "moc ${name}.cpp" VERBATIM)
      target_sources(${target} PRIVATE ${folder}/${name}.moc)
      target_include_directories(${target} PRIVATE ${folder})
    endif()
  endforeach()
endfunction()

# accrue_test_program(target libraries source...)
function(accrue_test_program target libraries)
  add_executable(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  accrue_moc_test(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE accrue_options Qt6::Core Qt6::Test ${libraries})
  target_compile_definitions(${target} PRIVATE QT_NO_KEYWORDS)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  accrue_test_support(support "${libraries}")
  target_link_libraries(${target} PRIVATE ${support})
  target_precompile_headers(${target} REUSE_FROM ${support})
  target_compile_options(${target} PRIVATE ${accrue_precompiled_flags} ${accrue_test_optimisation})
endfunction()

# accrue_enter_test(name program labels timeout serial environment argument...): one test of CTest.
function(accrue_enter_test name program labels timeout serial environment)
  if(program IN_LIST accrue_sanitized)
    list(APPEND labels sanitized)
    add_dependencies(sanitized ${program})
  endif()
  if(NOT timeout)
    set(timeout 60)
  endif()
  add_test(NAME ${name} COMMAND ${program} ${ARGN} -o ${PROJECT_BINARY_DIR}/test-results/${name}.xml,junitxml -o -,txt)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}" RUN_SERIAL ${serial} PROCESSORS 2
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;LANG=C.UTF-8;LC_ALL=C.UTF-8;${environment}")
endfunction()

# accrue_waits(test...): tests that mostly wait, for time-outs and for processes that they ended. CTest counts a test as two of
# its four jobs, on two cores; one that waits counts as one, and runs beside others even where the rest of its program does not.
# They start first, since the longest of them waits for a minute and a half.
function(accrue_waits)
  set_tests_properties(${ARGN} PROPERTIES RUN_SERIAL OFF PROCESSORS 1 COST 100)
endfunction()

function(accrue_add_test)
  cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  accrue_test_program(${T_NAME} "${T_LIBS}" ${T_SOURCES})
  accrue_enter_test(${T_NAME} ${T_NAME} "${T_LABELS}" "${T_TIMEOUT}" ${T_SERIAL} "${T_ENVIRONMENT}")
endfunction()

function(accrue_add_tests)
  cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT" "TESTS;SOURCES;LIBS;LABELS" ${ARGN})
  list(TRANSFORM T_TESTS APPEND .cpp OUTPUT_VARIABLE files)
  accrue_test_program(${T_NAME} "${T_LIBS}" ${files} ${T_SOURCES})
  set_target_properties(${T_NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_compile_options(${T_NAME} PRIVATE ${accrue_unity_flags})
  foreach(name IN LISTS T_TESTS)
    add_custom_target(${name})
    add_dependencies(${name} ${T_NAME})
    accrue_enter_test(${name} ${T_NAME} "${T_LABELS}" "${T_TIMEOUT}" ${T_SERIAL} "" ${name})
  endforeach()
endfunction()
