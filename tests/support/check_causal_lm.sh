#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The causal-LM example as the two ranks of a launcher: the documented tokens and weights, on every rank, and as near to the exact ones as float32 comes.
#   check_causal_lm.sh torchrun|launch EXAMPLE ACCRUE_RUN SOURCE
set -euo pipefail
launcher=$1 example=$2 accrue_run=$3 source=$4
. "$source/tests/support/find_torchrun.sh"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export OMP_NUM_THREADS=1

case $launcher in
  torchrun)
    torchrun=()
    find_torchrun "$source"
    start=("${torchrun[@]}" --standalone --nproc-per-node 2 --no-python) ;;
  launch) start=("$accrue_run" launch -n 2 --) ;;
esac
echo "started by ${start[*]}"

# started ARGUMENT...: stores the output of the two ranks in `said`.
started() { said=$(timeout 100 "${start[@]}" "$example" "$@" 2>&1) || { printf 'FAILED: status %s\n%s\n' $? "$said"; exit 1; }; }
# has PATTERN TIMES: checks how many lines of `said` end with the pattern, after any prefix of the launcher.
has() { [ "$(grep -cE -- "$1\$" <<<"$said")" = "$2" ] || { printf 'FAILED: not said %s times: %s\n%s\n' "$2" "$1" "$said"; exit 1; }; }

started
has 'Step 0 - Device 0 - num items in the local batch 52' 1
has 'Step 0 - Device 1 - num items in the local batch 84' 1
has 'Step 1 - Device . - .*' 0
has 'Total num items 136' 1
has 'initial model weight is \[-0\.0075, 0\.5364\]' 1
for rank in 0 1; do has "Device $rank - w/ accumulation, the final model weight is \[0\.2117, 0\.3172\]" 1; done
has 'Device 0 - w/o accumulation, the final model weight is \[0\.2117, 0\.3172\]' 1

started --digits 10
weights=$(grep -oE 'the final model weight is .*' <<<"$said" | tr -d '[],' | awk '{ print $6, $7 }')
[ "$(wc -l <<<"$weights")" = 3 ] || { printf 'FAILED: three weights\n%s\n' "$said"; exit 1; }
awk 'function off(a, b) { return a - b > 3e-7 || b - a > 3e-7 } off($1, 0.2117169063) || off($2, 0.3172398646) { exit 1 }' <<<"$weights" ||
  { printf 'FAILED: not 0.2117169063 0.3172398646 to 3e-7\n%s\n' "$weights"; exit 1; }
printf '%s\n' "$said"
