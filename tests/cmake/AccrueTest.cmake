# SPDX-License-Identifier: Apache-2.0
# accrue_add_test(NAME n SOURCES f... LIBS l... LABELS l... TIMEOUT s [SERIAL] [ENVIRONMENT VAR=value...])
# One Qt Test executable per file, run by CTest; JUnit output lies in build/test-results/. Labels say which part of the tree a test guards:
# core (std-only), engine (LibTorch, one process), ranks (several processes), ui (offscreen), realx (a real X server), slow;
# sanitized: small enough to run with the engine under AddressSanitizer and UBSan, and all built by the target of that name.
set(accrue_sanitized_tests test_checkpoint test_data_parallel test_data_source test_gpt_fused test_grad_arena test_llm_accumulation
  test_accelerate_accumulation test_models test_optimizers test_resume_damage test_shared_memory test_tensor_archive test_tensor_slice
  test_toy_runs test_window_executor)
add_custom_target(sanitized)

# A test is compiled far more often than its own code is waited for.
set(accrue_test_optimisation -O1)

# accrue_test_support(variable libraries): the small library that every test links, with the precompiled headers of the
# tests in it. One for each set of Qt's modules, because those are defined as macros, which the headers read, and one
# with LibTorch's: half a million lines that a test would otherwise read for ten seconds.
function(accrue_test_support variable libraries)
  set(modules Core)
  set(headers <QTest> <QSignalSpy> <QTemporaryDir>)
  set(torch "")
  if(libraries MATCHES "accrue_ui(;|$)")
    set(modules Core Gui Widgets PrintSupport Svg)
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
  add_library(${name} STATIC ${PROJECT_SOURCE_DIR}/tests/support/places.cpp)
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

function(accrue_add_test)
  cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  accrue_moc_test(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE accrue_options Qt6::Core Qt6::Test ${T_LIBS})
  target_compile_definitions(${T_NAME} PRIVATE QT_NO_KEYWORDS)
  target_include_directories(${T_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  accrue_test_support(support "${T_LIBS}")
  target_link_libraries(${T_NAME} PRIVATE ${support})
  target_precompile_headers(${T_NAME} REUSE_FROM ${support})
  target_compile_options(${T_NAME} PRIVATE ${accrue_precompiled_flags} ${accrue_test_optimisation})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  if(T_NAME IN_LIST accrue_sanitized_tests)
    list(APPEND T_LABELS sanitized)
    add_dependencies(sanitized ${T_NAME})
  endif()
  add_test(NAME ${T_NAME}
    COMMAND ${T_NAME} -o ${PROJECT_BINARY_DIR}/test-results/${T_NAME}.xml,junitxml -o -,txt)
  set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}"
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;LANG=C.UTF-8;LC_ALL=C.UTF-8;${T_ENVIRONMENT}")
  if(T_SERIAL)
    set_tests_properties(${T_NAME} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
