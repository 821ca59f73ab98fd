#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accrue compared with Hugging Face Accelerate: throughput, memory, time to the first update, loss curves, bytes on the wire.

How the two sides are held side by side: ../side_by_side.py. The Python environment is made under build/ (2.2 GB to download once). Needs a built
tree (packaging/check).

    tests/bench/accelerate/compare.py                      6 layers, 384 wide, micro-batch 4 x 256, M = 4, two rounds: about ten minutes on two cores
    tests/bench/accelerate/compare.py --rounds 5 --warmup 10 --updates 30 --variant tuned
    tests/bench/accelerate/compare.py --device cuda --ranks 1 --only training --python python3     with a PyTorch and Accelerate that are there
"""
import argparse
import json
import pathlib
import struct
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
from python_tools import ensure_environment
from side_by_side import ROOT, initial_weights, ranks_of, read_events, run_accrue, run_python, say, spread, write_tokens

SCRIPT = pathlib.Path(__file__).resolve().parent / "train_accelerate.py"


def run_accelerate(args, work, name, shape, tokens, weights, updates, python):
    tuned = ["--tuned"] if args.variant == "tuned" else []
    return run_python(SCRIPT, work, name, shape, updates, python, ["--tokens", tokens, "--weights", weights, "--device", shape.device, *tuned])


def wire_bytes(folder):
    """What rank 0 reduced per update over the data axis, and the minimum: every parameter once."""
    parameters = 0
    with open(folder / "final/model.safetensors", "rb") as archive:
        header = json.loads(archive.read(struct.unpack("<Q", archive.read(8))[0]))
        parameters = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for name, entry in header.items() if name != "__metadata__")
    sums = {}
    for event in read_events(folder / "events.jsonl", "sync"):
        if event["rank"] == 0:
            for update, size, purpose in zip(event["update"], event["bytes"], event["purpose"]):
                if purpose == "gradients":
                    sums[update] = sums.get(update, 0) + size
    return sums, parameters


def compare_training(args, work, shape, python):
    updates = max(args.updates, args.loss_updates, args.warmup + 2)
    tokens = work / "tokens.u16"
    write_tokens(tokens, updates * ranks_of(shape) * shape.accumulate * shape.micro_batch * shape.context + 1)
    weights = initial_weights(args.build, work, shape, tokens)
    speeds, memories, worst = [], [], 0.0
    for number in range(args.rounds):
        ours, _ = run_accrue(args.build, work, f"accrue-{number}", shape, tokens, updates)
        theirs = run_accelerate(args, work, f"accelerate-{number}", shape, tokens, weights, updates, python)
        pair = ours.tokens_per_s(shape, args.warmup), theirs.tokens_per_s(shape, args.warmup)
        peaks = max(ours.peaks), max(theirs.peaks)
        say(f"round {number + 1}: Accrue {pair[0]:.0f} tokens/s, {peaks[0] / 1e9:.2f} GB a rank; Accelerate {pair[1]:.0f} tokens/s, {peaks[1] / 1e9:.2f} GB a rank")
        speeds.append(pair[0] / pair[1])
        memories.append(peaks[0] / peaks[1])
        worst = max([worst] + [abs(a[1] - b[1]) / abs(b[1]) for a, b in list(zip(ours.updates, theirs.updates))[: args.loss_updates]])
    print(f"tokens/s, Accrue over Accelerate ({args.variant}): {spread(speeds)}")
    print(f"peak memory a rank, Accrue over Accelerate:    {spread(memories)}")
    print(f"loss over {args.loss_updates} updates, largest relative difference: {worst:.2e}")


def compare_start(args, work, shape, python):
    small = argparse.Namespace(**{**vars(shape), "context": 64, "micro_batch": 1, "accumulate": 1})
    tokens = work / "tokens-small.u16"
    write_tokens(tokens, 64 * 256 + 1)
    weights = initial_weights(args.build, work, small, tokens)
    ours, theirs = [], []
    for number in range(max(args.rounds, 2)):
        ours.append(run_accrue(args.build, work, f"start-accrue-{number}", small, tokens, 3)[0].first_update_s)
        theirs.append(run_accelerate(args, work, f"start-accelerate-{number}", small, tokens, weights, 3, python).first_update_s)
    print(f"launch to first update at 1x64, M = 1: Accrue {spread(ours)} s, Accelerate {spread(theirs)} s")


def count_bytes(args, work, shape):
    tokens = work / "tokens-small.u16"
    write_tokens(tokens, 64 * 256 + 1)
    for accumulate in (1, 4, 16):
        small = argparse.Namespace(**{**vars(shape), "context": 64, "micro_batch": 1, "accumulate": accumulate})
        _, folder = run_accrue(args.build, work, f"wire-{accumulate}", small, tokens, 3)
        sums, parameters = wire_bytes(folder)
        steady = {update: size for update, size in sums.items() if update >= 2}
        print(f"reduced per update and rank at M = {accumulate}: {', '.join(str(size) for size in steady.values())} bytes; gradient {parameters} bytes")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/default", help="build folder with bin/accrue-run")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench/accelerate", help="folder for the environment and the runs")
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("context", 256), ("micro-batch", 4), ("accumulate", 4), ("ranks", 2),
                        ("updates", 20), ("warmup", 5), ("rounds", 2), ("loss-updates", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--python", help="an interpreter that has PyTorch and the tools, instead of the environment that is made under build/")
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
                               accumulate=args.accumulate, data=args.ranks, tensor=1, pipeline=1, chunks=1, device=args.device)
    if args.only in (None, "bytes"):
        count_bytes(args, work, shape)
    if args.only == "bytes":
        return
    python = args.python or ensure_environment() / "bin/python"
    if args.only in (None, "start"):
        compare_start(args, work, shape, python)
    if args.only in (None, "training"):
        compare_training(args, work, shape, python)


main()
