# SPDX-License-Identifier: Apache-2.0
# The installed package, used by tests/consumer, a project of its own that is never part of this build. Installing and building it are tests,
# too, which the others wait for; without torchrun one of them is skipped and says why.
function(accrue_consumer_test step)
  cmake_parse_arguments(T "" "TIMEOUT;SETS_UP" "NEEDS" ${ARGN})
  add_test(NAME consumer_${step} COMMAND bash ${PROJECT_SOURCE_DIR}/tests/consumer/check_consumer.sh ${step} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(consumer_${step} PROPERTIES LABELS "ranks;thorough" TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77
    FIXTURES_REQUIRED "${T_NEEDS}" FIXTURES_SETUP "${T_SETS_UP}"
    ENVIRONMENT "LANG=C.UTF-8;LC_ALL=C.UTF-8;LIBTORCH=${ACCRUE_LIBTORCH};CXX=${CMAKE_CXX_COMPILER};LAUNCHER=${ACCRUE_CCACHE}")
endfunction()

accrue_consumer_test(install TIMEOUT 120 SETS_UP accrue_installed)
accrue_consumer_test(build TIMEOUT 600 NEEDS accrue_installed SETS_UP accrue_consumer)
set_tests_properties(consumer_install consumer_build PROPERTIES COST 60)  # others wait for them
accrue_consumer_test(messages TIMEOUT 300 NEEDS accrue_installed)
accrue_consumer_test(alone TIMEOUT 60 NEEDS accrue_consumer SETS_UP accrue_consumer_alone)
foreach(_starter environment torchrun launch plugin)
  accrue_consumer_test(${_starter} TIMEOUT 400 NEEDS accrue_consumer accrue_consumer_alone)
endforeach()
