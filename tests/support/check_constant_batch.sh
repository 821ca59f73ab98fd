#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the constant-batch example and its output: a table and a plot, each with a curve for every configuration.
#   check_constant_batch.sh EXAMPLE
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" --csv "$folder/losses.csv" --svg "$folder/losses.svg"

fail() { printf 'FAILED: %s\n' "$1"; exit 1; }
names=('32 samples x 1 step x 1 rank' '8 samples x 4 steps x 1 rank' '16 samples x 1 step x 2 ranks' '4 samples x 4 steps x 2 ranks')
header=$(head -n 1 "$folder/losses.csv")
[ "$header" = "samples,$(IFS=,; echo "${names[*]}")" ] || fail "the table begins with $header"
updates=$(($(wc -l <"$folder/losses.csv") - 1))
[ "$updates" = 40 ] || fail "$updates updates in the table, where two epochs have 40"
awk -F, 'NR > 1 && (NF != 5 || $1 != 32 * (NR - 1) || !($2 > 0 && $3 > 0 && $4 > 0 && $5 > 0)) { exit 1 }' "$folder/losses.csv" ||
  fail 'the table has a line without four losses'

curves=$(grep -oE '<polyline[^>]* points="[^"]*"' "$folder/losses.svg" | sed 's/.* points="//; s/"$//')
[ "$(wc -l <<<"$curves")" = 4 ] || fail 'the plot has not four curves'
awk -v updates="$updates" 'NF != updates { exit 1 }' <<<"$curves" || fail 'a curve has not a point for every update'
for name in "${names[@]}"; do grep -qF ">$name</text>" "$folder/losses.svg" || fail "the plot does not name $name"; done
tail -n 1 "$folder/losses.svg" | grep -qx '</svg>' || fail 'the plot ends too early'
echo 'table and plot hold four curves'
