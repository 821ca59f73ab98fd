# SPDX-License-Identifier: Apache-2.0
"""What the comparisons of this folder share: Accrue's runs and those of Python scripts, and a watch over a run's updates and memory.

Both sides train the same GPT from the same weights on the same tokens in the same order, one thread a rank; Accrue's idle pipeline stages lend
theirs. On CUDA each rank has a device of its own. The Python side imports the torch wheel that Accrue's build links. Runs are interleaved A-B-A-B,
the first updates of each are dropped, and each ratio is taken within its pair.
"""
import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import time
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEARNING_RATE = 3e-4
CLIP_NORM = 1.0
LIMIT_S = 1800  # no single run takes that long


def say(text):
    print(text, file=sys.stderr, flush=True)


def ranks_of(shape):
    return shape.data * shape.tensor * shape.pipeline


def write_tokens(path, count):
    """Bytes of the licence texts, repeated, as uint16."""
    text = (ROOT / "LICENSE-GPL-3.0.txt").read_bytes() + (ROOT / "LICENSE-Apache-2.0.txt").read_bytes()
    text = (text * (count // len(text) + 1))[:count]
    path.write_bytes(struct.pack(f"<{count}H", *text))


def write_spec(path, tokens, shape, updates, lr):
    path.write_text(f"""accrue = 1
[model]
kind = "gpt"
layers = {shape.layers}
width = {shape.width}
heads = {shape.heads}
context = {shape.context}
vocabulary = 256
[data]
kind = "tokens"
path = "{tokens}"
token_type = "uint16"
shuffle = false
[optimizer]
kind = "adamw"
lr = {lr!r}
weight_decay = 0.0
clip_norm = {CLIP_NORM}
[schedule]
kind = "constant"
[accumulation]
steps = {shape.accumulate}
micro_batch = {shape.micro_batch}
[parallel]
data = {shape.data}
tensor = {shape.tensor}
pipeline = {shape.pipeline}
virtual_pipeline = {shape.chunks}
[launch]
threads_per_rank = 1
device = "{shape.device}"
[run]
updates = {updates}
""")


def peak_memory(pid):
    """VmHWM of a process in bytes; 0 if it has ended."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def descendants(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found += [int(child), *descendants(int(child))]
        except OSError:
            pass
    return found


def is_rank(pid, word):
    """Whether this process is a rank: accrue-rank, or the training script under Python itself (not its launcher)."""
    try:
        arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word in argument for argument in arguments[:3]) and b"torch.distributed.run" not in arguments


class Measured:
    """One finished run: updates as (number, loss, seconds since its first line's clock), peak bytes per rank, launch to first update."""

    def __init__(self, updates, peaks, first_update_s):
        self.updates, self.peaks, self.first_update_s = updates, peaks, first_update_s

    def tokens_per_s(self, shape, warmup):
        first, last = self.updates[warmup - 1], self.updates[-1]
        tokens = (last[0] - first[0]) * shape.data * shape.accumulate * shape.micro_batch * shape.context
        return tokens / (last[2] - first[2])


def watch(command, lines_of, rank_word, log, environment=None):
    """Runs a command to its end; records when its first update appeared and the peak memory of its ranks."""
    begin = time.monotonic()
    first, peaks = None, {}
    with open(log, "w") as output:
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        try:
            while process.poll() is None:
                for pid in descendants(process.pid):
                    if is_rank(pid, rank_word):
                        peaks[pid] = max(peaks.get(pid, 0), peak_memory(pid))
                if first is None and lines_of():
                    first = time.monotonic() - begin
                if time.monotonic() - begin > LIMIT_S:
                    raise SystemExit(f"{command[0]} ran longer than {LIMIT_S} s; its output: {log}")
                time.sleep(0.005 if first is None else 0.1)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(30)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with status {process.returncode}; its output: {log}")
    updates = lines_of()
    if first is None:
        first = time.monotonic() - begin
    return Measured(updates, sorted(peaks.values()), first)


def read_events(path, kind):
    if not path.exists():
        return []
    with open(path) as lines:
        return [event for event in map(json.loads, (line for line in lines if line.endswith("\n"))) if event["kind"] == kind]


def run_accrue(build, work, name, shape, tokens, updates, lr=LEARNING_RATE):
    folder = work / name
    subprocess.run(["rm", "-rf", folder], check=True)
    write_spec(work / f"{name}.accrue", tokens, shape, updates, lr)
    events = folder / "events.jsonl"
    lines = lambda: [(e["update"], e["loss"], e["seconds"]) for e in read_events(events, "update")]
    command = [build / "bin/accrue-run", "run", work / f"{name}.accrue", "--out", folder]
    return watch(command, lines, b"accrue-rank", work / f"{name}.log"), folder


def run_python(script, work, name, shape, updates, python, options):
    """One run of a training script under torchrun; it writes a JSON line per update (update, loss, seconds) to --out."""
    out = work / f"{name}.jsonl"
    out.unlink(missing_ok=True)

    def lines():
        if not out.exists():
            return []
        records = [json.loads(line) for line in out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [(r["update"], r["loss"], r["seconds"]) for r in records]

    command = [python, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks_of(shape)}", script,
               "--out", out, "--layers", shape.layers, "--width", shape.width, "--heads", shape.heads, "--context", shape.context,
               "--micro-batch", shape.micro_batch, "--accumulate", shape.accumulate, "--updates", updates, "--lr", LEARNING_RATE,
               "--clip-norm", CLIP_NORM, *options]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TOKENIZERS_PARALLELISM": "false"}
    if shape.device == "cpu":
        settings["CUDA_VISIBLE_DEVICES"] = ""
    return watch(command, lines, script.name.encode(), work / f"{name}.log", settings)


def initial_weights(build, work, shape, tokens):
    """One update at a rate too small to change a float32 weight writes the initial weights to final/model.safetensors."""
    single = argparse.Namespace(**{**vars(shape), "accumulate": 1, "micro_batch": 1, "data": 1, "tensor": 1, "pipeline": 1, "chunks": 1})
    _, folder = run_accrue(build, work, "initial", single, tokens, 1, lr=1e-30)
    return folder / "final/model.safetensors"


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"
