#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lines of the architecture, read off the sources and the binaries. Every breach is printed with its rule, file and line.
#   check_architecture.sh sources ROOT
#   check_architecture.sh binaries NAME=FILE ...      NAME: accrue, accrue-run, accrue-rank, accrue_engine
#   check_architecture.sh rooms ROOM=OBJECTS ...      the rooms of engine/run, lowest first; OBJECTS separated by semicolons
set -uo pipefail
shopt -s lastpipe  # breach, the last of a pipe, counts in this shell
breaches=0

# breach RULE WHAT: reads the offending lines from standard input; none, no breach.
breach() {
  local lines
  lines=$(cat)
  [ -n "$lines" ] || return 0
  printf '%s: %s\n%s\n\n' "$1" "$2" "$(sed 's/^/  /' <<<"$lines")"
  breaches=$((breaches + 1))
}

# The project's own files: what git tracks or would and has not lost, else everything but build products.
list_files() {
  comm -23 <(git ls-files -co --exclude-standard 2>/dev/null | sort -u) <(git ls-files -d 2>/dev/null | sort) |
    grep . || find . -type f -not -path './.git/*' -not -path './build/*' -not -path './.deps/*' -printf '%P\n'
}

# files REGEX...: the listed files that match any of the extended regular expressions.
files() { grep -E "$(IFS='|'; echo "$*")" <<<"$all" || true; }

# search PATTERN: matching lines of the files named on standard input.
search() { xargs -r -d '\n' grep -nHE -- "$1" || true; }

# An include of any form: in quotes or angle brackets, from the top of the tree or relative to the file.
include='#include [<"](\.\./)*'

check_includes() {
  local parts='comm|parallel|accumulation|kernels|pipeline|optim|update|checkpoint|train|cuda|rank'
  files '^(ui|app|engine/run)/.*\.(h|cpp)$' | search "$include(torch|ATen|c10|caffe2)/" |
    breach torch-below-ranks "only ranks hold LibTorch"
  files '^(ui|app|engine/run)/.*\.(h|cpp)$' |
    search "$include((engine/)?(include/)?accrue/($parts|models|data|megatron|plugin)/|(engine/)?($parts)/|engine/(models|data|megatron)/)" |
    breach engine-below-ranks "ui, app and engine/run include the vocabulary (accrue/run) only"
  files '^(engine|app/cli|app/tokenize)/.*\.(h|cpp|cu)$' '^app/cli_main\.cpp$' | search '#include [<"](Q[A-Z]|Qt)' |
    breach qt-in-engine "the engine and accrue-run know no Qt"
  files '^engine/.*\.(h|cpp|cu)$' | search '#include [<"]torch/torch\.h' |
    breach torch-umbrella "torch/torch.h takes 18 s a file: include what is used"
  files '^engine/run/[a-z]+/include/.*\.h$' | search '#include [<"](nlohmann|fmt|spdlog|toml|openssl|CLI)' |
    breach private-parsers "headers of accrue_run need the standard library only"
  files '^engine/run/[a-z]+/include/' | grep -vE '^engine/run/([a-z]+)/include/accrue/run/\1/[a-z0-9_]+\.h$' |
    breach room-in-path "a public header of engine/run/ROOM is ROOM/include/accrue/run/ROOM/x.h, so that an include names the room"
}

# What each part of the engine may include of the others; every part may include itself and accrue/run.
engine_arrows='comm: kernels
parallel: comm
checkpoint: comm
accumulation: comm parallel checkpoint optim update
kernels:
models: kernels comm parallel checkpoint
pipeline: comm models
optim: kernels comm
update: comm optim
data: models
megatron: comm parallel accumulation checkpoint kernels models pipeline optim update data
train: comm parallel accumulation checkpoint kernels models pipeline optim update data megatron
rank: comm checkpoint models megatron train
cuda: comm kernels
examples: comm parallel accumulation models optim megatron rank'

check_engine_arrows() {
  local line part allowed
  while IFS= read -r line; do
    part=${line%%:*} allowed=${line#*:}
    files "^engine/($part|include/accrue/$part)/.*\\.(h|cpp|cu)$" |
      search "$include(accrue/)?($(cut -d: -f1 <<<"$engine_arrows" | paste -sd'|'))/" |
      grep -vE "$include(accrue/)?(${allowed// /|}|$part)/"
  done <<<"$engine_arrows" | breach engine-arrows "engine/README.md names the order of the engine's parts; these includes point the other way"
  files '^engine/.*\.(h|cpp|cu)$' | grep -vE "^engine/(run|$(cut -d: -f1 <<<"$engine_arrows" | paste -sd'|'))/|^engine/include/accrue/($(cut -d: -f1 <<<"$engine_arrows" | paste -sd'|'))/" |
    breach engine-parts "each part of the engine has its line of arrows in check_architecture.sh"
  [ "$(files '^ui/.*\.(h|cpp)$' | search '#include "accrue/run/host/engine_host\.h"' | wc -l)" -le 1 ] ||
    files '^ui/.*\.(h|cpp)$' | search '#include "accrue/run/host/engine_host\.h"' | breach one-host "one file of ui knows the engine's host"
}

# The rooms of ui, in the order of ui/CMakeLists.txt: a room includes itself and those before it.
check_ui_rooms() {
  local rooms room later
  rooms=$(sed -n 's/^set(accrue_ui_rooms \(.*\))$/\1/p' ui/CMakeLists.txt)
  later=${rooms// /|}
  files '^ui/.*\.(h|cpp)$' | grep -vE "^ui/($later)/[^/]*$" | breach ui-parts "each source of ui is in a room that ui/CMakeLists.txt names"
  for room in $rooms; do
    later=${later#"$room"} later=${later#|}
    [ -z "$later" ] || files "^ui/$room/" | search "$include(ui/)?($later)/"
  done | breach ui-arrows "ui/CMakeLists.txt names the rooms of ui in order; these includes point to a later one"
  files '^ui/[^/]*/[^/]*\.(h|cpp)$' | cut -d/ -f1,2 | sort | uniq -c | awk '$1 > 40 { print $2 ": " $1 " files" }' |
    breach ui-room-size "a room of ui has at most 40 files: what it holds are two subjects"
}

check_terminal() {
  files '^app/cli/.*\.cpp$' | grep -vx 'app/cli/print\.cpp' | search '\b(printf|fprintf|puts|fputs|fputc|putchar|fwrite|cout|cerr|clog)\b' | grep -v 'gnu::format' |
    breach terminal "accrue-run prints by app/cli/print.h, which keeps control characters of files from the terminal"
}

check_archives() {
  files '^(engine|app|ui)/.*\.(h|cpp|cu)$' | grep -vE '/archived_optimizer\.(h|cpp)$' | search '\btorch::(jit::|serialize::|(load|save|pickle_load|pickle_save)\b)|\b(Input|Output)Archive\b|\b[Uu]npickler?\b|torch/(csrc/jit/|serialize)' |
    breach code-in-files "a LibTorch archive is unpickled and may carry code: state is tensors and plain values, in safetensors"
}

check_licences() {
  local f head
  files '\.(h|cpp|cu|cmake|in|sh|py)$' '(^|/)CMakeLists\.txt$' '^packaging/(bootstrap|check|demo)$' '^\.ci/run$' |
    xargs -r -d '\n' awk '
      FNR == 1 { if (file) print file "\t" head; file = FILENAME; head = ""; seen[file] = 1 }
      FNR <= 3 && !head && match($0, /SPDX-License-Identifier: [A-Za-z0-9.-]+/) { head = substr($0, RSTART, RLENGTH) }
      END { if (file) print file "\t" head; for (i = 1; i < ARGC; i++) if (!(ARGV[i] in seen)) print ARGV[i] "\t" }' |
    while IFS=$'\t' read -r f head; do
      case $f in
        ui/* | app/main.cpp | app/wiring* | tests/ui/*) [ "$head" = 'SPDX-License-Identifier: GPL-3.0-or-later' ] || echo "$f: ${head:-no licence line} (GPL-3.0-or-later belongs there)" ;;
        engine/* | app/cli* | app/tokenize/* | tests/run/* | tests/engine/* | tests/ranks/*) [ "$head" = 'SPDX-License-Identifier: Apache-2.0' ] || echo "$f: ${head:-no licence line} (Apache-2.0 belongs there)" ;;
        *) [ -n "$head" ] || echo "$f: no licence line" ;;
      esac
    done | breach licence "every source names its licence in the first three lines"
}

check_tree() {
  cut -d/ -f1 <<<"$all" | sort -u | grep -vxE '\..*|CMakeLists\.txt|CMakePresets\.json|LICENSE.*|README\.md|app|engine|ui|resources|tests|packaging' |
    breach top-level "the top level holds app, engine, ui, resources, tests and packaging"
  xargs -r -d '\n' stat -Lc '%s %n' <<<"$all" | awk '$1 > 1048576 { size = $1; sub(/^[0-9]+ /, ""); print $0 ": " size " bytes" }' |
    breach large-file "no file above 1 MB"
}

check_tests() {
  # A benchmark may pace what it feeds; a test may not.
  files '^tests/.*\.(h|cpp)$' | grep -v '^tests/bench/' | search '\b(qWait|qSleep|sleep_for|sleep_until|usleep|nanosleep)[[:space:]]*\(' |
    breach bare-sleep "tests wait for a condition with a deadline"
  # Qt Test takes name_data() for the table of name(), and never runs it for itself.
  files '^tests/.*\.cpp$' | xargs -r -d '\n' awk '
    match($0, /^ *void [a-zA-Z0-9_]+\(\) *\{/) { name = $0; sub(/^ *void /, "", name); sub(/\(.*/, "", name); place[FILENAME, name] = FILENAME ":" FNR }
    END { for (key in place) { split(key, part, SUBSEP); test = part[2]; if (sub(/_data$/, "", test) && !((part[1], test) in place)) print place[key] ": " part[2] } }' |
    breach unrun-test "a test whose name ends in _data is never run: Qt Test takes it for a table"
}

check_sources() {
  cd "$1" || exit 2
  all=$(list_files)
  check_includes
  check_engine_arrows
  check_ui_rooms
  check_terminal
  check_archives
  check_licences
  check_tree
  check_tests
}

# objects ROOM=OBJECT;OBJECT...: the object files, without precompiled headers.
objects() { tr ';' '\n' <<<"${1#*=}" | grep '\.o$'; }

# check_rooms ROOM=OBJECT;OBJECT... in the order of engine/run/CMakeLists.txt: no room calls a function that a later room defines.
check_rooms() {
  local i j room object rooms=("$@") needs=() gives=()
  for room in "$@"; do
    objects "$room" >/dev/null || echo "${room%%=*} has no objects"
    objects "$room" | while IFS= read -r object; do [ -f "$object" ] || echo "${room%%=*}: $object is not built"; done
  done | breach room-objects "each room is built"
  [ "$breaches" = 0 ] || return
  for room in "$@"; do
    needs+=("$(objects "$room" | xargs nm -C --undefined-only | sed -n 's/^ *U //p' | grep accrue:: | sort -u)")
    gives+=("$(objects "$room" | xargs nm -C --defined-only | sed -nE 's/^[0-9a-f]+ [TDBR] //p' | grep accrue:: | sort -u)")
  done
  for ((i = 0; i < ${#rooms[@]}; i++)); do
    for ((j = i + 1; j < ${#rooms[@]}; j++)); do
      comm -12 <(echo "${needs[i]}") <(echo "${gives[j]}") | grep . | sed "s/^/${rooms[i]%%=*} calls ${rooms[j]%%=*}: /"
    done
  done | breach rooms "a room of engine/run calls only the rooms before it"
}

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

check_binaries() {
  local pair name file
  for pair in "$@"; do
    name=${pair%%=*} file=${pair#*=}
    [ -f "$file" ] || { echo "$name: $file is not built" | breach binary "each program is built"; continue; }
    case $name in
      accrue | accrue-run) needed "$file" | grep -E 'torch|c10|cuda|cudart|nccl|accrue_engine' | breach "linked:$name" "$name links no LibTorch and no CUDA" ;;
    esac
    case $name in
      accrue-run | accrue-rank | accrue_engine) needed "$file" | grep -E '^libQ' | breach "qt:$name" "$name links no Qt" ;;
    esac
    case $name in
      accrue-rank | accrue_engine)
        nm -DC --defined-only "$file" | grep -P '(?<!:)\bgloo::' | breach "gloo:$name" "$name exports no gloo symbol: a weak one could pre-empt LibTorch's" ;;
    esac
  done
}

case ${1:-} in
  sources) check_sources "$2" ;;
  binaries) shift; check_binaries "$@" ;;
  rooms) shift; check_rooms "$@" ;;
  *) sed -n '3,6p' "$0"; exit 2 ;;
esac
[ "$breaches" = 0 ] && echo "architecture: no breach" || { echo "architecture: $breaches rules broken"; exit 1; }
