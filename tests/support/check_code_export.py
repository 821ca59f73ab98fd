#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs exported scripts by the real tools and compares each update's loss and rate with those of Accrue's own run.

    check_code_export.py ACCRUE_RUN SOURCE WHICH      WHICH: pytorch, accelerate or lightning

The tools are those of python_tools.py; without its environment the test is skipped, and says how to make it. Both sides compute in float32 with sums in another order. One rounding is 6e-8 of a number, and twenty updates
of models so small carry few of them on: losses may differ by 2e-6 of themselves, of a float64 model by 1e-12. Rates are
float64 on both sides.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

UPDATES = 20
TOLERANCE = 2e-6

MLP = """accrue = 1
[model]
kind = "mlp"
inputs = 5
outputs = 3
hidden = [16, 8]
activation = "gelu"
[data]
kind = "synthetic"
samples = 75
[optimizer]
kind = "sgd"
lr = 0.05
momentum = 0.9
weight_decay = 0.01
clip_norm = 0.5
[schedule]
kind = "cosine"
warmup = 3
min_lr = 0.001
[accumulation]
steps = 4
micro_batch = 4
[run]
updates = 20
seed = 7
"""

GPT = """accrue = 1
[model]
kind = "gpt"
layers = 2
width = 32
heads = 4
context = 16
vocabulary = 40
[data]
kind = "synthetic"
samples = 75
[optimizer]
kind = "adamw"
lr = 3e-3
weight_decay = 0.1
clip_norm = 1.0
[schedule]
kind = "linear"
warmup = 3
min_lr = 1e-4
[accumulation]
steps = 4
micro_batch = 4
[run]
updates = 20
seed = 3
"""

# 75 samples: 19 batches of 4, the last of 3, and windows of 4, 4, 4, 4 and 3.
CASES = [("mlp, one process", MLP, []), ("gpt, two processes", GPT, ["parallel.data=2"])]
# What the scripts share is run in PyTorch alone.
MORE = [
    ("gpt, one process", GPT, ["optimizer.clip_norm=0.05", "schedule.kind=WSD", "model.init=normal"]),
    ("mlp, two processes", MLP, ["parallel.data=2", "model.batch_norm=true"]),
    ("llm", MLP, ["accumulation.dialect=llm"]),
    ("colossalai", MLP, ["accumulation.dialect=colossalai", "optimizer.kind=adam"]),
    ("accelerate, two processes", GPT, ["accumulation.dialect=accelerate", "parallel.data=2"]),
    ("mmengine", MLP, ["accumulation.dialect=mmengine", "schedule.kind=exponential", "schedule.gamma=0.97"]),
    ("samples", MLP, ["accumulation.normalizer=samples", "optimizer.scaled_lr=[\"layers.1.*\"]", "optimizer.lr_mult=0.5"]),
    ("labels", MLP, ["model.loss=cross_entropy", "accumulation.clip_kind=value", "schedule.kind=inverse-square-root"]),
    ("text", GPT, ["data.kind=text", "data.path=text.txt", "model.vocabulary=256", "optimizer.no_decay=[\"*norm*\", \"*.bias\"]"]),
    ("csv", MLP, ["data.kind=csv", "data.path=table.csv", "data.label_columns=[\"y\", \"3\", \"b\"]", "data.shuffle=false"]),
    ("float64", MLP, ["model.dtype=float64", "model.activation=tanh", "run.epochs=5", "model.bias=false"]),
]


def end(text):
    sys.exit("FAILED: " + text)


def run_ours(accrue_run, folder, spec, sets):
    subprocess.run([accrue_run, "run", spec, "--out", folder, "--quiet", *sets], check=True, stdout=subprocess.DEVNULL)
    events = [json.loads(line) for line in open(folder / "events.jsonl")]
    return [(event["loss"], event["lr"]) for event in events if event["kind"] == "update"]


def run_theirs(python, script, ranks):
    command = [python, script] if ranks == 1 else [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", script]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=settings)
    try:
        out, err = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.terminate()  # a launcher ends its ranks then, which a kill would leave behind
        process.wait(60)
        end(f"{script} did not end within 240 s")
    if process.returncode != 0:
        end(f"{script} ended with {process.returncode}:\n{err[-3000:]}")
    updates = [json.loads(line) for line in out.splitlines() if line.startswith('{"update"')]
    return [(update["loss"], update["lr"]) for update in updates]


def check(accrue_run, python, work, target, name, text, changes):
    place = work / name.replace(" ", "-").replace(",", "")
    place.mkdir()
    spec = place / "spec.accrue"
    spec.write_text(text)
    (place / "text.txt").write_text("A text of some length, so that windows of it differ. " * 30)
    rows = [[(7 * row + 3 * column) % 11 / 11 - 0.5 for column in range(8)] for row in range(40)]
    (place / "table.csv").write_text("a, b,c,d,e,f,g,y\n" + "".join(",".join(map(str, row)) + "\r\n" for row in rows))
    if any(each.startswith("run.epochs") for each in changes):
        spec.write_text(text.replace("updates = 20\n", ""))
    sets = [part for each in changes for part in ("--set", each)]
    script = place / "train.py"
    subprocess.run([accrue_run, "export", spec, "--to", target, "--out", script, *sets], check=True)
    ours = run_ours(accrue_run, place / "run", spec, sets)
    theirs = run_theirs(python, script, 2 if "parallel.data=2" in changes else 1)
    if len(ours) < UPDATES or len(ours) != len(theirs):
        end(f"{target}, {name}: {len(theirs)} updates, where Accrue makes {len(ours)}")
    tolerance = 1e-12 if "model.dtype=float64" in changes else TOLERANCE
    for number, ((loss, lr), (other, rate)) in enumerate(zip(ours, theirs), 1):
        if abs(other - loss) > tolerance * abs(loss) or abs(rate - lr) > 1e-12 * lr:
            end(f"{target}, {name}: update {number} has loss {other} at rate {rate}, Accrue's {loss} at {lr}")
    worst = max(abs(other - loss) / abs(loss) for (loss, _), (other, _) in zip(ours, theirs))
    print(f"{target}, {name}: {len(ours)} updates, losses differ by {worst:.1e} at most", flush=True)


def main():
    accrue_run, source, target = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    python = source / "build/python-tools/bin/python"
    module = {"pytorch": "torch"}.get(target, target)
    if not python.exists() or subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode != 0:
        print(f"SKIPPED: no {module} here. Make the environment (2.2 GB to download, 5 GB on disk) with\n  {source}/tests/support/python_tools.py")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        for name, text, changes in CASES + (MORE if target == "pytorch" else []):
            check(accrue_run, python, pathlib.Path(work), target, name, text, changes)


main()
