# SPDX-License-Identifier: GPL-3.0-or-later
# Documents and pages, and the whole window over fake ranks.
find_package(Qt6 6.4 REQUIRED COMPONENTS Svg PrintSupport)

accrue_add_test(NAME ui_document SOURCES test_document.cpp LIBS accrue_ui_models LABELS ui TIMEOUT 60)
foreach(name form actions)
  accrue_add_test(NAME ui_${name} SOURCES test_${name}.cpp studio_fixture.h LIBS accrue_ui accrue_resources LABELS ui TIMEOUT 120)
endforeach()
foreach(name states golden_path window)
  accrue_add_test(NAME ui_${name} SOURCES test_${name}.cpp studio_fixture.h LIBS accrue_ui accrue_resources LABELS ui TIMEOUT 240)
endforeach()
accrue_add_test(NAME ui_cli_options SOURCES test_cli_options.cpp LIBS accrue_run Qt6::Gui LABELS ui TIMEOUT 240)
foreach(name form actions states golden_path window cli_options)
  if(TARGET accrue-fake-rank)
    add_dependencies(ui_${name} accrue-fake-rank)
  endif()
endforeach()
add_dependencies(ui_cli_options accrue)
