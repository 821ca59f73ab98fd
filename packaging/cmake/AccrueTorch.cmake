# SPDX-License-Identifier: Apache-2.0
# Imported targets for LibTorch as its wheel lays it out (torch/lib beside nvidia/cu13/lib).
# The wheel's own find_package(Torch) looks for CUDA and, for a CUDA-language target, requires a language standard that CMake 3.25
# does not know. The engine needs only a few libraries and definitions, so they are stated here. Included by the build and, once installed, by AccrueConfig.
#
#   Accrue::torch_cpu   libtorch_cpu + libc10, headers, definitions
#   Accrue::torch_cuda  libtorch_cuda + libc10_cuda, only where the library is present
#
# In the build tree programs find it by the run path that CMake gives them (DT_RPATH, which also applies to the libraries that a program
# loads); installed programs find it by INSTALL_RPATH or CMAKE_INSTALL_RPATH_USE_LINK_PATH.
if(TARGET Accrue::torch_cpu)
  return()
endif()

set(_torch "${ACCRUE_LIBTORCH}/torch")
if(NOT EXISTS "${_torch}" AND EXISTS "${ACCRUE_LIBTORCH}/lib/libtorch_cpu.so")
  set(_torch "${ACCRUE_LIBTORCH}")
endif()
if(NOT EXISTS "${_torch}/lib/libtorch_cpu.so")
  message(FATAL_ERROR
    "LibTorch was not found in ${ACCRUE_LIBTORCH}. Run packaging/bootstrap, or pass -DACCRUE_LIBTORCH=DIR (the folder that holds torch/ and nvidia/),"
    " or -DACCRUE_ENGINE=OFF to build without it. Debian's libtorch-dev (1.13) is too old and is not looked for.")
endif()

file(STRINGS "${_torch}/include/torch/headeronly/version.h" _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
foreach(_part MAJOR MINOR PATCH)
  string(REGEX MATCH "TORCH_VERSION_${_part} ([0-9]+)" _ "${_lines}")
  set(_torch_${_part} ${CMAKE_MATCH_1})
endforeach()
set(ACCRUE_TORCH_VERSION ${_torch_MAJOR}.${_torch_MINOR}.${_torch_PATCH})
if(ACCRUE_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "LibTorch ${ACCRUE_TORCH_VERSION} in ${_torch} is too old: Accrue needs 2.11 or newer. Run packaging/bootstrap.")
endif()

function(_accrue_torch_library name file)
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${_torch}/lib/${file}" IMPORTED_NO_SONAME TRUE)
endfunction()

_accrue_torch_library(Accrue::c10_library libc10.so)
_accrue_torch_library(Accrue::torch_cpu_library libtorch_cpu.so)
add_library(Accrue::torch_cpu INTERFACE IMPORTED GLOBAL)
set_target_properties(Accrue::torch_cpu PROPERTIES
  INTERFACE_COMPILE_FEATURES cxx_std_20
  INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;AT_PER_OPERATOR_HEADERS"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_torch}/include;${_torch}/include/torch/csrc/api/include"
  INTERFACE_INCLUDE_DIRECTORIES "${_torch}/include;${_torch}/include/torch/csrc/api/include"
  INTERFACE_LINK_LIBRARIES "Accrue::torch_cpu_library;Accrue::c10_library"
  # libtorch_cpu finds libcudart and libcupti by a path relative to itself, so the linker need not find them.
  INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined;LINKER:--disable-new-dtags")

if(EXISTS "${_torch}/lib/libtorch_cuda.so")
  _accrue_torch_library(Accrue::torch_cuda_library libtorch_cuda.so)
  _accrue_torch_library(Accrue::c10_cuda_library libc10_cuda.so)
  add_library(Accrue::torch_cuda INTERFACE IMPORTED GLOBAL)
  # Our code uses no symbol of torch_cuda, which registers itself when loaded, so the linker must be forced to keep it.
  set_target_properties(Accrue::torch_cuda PROPERTIES
    INTERFACE_LINK_LIBRARIES "Accrue::torch_cpu"
    INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed;${_torch}/lib/libtorch_cuda.so;${_torch}/lib/libc10_cuda.so;LINKER:--pop-state")
endif()
