# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers, compiler cache and linker for our own targets: link accrue_options privately.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Accrue needs g++ 12 or newer, found ${CMAKE_CXX_COMPILER_VERSION}. On Debian 12: apt-get install g++")
endif()

find_program(ACCRUE_CCACHE ccache)
if(ACCRUE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the project are hashed as relative ones, so that a second clone reuses the first one's cache; ccache
  # requires this sloppiness to cache anything that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=locale,pch_defines,time_macros,include_file_mtime,include_file_ctime ${ACCRUE_CCACHE})
endif()
find_program(ACCRUE_MOLD mold)
if(ACCRUE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# -g1 keeps line numbers for backtraces at a third of the object size that -g needs with LibTorch's templates.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

add_library(accrue_options INTERFACE)
target_compile_options(accrue_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(ACCRUE_WERROR)
  target_compile_options(accrue_options INTERFACE -Werror)
endif()
if(ACCRUE_SANITIZE)
  # A finding ends the program, so that its test fails. More than -O1 takes longer to compile and hides stack frames. With what
  # sanitizers add to LibTorch's default arguments g++ 12 takes initialised ones for uninitialised.
  target_compile_options(accrue_options INTERFACE -O1 -fsanitize=${ACCRUE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)
  target_link_options(accrue_options INTERFACE -fsanitize=${ACCRUE_SANITIZE})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ collects garbage from the first 100 MB on. A source here needs 0.5 to 1 GB, and ends before collecting pays off.
  target_compile_options(accrue_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()
find_package(Threads REQUIRED)

# What decides, waits for people and files, or calls LibTorch, and computes little itself: -O1 takes a fifth less time to compile than -O2.
set(accrue_light_flags "$<$<CONFIG:RelWithDebInfo>:-O1>")

# Sources that are compiled together are no headers, whatever g++ thinks of their unnamed namespaces.
set(accrue_unity_flags -Wno-subobject-linkage)

# The first lets ccache see what a source includes. The others silence warnings that g++ 12 gives about the standard
# library's strings, because it does not treat precompiled headers as system headers.
set(accrue_precompiled_flags -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow
  -Wno-stringop-overread -Wno-restrict)
# accrue_precompile(target header...): third-party headers that most of a target's sources include, parsed once.
function(accrue_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE ${accrue_precompiled_flags})
endfunction()
# accrue_share_precompiled(target library option...): the headers that a library of ours precompiled. g++ takes them only where code
# is made alike: programs are compiled as libraries are, and with those options of the library that define macros. Both must be compiled
# with the same optimisation, which g++ does not check: version 12 ends in a segmentation fault where they are not.
function(accrue_share_precompiled target library)
  target_precompile_headers(${target} REUSE_FROM ${library})
  set(flags ${accrue_precompiled_flags} ${ARGN})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    list(APPEND flags -fPIC)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
endfunction()
