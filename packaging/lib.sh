# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by bootstrap, demo and check: messages, set-up, configure and build. Sourced, with the project as working directory.
export LANG=C.UTF-8 LC_ALL=C.UTF-8
build_dir=build/default

say() { printf '%s\n' "$*" >&2; }
# Announces a step with the seconds since the start, so that slow ones show.
step() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }

# fail WHAT [HOW-TO-FIX]: what went wrong, then the command or change that fixes it.
fail() {
  say ""
  say "accrue: $1"
  [ $# -lt 2 ] || say "  to fix: $2"
  exit 1
}

# Compiling an engine file takes up to 1.5 GB: run as many at once as cores and memory allow.
build_jobs() {
  local cores memory_kb by_memory
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kb / 1500000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

configure() {
  local werror=${ACCRUE_WERROR:-OFF}
  [ -z "${CI:-}" ] || werror=ON
  step "configuring $build_dir"
  # A build folder is tied to the path where it was configured; after a move it must be created again.
  local cached
  cached=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build_dir/CMakeCache.txt" 2>/dev/null || true)
  [ -z "$cached" ] || [ "$cached" = "$PWD" ] || rm -rf "$build_dir"
  cmake --preset default -DACCRUE_WERROR=$werror >&2 ||
    fail "CMake could not configure the build (its message is above)" "rm -rf $build_dir, then run this again"
}

# build [TARGET...]: builds everything if no target is named.
build() {
  local jobs
  jobs=$(build_jobs)
  step "building with $jobs jobs (the first build takes minutes, later ones seconds)"
  cmake --build --preset default -j "$jobs" ${1:+--target "$@"} >&2 ||
    fail "the build failed (the first error is above)" "cmake --build --preset default -j 1"
}
