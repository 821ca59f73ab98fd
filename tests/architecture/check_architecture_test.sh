#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Breaks every rule of check_architecture.sh in a small tree of its own and expects each breach to be named; a clean tree must pass.
set -euo pipefail
checker=$(cd "$(dirname "$0")" && pwd)/check_architecture.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apache='// SPDX-License-Identifier: Apache-2.0' gpl='// SPDX-License-Identifier: GPL-3.0-or-later'

# put FILE LINE...
put() { mkdir -p "$(dirname "$work/$1")"; local f=$1; shift; printf '%s\n' "$@" >"$work/$f"; }
# expect RULE FILE: the rule and the file are both in the report.
expect() { grep -q "^$1:" <<<"$report" && grep -qF "$2" <<<"$report" || { echo "not reported: $1 ($2)"; exit 1; }; }

put engine/comm/good.cpp "$apache" '#include <ATen/core/Tensor.h>'
put ui/CMakeLists.txt '# SPDX-License-Identifier: GPL-3.0-or-later' 'set(accrue_ui_rooms kit plots shell)'
put ui/plots/good.cpp "$gpl" '#include <QWidget>' '#include "accrue/run/fields/spec.h"' '#include "good.h"' '#include "kit/theme.h"'
bash "$checker" sources "$work" || { echo "a clean tree was refused"; exit 1; }

put ui/torch.cpp "$gpl" '#include <ATen/core/Tensor.h>'
put app/engine.cpp "$gpl" '#include "accrue/train/trainer.h"'
put engine/comm/window.cpp "$apache" '#include <QString>'
put engine/comm/pickle.cpp "$apache" '  optimizer.save(archive); torch::serialize::OutputArchive archive;'
put app/load.cpp "$gpl" '  torch::load(model, path);'
put app/using.cpp "$gpl" 'using torch::load;'
put engine/comm/script.cpp "$apache" '  torch::jit::import_ir_module(unit, path);'
put engine/comm/reader.cpp "$apache" '#include <torch/csrc/jit/serialization/unpickler.h>'
put ui/kernels.cpp "$gpl" '#include "kernels/kernels.h"'
put ui/relative.cpp "$gpl" '#include "../engine/models/batch.h"'
put engine/comm/angle.cpp "$apache" '#include <accrue/train/trainer.h>'
put engine/comm/relative.cpp "$apache" '#include "../train/training.h"'
put engine/empty.cpp && : >"$work/engine/empty.cpp"
put engine/models/umbrella.cpp "$apache" '#include <torch/torch.h>'
put engine/run/plan/include/accrue/run/plan/parser.h "$apache" '#include <nlohmann/json.hpp>'
put engine/run/plan/include/accrue/run/cost/elsewhere.h "$apache"
put engine/comm/upward.cpp "$apache" '#include "accrue/train/trainer.h"'
put engine/novel/part.cpp "$apache"
put ui/kit/upward.cpp "$gpl" '#include "shell/main_window.h"'
put ui/plots/relative.cpp "$gpl" '#include "../shell/main_window.h"'
put ui/attic/window.cpp "$gpl"
for number in $(seq 41); do put "ui/kit/part_$number.cpp" "$gpl"; done
put ui/first_host.cpp "$gpl" '#include "accrue/run/host/engine_host.h"'
put ui/second_host.cpp "$gpl" '#include "accrue/run/host/engine_host.h"'
put engine/unlicensed.cpp 'int x;'
put ui/permissive.cpp "$apache"
put scratch/note.txt 'a stray folder'
put tests/run/sleepy.cpp "$apache" '  std::this_thread::sleep_for(1s);'
put tests/run/unrun.cpp "$apache" '  void rows_data() {}' '  void rows() {}' '  void it_reads_the_data() {'
mkdir -p "$work/resources" && head -c 1100000 /dev/zero >"$work/resources/large.bin"

report=$(bash "$checker" sources "$work") && { echo "a broken tree passed"; exit 1; }
expect torch-below-ranks ui/torch.cpp
expect engine-below-ranks app/engine.cpp
expect qt-in-engine engine/comm/window.cpp
expect code-in-files engine/comm/pickle.cpp
expect code-in-files app/load.cpp
expect code-in-files app/using.cpp
expect code-in-files engine/comm/script.cpp
expect code-in-files engine/comm/reader.cpp
expect engine-below-ranks ui/kernels.cpp
expect engine-below-ranks ui/relative.cpp
expect engine-arrows engine/comm/angle.cpp
expect engine-arrows engine/comm/relative.cpp
expect licence engine/empty.cpp
expect torch-umbrella engine/models/umbrella.cpp
expect private-parsers engine/run/plan/include/accrue/run/plan/parser.h
expect room-in-path engine/run/plan/include/accrue/run/cost/elsewhere.h
expect engine-arrows engine/comm/upward.cpp
expect engine-parts engine/novel/part.cpp
expect ui-arrows ui/kit/upward.cpp
expect ui-arrows ui/plots/relative.cpp
expect ui-parts ui/attic/window.cpp
expect ui-room-size ui/kit
expect one-host ui/second_host.cpp
expect licence engine/unlicensed.cpp
expect licence ui/permissive.cpp
expect top-level scratch
expect bare-sleep tests/run/sleepy.cpp
expect unrun-test tests/run/unrun.cpp:4
expect large-file resources/large.bin

report=$(bash "$checker" binaries accrue-run="$work/absent") && { echo "an absent program passed"; exit 1; }
expect binary accrue-run

# A lower room that calls a higher one, as objects say it.
printf 'namespace accrue { void high(); void low() { high(); } }' | g++ -x c++ -c -o "$work/low.o" -
printf 'namespace accrue { void low(); void high() { low(); } }' | g++ -x c++ -c -o "$work/high.o" -
bash "$checker" rooms "low=$work/low.o" >/dev/null || { echo "a room alone was refused"; exit 1; }
report=$(bash "$checker" rooms "low=$work/low.o" "high=$work/high.o") && { echo "a call upwards passed"; exit 1; }
expect rooms "low calls high: accrue::high()"
report=$(bash "$checker" rooms "low=$work/low.o" "high=$work/absent.o") && { echo "a room that is not built passed"; exit 1; }
expect room-objects absent.o
report=$(bash "$checker" rooms "low=") && { echo "a room without objects passed"; exit 1; }
expect room-objects "low has no objects"
echo "architecture checks: every rule reports its breach"
