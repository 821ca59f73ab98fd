# SPDX-License-Identifier: Apache-2.0
# accrue_add_test(NAME n SOURCES f... LIBS l... LABELS l... TIMEOUT s [SERIAL] [ENVIRONMENT VAR=value...])
# One Qt Test executable, run by CTest; JUnit output lies in build/test-results/. Labels say which part of the tree a test guards:
# core (std-only), engine (LibTorch, one process), ranks (several processes), ui (offscreen), realx (a real X server);
# thorough: see accrue_thorough;
# sanitized: run under AddressSanitizer, LeakSanitizer and UBSan as well, and built by the target of that name: of core and engine what
# reads files, shares memory, counts windows, does arithmetic of its own, and calls them under the names of other systems; of the studio
# everything over fake ranks but what is thorough, a log-out and a demo over ranks that train, and a session on a real X server.
#
# accrue_add_tests(NAME program TESTS t... [SOURCES f...] LIBS l... LABELS l... TIMEOUT s [SERIAL] [PREFIX p] [BATCH n])
# One executable of several test classes, whose files t.cpp are compiled together, all or n at a time: what they share of LibTorch,
# three seconds a file, is compiled once. Each is still a test of its own, with a process of its own: `program t [function]`; a
# target t builds it. With a prefix, test_form.cpp is the test PREFIXform.
set(accrue_sanitized core_data core_events core_record core_spec core_tokenizers test_accelerate_config engine_models engine_memory engine_systems engine_accelerate engine_states test_rank_channel
  ranks_parallel ranks_training ui_model_curves ui_model_runs ui_drawing ui_panels ui_whole ui_cli_options ui_program realx_studio)
add_custom_target(sanitized)

# A test is compiled far more often than its own code is waited for: what it calls computes.
set(accrue_test_flags -O0 -g0)
if(ACCRUE_SANITIZE)
  set(accrue_test_flags -O1)  # as all code under sanitizers
endif()

# accrue_test_library_of(kind): accrue_test_core, which every test links, with main() and headers that most tests read; or accrue_test_torch,
# which those of the engine link as well, with half a million lines of LibTorch that each would otherwise read for ten seconds.
function(accrue_test_library_of kind)
  set(name accrue_test_${kind})
  if(TARGET ${name})
    return()
  endif()
  set(support ${PROJECT_SOURCE_DIR}/tests/support)
  set(headers <QTest> <QSignalSpy> <QTemporaryDir> <filesystem> <fstream> <functional> <random> <tl/expected.hpp>)
  if(kind STREQUAL torch)
    find_package(nlohmann_json 3.11 REQUIRED)
    add_library(${name} STATIC ${support}/signed_checkpoint.cpp ${support}/training_body.cpp)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${ACCRUE_BATCHES})
    target_link_libraries(${name} PRIVATE accrue_rank_harness accrue_engine nlohmann_json::nlohmann_json)
    list(APPEND headers <torch/nn/modules/linear.h> <torch/optim/sgd.h> <torch/optim/adamw.h> <ATen/ops/full.h>)
  else()
    add_library(${name} STATIC ${support}/test_program.cpp)
    # Programs with a main() of their own link it as well.
    add_library(accrue_test_places STATIC ${support}/places.cpp)
    target_link_libraries(accrue_test_places PRIVATE accrue_options Qt6::Core)
    target_include_directories(accrue_test_places PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(accrue_test_places PRIVATE QT_NO_KEYWORDS "ACCRUE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\""
      "ACCRUE_BIN_DIR=\"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\"")
  endif()
  target_link_libraries(${name} PRIVATE accrue_options Qt6::Test Qt6::Core)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE QT_NO_KEYWORDS)
  # An executable's code, as that of the tests that use the headers.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE ${accrue_test_flags})
  accrue_precompile(${name} ${headers})
endfunction()

# accrue_moc_test(target source...): NAME.moc for the source that includes it.
function(accrue_moc_test target)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} includes REGEX "^#include \".*\\.moc\"")
    if(includes)
      get_filename_component(name ${source} NAME_WE)
      get_filename_component(path ${source} ABSOLUTE)
      set(folder ${CMAKE_CURRENT_BINARY_DIR}/moc)
      accrue_moc_file(${folder}/${name}.moc ${path})
      target_sources(${target} PRIVATE ${folder}/${name}.moc)
      target_include_directories(${target} PRIVATE ${folder})
    endif()
  endforeach()
endfunction()

# accrue_compile_test(target libraries): as all code of tests is compiled. Where the libraries are the studio's, so is what was
# precompiled, and the optimisation with it: Qt's modules are defined as macros, which headers read.
function(accrue_compile_test target libraries)
  target_link_libraries(${target} PRIVATE accrue_options)
  target_compile_definitions(${target} PRIVATE QT_NO_KEYWORDS)
  accrue_test_library_of(core)
  set(kind core)
  if(libraries MATCHES "accrue_engine|Accrue::engine")
    set(kind torch)
    accrue_test_library_of(torch)
    target_link_libraries(${target} PRIVATE accrue_test_torch)
  endif()
  target_link_libraries(${target} PRIVATE accrue_test_places)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_link_libraries(${target} PRIVATE accrue_test_core)
  endif()
  if(libraries MATCHES "accrue_ui(;|$)")
    accrue_share_precompiled(${target} accrue_ui ${accrue_light_flags})
  elseif(libraries MATCHES "accrue_ui_models")
    accrue_share_precompiled(${target} accrue_ui_models)
  else()
    target_precompile_headers(${target} REUSE_FROM accrue_test_${kind})
    target_compile_options(${target} PRIVATE ${accrue_precompiled_flags} ${accrue_test_flags})
  endif()
endfunction()

# accrue_test_library(name libraries source...): what several programs of tests share, compiled once.
function(accrue_test_library name libraries)
  add_library(${name} STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE)
  target_link_libraries(${name} PUBLIC Qt6::Core Qt6::Test ${libraries})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  accrue_compile_test(${name} "${libraries}")
endfunction()

# accrue_test_program(target libraries source...)
function(accrue_test_program target libraries)
  add_executable(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  accrue_moc_test(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE Qt6::Core Qt6::Test ${libraries})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  accrue_compile_test(${target} "${libraries}")
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
  # Time limits end tests that hang. Code under sanitizers is several times slower, and so are two of four tests at once.
  if(ACCRUE_SANITIZE)
    math(EXPR timeout "3 * ${timeout}")
  endif()
  add_test(NAME ${name} COMMAND ${program} ${ARGN} -o ${PROJECT_BINARY_DIR}/test-results/${name}.xml,junitxml -o -,txt)
  # CTest gives tests four slots on two cores. The studio's tests are several processes, the others one.
  set(slots 1)
  if(ui IN_LIST labels OR realx IN_LIST labels)
    set(slots 2)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}" PROCESSORS ${slots}
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;LANG=C.UTF-8;LC_ALL=C.UTF-8;${environment}")
  if(serial)
    accrue_trains(${name})
  endif()
endfunction()

# accrue_trains(test...): what keeps both cores busy. Never two of them at once, and always one from the start on: the lock makes
# them a chain, which the other tests run beside. With more than two of the four slots one of them would wait for the others' end,
# since CTest gives a slot that falls free to whatever fits.
function(accrue_trains)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 2 COST 50 RESOURCE_LOCK training)
endfunction()

# accrue_waits(cost test...): tests that mostly wait, for time-outs and for processes that they ended, and take one slot even where
# the rest of their program trains. Above a cost of 50 they start before all that train, else beside them.
function(accrue_waits cost)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 1 COST ${cost} RESOURCE_LOCK "")
endfunction()

# accrue_thorough(test...): tests whose subject another, shorter test guards as well: every layout and collective, every preset
# trained, every scale of a screen, other tools' own programs. They have a preset of their own, so that the default one stays a matter of minutes; CI runs both.
function(accrue_thorough)
  foreach(test IN LISTS ARGN)
    get_property(labels TEST ${test} PROPERTY LABELS)
    # Under sanitizers a window's shorter tests go the same ways.
    if(ui IN_LIST labels OR realx IN_LIST labels)
      list(REMOVE_ITEM labels sanitized)
    endif()
    set_property(TEST ${test} PROPERTY LABELS ${labels} thorough)
  endforeach()
endfunction()

function(accrue_add_test)
  cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  accrue_test_program(${T_NAME} "${T_LIBS}" ${T_SOURCES})
  accrue_enter_test(${T_NAME} ${T_NAME} "${T_LABELS}" "${T_TIMEOUT}" ${T_SERIAL} "${T_ENVIRONMENT}")
endfunction()

function(accrue_add_tests)
  cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT;PREFIX;BATCH" "TESTS;SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT T_BATCH)
    set(T_BATCH 0)
  endif()
  list(TRANSFORM T_TESTS APPEND .cpp OUTPUT_VARIABLE files)
  accrue_test_program(${T_NAME} "${T_LIBS}" ${files} ${T_SOURCES})
  set_target_properties(${T_NAME} PROPERTIES UNITY_BUILD ${ACCRUE_BATCHES} UNITY_BUILD_BATCH_SIZE ${T_BATCH})
  target_compile_options(${T_NAME} PRIVATE ${accrue_unity_flags})
  foreach(file IN LISTS T_TESTS)
    set(name ${file})
    if(T_PREFIX)
      string(REGEX REPLACE "^test_" "${T_PREFIX}" name ${file})
    endif()
    add_custom_target(${name})
    add_dependencies(${name} ${T_NAME})
    accrue_enter_test(${name} ${T_NAME} "${T_LABELS}" "${T_TIMEOUT}" ${T_SERIAL} "" ${file})
  endforeach()
endfunction()
