#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accrue compared with Hugging Face Accelerate: throughput, memory, time to the first update, loss curves, bytes on the wire.

Both sides train the same GPT from the same weights on the same tokens in the same order, with the same number of ranks and one thread each; the
Python side imports the torch wheel that Accrue's build links, from an environment under build/ that this program makes (2.2 GB to download once).
Runs are interleaved A-B-A-B, the first updates of each are dropped, and each ratio is taken within its pair. Needs a built tree (packaging/check).

    tests/bench/accelerate/compare.py                      6 layers, 384 wide, micro-batch 4 x 256, M = 4, two rounds: about ten minutes on two cores
    tests/bench/accelerate/compare.py --rounds 5 --warmup 10 --updates 30 --variant tuned
"""
import argparse
import hashlib
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
LEARNING_RATE = 3e-4
CLIP_NORM = 1.0
LIMIT_S = 1800  # no single run takes that long


def say(text):
    print(text, file=sys.stderr, flush=True)


def ensure_environment(work):
    """A virtual environment with the pinned wheels; a stamp of the lock files says when it is current."""
    locks = [ROOT / "packaging/torch-gpu.lock", HERE / "requirements.lock"]
    stamp = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    environment = work / "venv"
    if (environment / "stamp").exists() and (environment / "stamp").read_text() == stamp:
        return environment
    say("making the Python environment (once; 2.2 GB to download, 5 GB on disk)")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", environment], check=True)
    (work / "tmp").mkdir(exist_ok=True)
    install = [environment / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--require-hashes"]
    for lock in locks:
        subprocess.run(install + ["-r", lock], check=True, env={**os.environ, "TMPDIR": str(work / "tmp")})
    (environment / "stamp").write_text(stamp)
    return environment


def write_tokens(path, count):
    """Bytes of the licence texts, repeated, as uint16."""
    text = (ROOT / "LICENSE-GPL-3.0.txt").read_bytes() + (ROOT / "LICENSE-Apache-2.0.txt").read_bytes()
    text = (text * (count // len(text) + 1))[:count]
    path.write_bytes(struct.pack(f"<{count}H", *text))


def write_spec(path, tokens, shape, updates, lr=LEARNING_RATE):
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
data = {shape.ranks}
[launch]
threads_per_rank = 1
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
        tokens = (last[0] - first[0]) * shape.ranks * shape.accumulate * shape.micro_batch * shape.context
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


def run_accrue(args, work, name, shape, tokens, updates, lr=LEARNING_RATE):
    folder = work / name
    subprocess.run(["rm", "-rf", folder], check=True)
    write_spec(work / f"{name}.accrue", tokens, shape, updates, lr)
    events = folder / "events.jsonl"
    lines = lambda: [(e["update"], e["loss"], e["seconds"]) for e in read_events(events, "update")]
    command = [args.build / "bin/accrue-run", "run", work / f"{name}.accrue", "--out", folder]
    return watch(command, lines, b"accrue-rank", work / f"{name}.log"), folder


def run_accelerate(args, work, name, shape, tokens, weights, updates, environment):
    out = work / f"{name}.jsonl"
    out.unlink(missing_ok=True)

    def lines():
        if not out.exists():
            return []
        records = [json.loads(line) for line in out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [(r["update"], r["loss"], r["seconds"]) for r in records]

    command = [environment / "bin/python", "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={shape.ranks}", HERE / "train_accelerate.py",
               "--tokens", tokens, "--weights", weights, "--out", out, "--layers", shape.layers, "--width", shape.width, "--heads", shape.heads,
               "--context", shape.context, "--micro-batch", shape.micro_batch, "--accumulate", shape.accumulate, "--updates", updates,
               "--lr", LEARNING_RATE, "--clip-norm", CLIP_NORM]
    if args.variant == "tuned":
        command.append("--tuned")
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo", "TOKENIZERS_PARALLELISM": "false"}
    return watch(command, lines, b"train_accelerate.py", work / f"{name}.log", settings)


def initial_weights(args, work, shape, tokens):
    """One update at a rate too small to change a float32 weight writes the initial weights to final/model.safetensors."""
    single = argparse.Namespace(**{**vars(shape), "accumulate": 1, "micro_batch": 1})
    _, folder = run_accrue(args, work, "initial", single, tokens, 1, lr=1e-30)
    return folder / "final/model.safetensors"


def wire_bytes(folder, ranks, lengths):
    """What rank 0 reduced per update over the data axis, and the minimum: every parameter once."""
    parameters = 0
    with open(folder / "final/model.safetensors", "rb") as archive:
        header = json.loads(archive.read(struct.unpack("<Q", archive.read(8))[0]))
        parameters = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for name, entry in header.items() if name != "__metadata__")
    sums = {}
    for event in read_events(folder / "events.jsonl", "sync"):
        if event["rank"] == 0:
            for update, size in zip(event["update"], event["bytes"]):
                sums[update] = sums.get(update, 0) + size
    return sums, parameters


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def compare_training(args, work, shape, environment):
    updates = max(args.updates, args.loss_updates, args.warmup + 2)
    tokens = work / "tokens.u16"
    write_tokens(tokens, updates * shape.ranks * shape.accumulate * shape.micro_batch * shape.context + 1)
    weights = initial_weights(args, work, shape, tokens)
    speeds, memories, worst = [], [], 0.0
    for number in range(args.rounds):
        ours, _ = run_accrue(args, work, f"accrue-{number}", shape, tokens, updates)
        theirs = run_accelerate(args, work, f"accelerate-{number}", shape, tokens, weights, updates, environment)
        pair = ours.tokens_per_s(shape, args.warmup), theirs.tokens_per_s(shape, args.warmup)
        peaks = max(ours.peaks), max(theirs.peaks)
        say(f"round {number + 1}: Accrue {pair[0]:.0f} tokens/s, {peaks[0] / 1e9:.2f} GB a rank; Accelerate {pair[1]:.0f} tokens/s, {peaks[1] / 1e9:.2f} GB a rank")
        speeds.append(pair[0] / pair[1])
        memories.append(peaks[0] / peaks[1])
        worst = max([worst] + [abs(a[1] - b[1]) / abs(b[1]) for a, b in list(zip(ours.updates, theirs.updates))[: args.loss_updates]])
    print(f"tokens/s, Accrue over Accelerate ({args.variant}): {spread(speeds)}")
    print(f"peak memory a rank, Accrue over Accelerate:    {spread(memories)}")
    print(f"loss over {args.loss_updates} updates, largest relative difference: {worst:.2e}")


def compare_start(args, work, shape, environment):
    small = argparse.Namespace(**{**vars(shape), "context": 64, "micro_batch": 1, "accumulate": 1})
    tokens = work / "tokens-small.u16"
    write_tokens(tokens, 64 * 256 + 1)
    weights = initial_weights(args, work, small, tokens)
    ours, theirs = [], []
    for number in range(max(args.rounds, 2)):
        ours.append(run_accrue(args, work, f"start-accrue-{number}", small, tokens, 3)[0].first_update_s)
        theirs.append(run_accelerate(args, work, f"start-accelerate-{number}", small, tokens, weights, 3, environment).first_update_s)
    print(f"launch to first update at 1x64, M = 1: Accrue {spread(ours)} s, Accelerate {spread(theirs)} s")


def count_bytes(args, work, shape):
    tokens = work / "tokens-small.u16"
    write_tokens(tokens, 64 * 256 + 1)
    for accumulate in (1, 4, 16):
        small = argparse.Namespace(**{**vars(shape), "context": 64, "micro_batch": 1, "accumulate": accumulate})
        _, folder = run_accrue(args, work, f"wire-{accumulate}", small, tokens, 3)
        sums, parameters = wire_bytes(folder, shape.ranks, accumulate)
        steady = {update: size for update, size in sums.items() if update >= 2}
        print(f"reduced per update and rank at M = {accumulate}: {', '.join(str(size) for size in steady.values())} bytes; gradient {parameters} bytes")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/default", help="build folder with bin/accrue-run")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench/accelerate", help="folder for the environment and the runs")
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("context", 256), ("micro-batch", 4), ("accumulate", 4), ("ranks", 2),
                        ("updates", 20), ("warmup", 5), ("rounds", 2), ("loss-updates", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--variant", choices=("documented", "tuned"), default="documented")
    parser.add_argument("--only", choices=("training", "start", "bytes"), help="one of the three parts")
    return parser.parse_args()


def main():
    args = arguments()
    if not (args.build / "bin/accrue-run").exists():
        raise SystemExit(f"{args.build}/bin/accrue-run is not built: run packaging/check first")
    args.work.mkdir(parents=True, exist_ok=True)
    work = args.work.resolve()
    shape = argparse.Namespace(layers=args.layers, width=args.width, heads=args.heads, context=args.context, micro_batch=args.micro_batch,
                               accumulate=args.accumulate, ranks=args.ranks)
    if args.only in (None, "bytes"):
        count_bytes(args, work, shape)
    if args.only == "bytes":
        return
    environment = ensure_environment(work)
    if args.only in (None, "start"):
        compare_start(args, work, shape, environment)
    if args.only in (None, "training"):
        compare_training(args, work, shape, environment)


main()
