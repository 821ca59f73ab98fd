# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays down. Every rule stands on the target it installs, so each preset installs what it built. LibTorch is not
# installed: the installed programs look for it where this build found it, then in /opt/accrue/libtorch.
include(CMakePackageConfigHelpers)

set(_accrue_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Accrue)
set(_accrue_lib_rpath "$ORIGIN")
set(_accrue_bin_rpath "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(ACCRUE_ENGINE)
  list(APPEND _accrue_lib_rpath ${ACCRUE_LIBTORCH}/torch/lib /opt/accrue/libtorch/torch/lib)
  list(APPEND _accrue_bin_rpath ${ACCRUE_LIBTORCH}/torch/lib /opt/accrue/libtorch/torch/lib)
endif()

foreach(_program accrue accrue-run accrue-rank)
  if(TARGET ${_program})
    install(TARGETS ${_program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(TARGET accrue-rank)
  set_target_properties(accrue-rank PROPERTIES INSTALL_RPATH "${_accrue_bin_rpath}")
endif()
if(TARGET accrue_cuda)
  set_target_properties(accrue_cuda PROPERTIES INSTALL_RPATH "${_accrue_lib_rpath}")
  install(TARGETS accrue_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# The libraries: Accrue::run and Accrue::engine. accrue_options is exported because a static library names its private links.
set_target_properties(accrue_run PROPERTIES EXPORT_NAME run)
install(TARGETS accrue_run accrue_options EXPORT AccrueTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/engine/run/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET accrue_engine)
  set_target_properties(accrue_engine PROPERTIES EXPORT_NAME engine INSTALL_RPATH "${_accrue_lib_rpath}")
  install(TARGETS accrue_engine EXPORT AccrueTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/engine/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/cmake/AccrueTorch.cmake DESTINATION ${_accrue_config_dir})
endif()
install(EXPORT AccrueTargets NAMESPACE Accrue:: DESTINATION ${_accrue_config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/cmake/AccrueConfig.cmake.in ${PROJECT_BINARY_DIR}/AccrueConfig.cmake
  INSTALL_DESTINATION ${_accrue_config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AccrueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AccrueConfig.cmake ${PROJECT_BINARY_DIR}/AccrueConfigVersion.cmake DESTINATION ${_accrue_config_dir})

# The desktop's view of the studio.
if(TARGET accrue)
  set(_desktop ${PROJECT_SOURCE_DIR}/packaging/desktop)
  install(FILES ${_desktop}/org.accrue.Accrue.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES ${_desktop}/org.accrue.Accrue.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo)
  install(FILES ${_desktop}/org.accrue.Accrue.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/icons/org.accrue.Accrue.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/resources/presets)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/resources/presets DESTINATION ${CMAKE_INSTALL_DATADIR}/accrue)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE-Apache-2.0.txt ${PROJECT_SOURCE_DIR}/LICENSE-GPL-3.0.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `cpack` in the build folder packs the same as an archive.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME accrue)
set(CPACK_PACKAGE_VENDOR Accrue)
set(CPACK_STRIP_FILES ON)
include(CPack)
