#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The installed package as somebody else's project meets it. Each step is a test of its own; the first two set up what the others use.
#   check_consumer.sh STEP SOURCE BUILD      STEP: install, build, messages, alone, environment, torchrun, launch, plugin
# From the environment: LIBTORCH (where the build found it), CXX, LAUNCHER (a compiler cache), and ACCRUE_TORCHRUN, a torchrun to be used.
set -euo pipefail
step=$1 source=$2 build=$3
work=$build/tests/consumer prefix=$build/tests/consumer/moved
unset ACCRUE_LIBTORCH CMAKE_PREFIX_PATH Torch_DIR RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export OMP_NUM_THREADS=1
. "$source/tests/support/find_torchrun.sh"

say() { printf '%s\n' "$*"; }
fail() {
  say "FAILED: $1"
  [ $# -lt 2 ] || say "$2"
  exit 1
}

# configure FOLDER OPTION...: the consumer's own CMake run; everything it says goes to FOLDER.log.
configure() {
  local folder=$1
  shift
  cmake -S "$source/tests/consumer" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$CXX" \
    ${LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER="$LAUNCHER"} -DCMAKE_PREFIX_PATH="$prefix" "$@" >"$folder.log" 2>&1
}

# refused NAME WORDS OPTION...: configuring fails and says WORDS (CMake breaks lines where it likes).
refused() {
  local name=$1 words=$2
  shift 2
  rm -rf "$work/refused"
  ! configure "$work/refused" "$@" || fail "$name: the package was found"
  tr -s '[:space:]' ' ' <"$work/refused.log" | grep -qF -- "$words" || fail "$name: \"$words\" is not said" "$(cat "$work/refused.log")"
  say "refused as it should be: $name"
}

# found NAME WORDS OPTION...: configuring succeeds and says WORDS.
found() {
  local name=$1 words=$2
  shift 2
  rm -rf "$work/found"
  configure "$work/found" "$@" && grep -qF -- "$words" "$work/found.log" || fail "$name" "$(cat "$work/found.log")"
  say "found: $name"
}

run_path() { readelf -d "$1" | sed -n 's/.*(R[UN]*PATH).*\[\(.*\)\]/\1/p' | sed 's/:*$//'; }

step_install() {
  rm -rf "$work"
  mkdir -p "$work"
  cmake --install "$build" --prefix "$work/installed" >"$work/install.log" || fail "cmake --install" "$(cat "$work/install.log")"
  mv "$work/installed" "$prefix"  # what names its first place is found out
  local lib
  lib=$(dirname "$(find "$prefix" -name libaccrue_engine.so)")
  [ "$(run_path "$lib/libaccrue_engine.so")" = '$ORIGIN' ] || fail "libaccrue_engine.so looks in $(run_path "$lib/libaccrue_engine.so")"
  # The one path that is kept is a hint: where LibTorch was.
  ! find "$prefix" -name '*.cmake' -o -name '*.h' | xargs grep -nF -e "$source/" -e "$build/" -e "$work/installed" | grep -vF "\"$LIBTORCH\"" ||
    fail "a path of the build is installed (above)"
  [ -z "$(find "$prefix/bin" -type f ! -name 'accrue' ! -name 'accrue-r*' ! -name 'accrue-tokenize')" ] || fail "something is installed in bin that is no program of Accrue's"
  "$prefix/bin/accrue-run" --version >/dev/null && "$prefix/bin/accrue-rank" --probe >/dev/null || fail "the installed programs do not start"
}

step_build() {
  configure "$work/project" -DCONSUMER_PAGE="$source/resources/manual/library.md" -DCMAKE_INSTALL_PREFIX="$work/theirs" -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON ||
    fail "the package was not found where LibTorch is where the build had it" "$(cat "$work/project.log")"
  cmake --build "$work/project" >"$work/project.build.log" 2>&1 || fail "the consumer does not build" "$(cat "$work/project.build.log")"
  "$work/project/letters" | grep -qF 'bbbBSZL bbbBSZL bb|' || fail "letters says something else" "$("$work/project/letters")"
  "$work/project/sample" | grep -qE '^rank 0: slope [23]\.' || fail "the manual's sample says something else" "$("$work/project/sample")"
  ! cmake --build "$work/project" --target dropped_result >"$work/dropped.log" 2>&1 || fail "a result can be dropped unnoticed"
  [ "$(grep -c 'error:' "$work/dropped.log")" = 1 ] && grep -qF -- '-Werror=unused-result' "$work/dropped.log" ||
    fail "dropped_result.cpp fails for another reason" "$(cat "$work/dropped.log")"
  cmake --install "$work/project" >/dev/null
  "$work/theirs/bin/train" | grep -q '^rank 0 of 1 ' || fail "the consumer's own installed program does not start"
}

step_messages() {
  refused "LibTorch that is not there" "Looked at: /nowhere: no torch/lib/libtorch_cpu.so" -DACCRUE_LIBTORCH=/nowhere
  refused "and what to do" "pass -DACCRUE_LIBTORCH=DIR" -DACCRUE_LIBTORCH=/nowhere
  refused "another version" 'compatible with requested version "99"' -DCONSUMER_VERSION=99
  refused "a component that is none" 'no component "studio" here; it has: run engine' -DCONSUMER_ENGINE=OFF -DCONSUMER_COMPONENTS="run;studio"
  local old=$work/old/torch
  mkdir -p "$old/lib" "$old/include/torch/headeronly"
  touch "$old/lib/libtorch_cpu.so"
  printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' 'MINOR 5' 'PATCH 1' >"$old/include/torch/headeronly/version.h"
  refused "another LibTorch" "$work/old: LibTorch 2.5.1" -DACCRUE_LIBTORCH="$work/old"
  local dir
  for dir in "$LIBTORCH" "$LIBTORCH/torch" "$LIBTORCH/torch/share/cmake"; do
    found "LibTorch by ACCRUE_LIBTORCH=$dir" "in $(realpath -s "$LIBTORCH/torch")" -DACCRUE_LIBTORCH="$dir"
  done
  found "LibTorch by CMAKE_PREFIX_PATH, past one that does not fit" "in $(realpath -s "$LIBTORCH/torch")" \
    -DCMAKE_PREFIX_PATH="$prefix;$work/old;$LIBTORCH/torch/share/cmake"
  # A Python that has torch, where nothing else has: the hint is taken out of a copy of the package.
  rm -rf "$work/elsewhere"
  cp -a "$prefix" "$work/elsewhere"
  sed -i "s|\"$LIBTORCH\"||; s|/opt/accrue/libtorch||" "$(find "$work/elsewhere" -name AccrueConfig.cmake)"
  printf '#!/bin/sh\nprintf %%s "%s"\n' "$LIBTORCH/torch" >"$work/python3"
  chmod +x "$work/python3"
  found "LibTorch by the Python in use" "in $(realpath -s "$LIBTORCH/torch")" -DCMAKE_PREFIX_PATH="$work/elsewhere" -DPython3_EXECUTABLE="$work/python3"
  refused "no LibTorch anywhere" "the Python in use: it has no torch" -DCMAKE_PREFIX_PATH="$work/elsewhere" -DPython3_EXECUTABLE=/bin/false

  ACCRUE_LIBTORCH=/nowhere configure "$work/planner" -DCONSUMER_ENGINE=OFF && cmake --build "$work/planner" >"$work/planner.log" 2>&1 ||
    fail "Accrue::run alone needs no LibTorch" "$(cat "$work/planner.log")"
  ! readelf -d "$work/planner/letters" | grep -E 'torch|c10|accrue_engine' || fail "a program of Accrue::run links LibTorch"
}

# line RANK LOG: what that rank said, behind any prefix of its launcher.
line() { grep -ohE "rank $1 of .*" "$2" || fail "rank $1 said nothing" "$(cat "$2")"; }
# field NAME LINE
field() { sed -nE "s/.* $1 ([^ ]+).*/\1/p" <<<"$2"; }

# check_two LOG LAUNCHER: both ranks end where one rank ends, with one reduction a window.
check_two() {
  local log=$1 alone each rank name
  alone=$(cat "$work/alone")
  for rank in 0 1; do
    each=$(line $rank "$log")
    [[ $each == "rank $rank of 2 ($2):"* ]] || fail "not started by $2: $each"
    for name in slope offset; do
      awk -v a="$(field $name "$alone")" -v b="$(field $name "$each")" 'BEGIN { d = a - b; exit !(d < 1e-12 && d > -1e-12) }' ||
        fail "$name on one rank and on two" "$alone"$'\n'"$each"
    done
    [ "$(field N "$each") $(field updates "$each") $(field reductions "$each") $(field all-reduces "$each")" = '2 15 15 15' ] ||
      fail "15 windows, one reduction each" "$each"
  done
  [ "$(line 0 "$log" | sed 's/.*: //')" = "$(line 1 "$log" | sed 's/.*: //')" ] || fail "the ranks differ" "$(cat "$log")"
  cat "$log"
}

step_alone() {
  "$work/project/train" >"$work/alone" || fail "it does not run"
  cat "$work/alone"
  grep -qE '^rank 0 of 1 \(single\): .* N 4 updates 15 ' "$work/alone" || fail "15 updates of 4 micro-steps"
}

step_environment() {
  local port status=0 first
  port=$("$prefix/bin/accrue-run" launch -- printenv MASTER_PORT | cut -d' ' -f2)
  export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=2
  RANK=0 timeout 100 "$work/project/train" >"$work/rank0" 2>&1 & first=$!
  RANK=1 timeout 100 "$work/project/train" >"$work/rank1" 2>&1 || status=$?
  wait $first || status=$?
  cat "$work/rank0" "$work/rank1" >"$work/environment.log"
  [ $status = 0 ] || fail "status $status" "$(cat "$work/environment.log")"
  check_two "$work/environment.log" torchrun
}

step_torchrun() {
  local torchrun=()
  find_torchrun "$source"
  say "started by ${torchrun[*]}"
  timeout 200 "${torchrun[@]}" --standalone --nproc-per-node 2 --no-python "$work/project/train" >"$work/torchrun.log" 2>&1 ||
    fail "torchrun" "$(cat "$work/torchrun.log")"
  check_two "$work/torchrun.log" torchrun
}

step_launch() {
  timeout 100 "$prefix/bin/accrue-run" launch -n 2 -- "$work/project/train" >"$work/launch.log" 2>&1 || fail "accrue-run launch" "$(cat "$work/launch.log")"
  check_two "$work/launch.log" accrue
  # Ranks that cannot start fail the launch as a whole, with their own words.
  local status=0
  timeout 100 "$prefix/bin/accrue-run" launch -n 2 -- env LOCAL_RANK=zero "$work/project/train" >"$work/failed.log" 2>&1 || status=$?
  [ $status = 4 ] && grep -qF 'LOCAL_RANK=zero' "$work/failed.log" || fail "status $status" "$(cat "$work/failed.log")"
}

# Trained by the installed programs on two ranks: the eight points' one update ends at 2.04, as without a library.
step_plugin() {
  local run=$work/plugin_run
  rm -rf "$run"
  XDG_RUNTIME_DIR=$work timeout 100 "$prefix/bin/accrue-run" run "$source/resources/presets/toy.accrue" --quiet --out "$run" --plugin "$work/project/libplugin.so" \
    --set megatron.custom_loss_function=twice_square --set megatron.gradient_clipping=0 --set megatron.lr_decay_style=constant \
    --set megatron.num_micro_batches=2 --set accumulation.steps=2 --set parallel.data=2 --set optimizer.lr=0.01 >"$work/plugin.log" 2>&1 || fail "accrue-run run --plugin" "$(cat "$work/plugin.log")"
  grep -qF '"weights":[2.04]' "$run/events.jsonl" || fail "another weight than 2.04" "$(grep -o '"weights":[^,]*' "$run/events.jsonl")"
}

"step_$step"
