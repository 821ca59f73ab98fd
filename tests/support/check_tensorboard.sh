#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on one and on two ranks with run.tensorboard_dir, and reads the event files back with the real tensorboard package: every loss, part of a loss,
# rate, norm and loss scale is that of the run's own events, on both axes. What "export --to tensorboard" writes afterwards has the same scalars, but for
# those of the clock and the memory of the rank that wrote, and what its own writer, the package's, has written is imported, restarts as its reader shows them.
#   check_tensorboard.sh ACCRUE_RUN SOURCE
# The package needs an environment of its own; without one the test is skipped, and says how to make it.
set -euo pipefail
accrue_run=$1 source=$2
python=$source/build/tensorboard-venv/bin/python3
if ! "$python" -c 'import tensorboard' 2>/dev/null; then
  printf 'SKIPPED: no tensorboard package here. Make an environment for it with\n  python3 -m venv %s && %s/pip install --no-deps --require-hashes -r %s\n' \
    "$source/build/tensorboard-venv" "$source/build/tensorboard-venv/bin" "$source/tests/support/tensorboard.lock"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$accrue_run" run "$source/resources/presets/toy.accrue" --out "$folder/one" --quiet --set run.tensorboard_dir=board --set run.epochs=3 >/dev/null
"$accrue_run" run "$source/resources/presets/tensor-two.accrue" --out "$folder/two" --quiet --set run.tensorboard_dir="$folder/elsewhere" \
  --set run.updates=4 --set evaluate.every_updates=2 --set run.update_norm=true --set run.parameter_norm=true --set run.gradient_zeros=true >/dev/null
"$accrue_run" run "$source/resources/presets/bert-two.accrue" --out "$folder/three" --quiet --set run.tensorboard_dir=board \
  --set model.dtype=float16 --set 'teaching.overflow_at=[1]' --set run.updates=4 --set evaluate.every_updates=2 >/dev/null
for run in one two three; do "$accrue_run" export "$folder/$run" --to tensorboard --out "$folder/$run-after" >/dev/null; done
"$python" - "$folder/one" "$folder/one/board" 'loss' "$folder/two" "$folder/elsewhere" 'lm loss' \
  "$folder/three" "$folder/three/board" 'loss' <<'PYTHON'
import json
import math
import pathlib
import struct
import sys

import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def number(value):
    return float(value)  # "nan", "inf" and "-inf" are strings


def points(accumulator, tag):
    return [(each.step, each.value) for each in accumulator.Scalars(tag)]


def of_the_writer(tag):
    """By the clock or of the memory of the rank that writes."""
    name = tag.removesuffix(" vs samples")
    return name.endswith("-time") or name == "throughput" or name.startswith("mem-")


def same(what, expected, found):
    if repr(expected) != repr(found):  # a NaN is one on both sides
        sys.exit(f"FAILED: {what}: {found}, where the run's events have {expected}")


for run, board, key in zip(*[iter(sys.argv[1:])] * 3):
    files = [each.name for each in pathlib.Path(board).iterdir()]
    same("files", 1, len(files))
    events = [json.loads(line) for line in open(pathlib.Path(run) / "events.jsonl")]
    updates = [each for each in events if each["kind"] == "update"]
    if not updates:
        sys.exit("FAILED: the run's events hold no update: " + str(events[-1]))
    accumulator = EventAccumulator(board, size_guidance={"scalars": 0})
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    values = {(key, "loss"), ("learning-rate", "lr"), ("grad-norm", "grad_norm")}
    measured = {"loss-scale": "loss_scale", "params-norm": "parameter_norm", "num-zeros": "gradient_zeros", "update-norm": "update_norm"}
    values |= {(tag, field) for tag, field in measured.items() if field in updates[0]}
    for tag, field in sorted(values):
        expected = [(each["update"], as_float32(number(each[field]))) for each in updates]
        same(tag, expected, points(accumulator, tag))
        expected = [(each["samples"], as_float32(number(each[field]))) for each in updates]
        same(tag + " vs samples", expected, points(accumulator, tag + " vs samples"))
    for part in updates[0].get("losses", {}):
        expected = [(each["update"], as_float32(number(each["losses"][part]))) for each in updates]
        same(part, expected, points(accumulator, part))
    evaluations = [each for each in events if each["kind"] == "evaluation"]
    if evaluations:
        expected = [(each["update"], as_float32(each["loss"])) for each in evaluations]
        same(key + " validation", expected, points(accumulator, key + " validation"))
        expected = [(each["update"], as_float32(math.exp(min(20.0, each["loss"])))) for each in evaluations]
        same("ppl", expected, points(accumulator, key + " validation ppl"))
        for part in evaluations[0].get("losses", {}):
            expected = [(each["update"], as_float32(each["losses"][part])) for each in evaluations]
            same(part + " validation", expected, points(accumulator, part + " validation"))
    for tag in ("batch-size", "world-size", "iteration-time", "mem-reserved-bytes", "mem-max-allocated-bytes"):
        if tag not in tags:
            sys.exit(f"FAILED: no {tag} in {tags}")
    after = EventAccumulator(run + "-after", size_guidance={"scalars": 0})
    after.Reload()
    lasting = [tag for tag in tags if not of_the_writer(tag)]
    same("tags after the run", sorted(lasting), sorted(tag for tag in after.Tags()["scalars"] if not of_the_writer(tag)))
    for tag in lasting:
        same(tag + " after the run", points(accumulator, tag), points(after, tag))
    print(f"tensorboard {tensorboard.__version__}: {len(updates)} updates, {len(evaluations)} evaluations, {len(tags)} tags")
PYTHON

# The package's own writer, as PyTorch's SummaryWriter uses it.
"$python" - "$folder/theirs" <<'PYTHON'
import sys

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter(sys.argv[1])
for step in range(1, 21):
    value = Summary.Value(tag="train/loss", simple_value=4.0 / step)
    writer.add_event(Event(wall_time=1000.0 + step, step=step, summary=Summary(value=[value])))
writer.close()
PYTHON
"$accrue_run" import "$folder/theirs" --out "$folder/imported" --batch 16 >/dev/null
"$accrue_run" show "$folder/imported" --json | "$python" -c '
import json, struct, sys
curve = json.load(sys.stdin)["curve"]
expected = [struct.unpack("<f", struct.pack("<f", 4.0 / step))[0] for step in range(1, 21)]
if curve["loss"] != expected or curve["samples"] != [16 * step for step in range(1, 21)]:
    sys.exit(f"FAILED: the imported run has {curve}")
print("a log of 20 steps imported")'

# Programs that were started again: what the import has are the points that the package's reader shows, of a step that is told twice the later one.
"$python" - "$folder/restarts" "$accrue_run" <<'PYTHON'
import json
import pathlib
import subprocess
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


def version(step=0):  # as SummaryWriter(purge_step=step) begins
    return Event(wall_time=1000.0, step=step, file_version="brain.Event:2")


def start(step):
    return Event(wall_time=1000.0, step=step, session_log=SessionLog(status=SessionLog.START))


def losses(steps, base):
    return [Event(wall_time=1000.0 + step, step=step, summary=Summary(value=[Summary.Value(tag="loss", simple_value=base + step)])) for step in steps]


first, again = losses(range(0, 21, 2), 100), losses(range(10, 14), 1000)
stop = Event(wall_time=1000.0, step=10, session_log=SessionLog(status=SessionLog.STOP))
logs = {
    "purge_step": [[version(), *first], [version(10), start(10), *again]],
    "in one file": [[version(), *first, start(10), *again]],
    "without a start": [[version(), *first], [version(), *again]],
    "stopped": [[version(), *first, stop, *again]],
    "without a version": [[*first, *again]],
    "from 0": [[version(), *first], [version(), start(0), *again]],
    "twice": [[version(), *first], [version(10), start(10), *again], [version(12), start(12), *losses(range(12, 18), 5000)]],
}
for name, files in logs.items():
    folder = pathlib.Path(sys.argv[1]) / name
    folder.mkdir(parents=True)
    for number, events in enumerate(files):
        with open(folder / f"events.out.tfevents.{1000 + number}.host", "wb") as file:
            writer = RecordWriter(file)
            for event in events:
                writer.write(event.SerializeToString())
            writer.flush()
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    expected = dict(sorted((each.step, each.value) for each in accumulator.Scalars("loss")))
    for each in accumulator.Scalars("loss"):
        expected[each.step] = each.value
    run = pathlib.Path(sys.argv[1]) / f"run {name}"
    subprocess.run([sys.argv[2], "import", folder, "--out", run], check=True, capture_output=True)
    curve = json.loads(subprocess.run([sys.argv[2], "show", run, "--json"], check=True, capture_output=True).stdout)["curve"]
    found = dict(zip(curve["update"], curve["loss"]))
    if found != expected:
        sys.exit(f"FAILED: {name}: {found}, where TensorBoard shows {expected}")
print(f"{len(logs)} logs of programs that were started again imported as TensorBoard shows them")
PYTHON
