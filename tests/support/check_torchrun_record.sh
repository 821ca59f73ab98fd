#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two ranks of a spec under the real torchrun, by the command of the manual's page launchers.md: stopped from outside, started again by the same
# command, and recorded to their end.
#   check_torchrun_record.sh ACCRUE_RANK ACCRUE_RUN SOURCE
set -euo pipefail
rank=$1 run=$2 source=$3
. "$source/tests/support/find_torchrun.sh"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
torchrun=()
find_torchrun "$source"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_RUNTIME_DIR=$work
dir=$work/run

fail() {
  printf 'FAILED: %s\n' "$1"
  cat "$work"/*.log
  exit 1
}
read -ra shown <<<"$(grep '^torchrun ' "$source/resources/manual/launchers.md")"
[[ "${shown[*]:1}" == *' accrue-rank SPEC.accrue --out DIR' ]] || fail "launchers.md shows another command: ${shown[*]}"
words=("${shown[@]:1}")
words[-3]=$source/resources/presets/tensor-two.accrue
words[-1]=$dir
ranks() { PATH=$(dirname "$rank"):$PATH timeout 200 "${torchrun[@]}" "${words[@]}"; }

ranks >"$work/first.log" 2>&1 &
first=$!
for _ in $(seq 600); do
  ! grep -qsF '"kind":"update"' "$dir/events.jsonl" || break
  sleep 0.1
done
"$run" stop "$dir" >"$work/stop.log" 2>&1 || fail "the live run could not be stopped"
! wait "$first" || fail "torchrun does not say that the ranks were stopped"
"$run" show "$dir" | grep -qE '^state +stopped$' || fail "the run was not stopped"

ranks >"$work/second.log" 2>&1 || fail "the run does not go on"
"$run" show "$dir" >"$work/show.log"
grep -qE '^state +finished$' "$work/show.log" && grep -qE '^updates +120 of 120$' "$work/show.log" || fail "the run has not finished"
! grep -qi 'missing' "$work/show.log" || fail "events are missing"
for each in 0 1; do grep -qF "\"kind\":\"operations\",\"rank\":$each," "$dir/events.jsonl" || fail "rank $each reported nothing"; done
cat "$work/show.log"
