# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs, in two components: "runtime" (the programs, the files they read, libaccrue_engine.so) and, in addition,
# "development" (the CMake package, headers, libaccrue_run.a). Every rule depends on its target, so each preset installs what it built.
#
# LibTorch is not installed. The installed programs look for it in ACCRUE_INSTALL_LIBTORCH (by default where this build found it; set it empty
# for a package for other machines), in PREFIX/libtorch and in /opt/accrue/libtorch; so does the installed CMake package.
# libaccrue_engine.so does not search: it uses the LibTorch of the program that loads it.
include(CMakePackageConfigHelpers)

if(NOT DEFINED ACCRUE_INSTALL_LIBTORCH)
  set(ACCRUE_INSTALL_LIBTORCH "${ACCRUE_LIBTORCH}")
endif()
set(_accrue_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Accrue)
set(_accrue_bin_rpath "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(_accrue_torch_hints "")
set(_accrue_engine "")
if(ACCRUE_ENGINE)
  set(_accrue_engine engine)
  if(ACCRUE_INSTALL_LIBTORCH)
    list(APPEND _accrue_bin_rpath ${ACCRUE_INSTALL_LIBTORCH}/torch/lib)
    string(APPEND _accrue_torch_hints "\"${ACCRUE_INSTALL_LIBTORCH}\" ")
  endif()
  list(APPEND _accrue_bin_rpath "$ORIGIN/../libtorch/torch/lib" /opt/accrue/libtorch/torch/lib)
  string(APPEND _accrue_torch_hints /opt/accrue/libtorch)
endif()

foreach(_program accrue accrue-run accrue-rank accrue-tokenize)
  if(TARGET ${_program})
    install(TARGETS ${_program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  endif()
endforeach()
if(TARGET accrue-rank)
  set_target_properties(accrue-rank PROPERTIES INSTALL_RPATH "${_accrue_bin_rpath}")
endif()
if(TARGET accrue_cuda)
  set_target_properties(accrue_cuda PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS accrue_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()

# accrue_install_library(name target headers...): installs Accrue::name with its own targets file, and the folders of its public headers.
function(accrue_install_library name target)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT Accrue_${name}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  install(EXPORT Accrue_${name} NAMESPACE Accrue:: FILE Accrue_${name}Targets.cmake DESTINATION ${_accrue_config_dir}
    COMPONENT development)
  foreach(headers IN LISTS ARGN)
    install(DIRECTORY ${headers}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
  endforeach()
endfunction()
list(TRANSFORM accrue_run_rooms REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/engine/run/\\1/include" OUTPUT_VARIABLE _accrue_run_headers)
accrue_install_library(run accrue_run ${_accrue_run_headers})
if(TARGET accrue_engine)
  set_target_properties(accrue_engine PROPERTIES INSTALL_RPATH "$ORIGIN")
  accrue_install_library(engine accrue_engine ${PROJECT_SOURCE_DIR}/engine/include)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/cmake/AccrueTorch.cmake ${PROJECT_SOURCE_DIR}/packaging/cmake/AccrueFindLibTorch.cmake
    DESTINATION ${_accrue_config_dir} COMPONENT development)
endif()
find_package(fmt REQUIRED)  # for the version that consumers must match
string(REGEX MATCH "^[0-9]+" fmt_VERSION_MAJOR "${fmt_VERSION}")
math(EXPR _accrue_next_fmt "${fmt_VERSION_MAJOR} + 1")
configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/cmake/AccrueConfig.cmake.in ${PROJECT_BINARY_DIR}/AccrueConfig.cmake
  INSTALL_DESTINATION ${_accrue_config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AccrueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AccrueConfig.cmake ${PROJECT_BINARY_DIR}/AccrueConfigVersion.cmake
  DESTINATION ${_accrue_config_dir} COMPONENT development)

# Desktop integration of the studio.
if(TARGET accrue)
  set(_desktop ${PROJECT_SOURCE_DIR}/packaging/desktop)
  install(FILES ${_desktop}/org.accrue.Accrue.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications COMPONENT runtime)
  install(FILES ${_desktop}/org.accrue.Accrue.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo COMPONENT runtime)
  install(FILES ${_desktop}/org.accrue.Accrue.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages COMPONENT runtime)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/icons/org.accrue.Accrue.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps COMPONENT runtime)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/resources/presets)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/resources/presets DESTINATION ${CMAKE_INSTALL_DATADIR}/accrue COMPONENT runtime)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE-Apache-2.0.txt ${PROJECT_SOURCE_DIR}/LICENSE-GPL-3.0.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

# `cpack` in the build folder makes an archive of the same files.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME accrue)
set(CPACK_PACKAGE_VENDOR Accrue)
set(CPACK_STRIP_FILES ON)
include(CPack)
