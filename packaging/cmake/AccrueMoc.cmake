# SPDX-License-Identifier: Apache-2.0
# Qt's meta-object compiler, without AUTOMOC: that gives moc all include paths, and reading Qt's headers for every class takes a hundred
# times as long as the class itself, which is all that moc needs.

# accrue_moc_file(output source): what moc makes of a header, or of a source that includes it. Empty where no class has Q_OBJECT.
function(accrue_moc_file output source)
  cmake_path(GET output PARENT_PATH folder)
  cmake_path(GET source FILENAME name)
  add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND Qt6::moc --no-notes -DQT_NO_KEYWORDS -o ${output} ${source} DEPENDS ${source} COMMENT "moc ${name}" VERBATIM)
endfunction()

# accrue_moc(target): for all headers of the target, once it has all its sources, with which what moc makes is compiled.
function(accrue_moc target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_moc)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.h$")
  set(all "// Made by CMake.\n")
  set(outputs "")
  foreach(header IN LISTS sources)
    cmake_path(ABSOLUTE_PATH header NORMALIZE)
    cmake_path(GET header STEM name)
    accrue_moc_file(${folder}/moc_${name}.cpp ${header})
    list(APPEND outputs ${folder}/moc_${name}.cpp)
    string(APPEND all "#include \"moc_${name}.cpp\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/mocs.cpp CONTENT "${all}" @ONLY)
  set_source_files_properties(${outputs} PROPERTIES HEADER_FILE_ONLY ON)  # mocs.cpp includes them
  target_sources(${target} PRIVATE ${folder}/mocs.cpp ${outputs})
endfunction()
