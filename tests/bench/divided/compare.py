#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A divided model compared with the same in plain PyTorch: throughput, memory beside the plan's prediction, loss curves.

Two tensor-parallel ranks; two pipeline stages, one-forward-one-backward on both sides; and the same with Accrue's stages in chunks of one block,
interleaved, which the PyTorch script does not do. How the two sides are held side by side: ../side_by_side.py. The
Python environment is made under build/ (2.2 GB to download once). Needs a built tree (packaging/check).

    tests/bench/divided/compare.py                          6 layers, 384 wide, micro-batch 4 x 256, M = 4, two rounds: about ten minutes on two cores
    tests/bench/divided/compare.py --only pipeline --rounds 5
    tests/bench/divided/compare.py --require 1.3             fails where the median of a layout's rounds is below 1.3 times PyTorch's tokens/s
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
from python_tools import ensure_environment
from side_by_side import ROOT, initial_weights, run_accrue, run_python, say, spread, write_tokens

LAYOUTS = ("tensor", "pipeline", "interleaved")
SCRIPT = pathlib.Path(__file__).resolve().parent / "train_divided.py"


def predicted_bytes(build, spec):
    plan = json.loads(subprocess.run([build / "bin/accrue-run", "plan", spec, "--json"], check=True, capture_output=True).stdout)
    return plan["memory_bytes_per_rank"]["total"]


def compare(args, work, layout, python):
    """Prints how the two sides compare; the median of the rounds' ratios of tokens/s."""
    theirs_layout = "tensor" if layout == "tensor" else "pipeline"
    shape = argparse.Namespace(layers=args.layers, width=args.width, heads=args.heads, context=args.context, micro_batch=args.micro_batch,
                               accumulate=args.accumulate, data=1, tensor=2 if layout == "tensor" else 1, pipeline=1 if layout == "tensor" else 2,
                               chunks=args.layers // 2 if layout == "interleaved" else 1, device="cpu")
    tokens = work / "tokens.u16"
    write_tokens(tokens, args.updates * shape.accumulate * shape.micro_batch * shape.context + 1)
    weights = initial_weights(args.build, work, shape, tokens)
    speeds, memories, peaks, worst = [], [], [], 0.0
    for number in range(args.rounds):
        ours, _ = run_accrue(args.build, work, f"accrue-{layout}-{number}", shape, tokens, args.updates)
        theirs = run_python(SCRIPT, work, f"pytorch-{layout}-{number}", shape, args.updates, python,
                            ["--tokens", tokens, "--weights", weights, "--layout", theirs_layout])
        pair = ours.tokens_per_s(shape, args.warmup), theirs.tokens_per_s(shape, args.warmup)
        say(f"{layout}, round {number + 1}: Accrue {pair[0]:.0f} tokens/s, {max(ours.peaks) / 1e9:.2f} GB a rank; "
            f"PyTorch {pair[1]:.0f} tokens/s, {max(theirs.peaks) / 1e9:.2f} GB a rank")
        speeds.append(pair[0] / pair[1])
        memories.append(max(ours.peaks) / max(theirs.peaks))
        peaks.append(max(ours.peaks))
        worst = max([worst] + [abs(a[1] - b[1]) / abs(b[1]) for a, b in zip(ours.updates, theirs.updates)])
    predicted = predicted_bytes(args.build, work / f"accrue-{layout}-0.accrue")
    print(f"{layout}: tokens/s, Accrue over PyTorch: {spread(speeds)}")
    print(f"{layout}: peak memory a rank, Accrue over PyTorch: {spread(memories)}")
    print(f"{layout}: peak memory of the fullest rank {max(peaks) / 1e6:.0f} MB, predicted {predicted / 1e6:.0f} MB")
    print(f"{layout}: loss over {args.updates} updates, largest relative difference: {worst:.2e}")
    return statistics.median(speeds)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/default", help="build folder with bin/accrue-run")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench/divided", help="folder for the runs")
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("context", 256), ("micro-batch", 4), ("accumulate", 4), ("updates", 12),
                        ("warmup", 3), ("rounds", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", choices=LAYOUTS, help="one of the three")
    parser.add_argument("--require", type=float, default=0.0, metavar="RATIO", help="least median of tokens/s, Accrue over PyTorch, of each layout")
    return parser.parse_args()


def main():
    args = arguments()
    if not (args.build / "bin/accrue-run").exists():
        raise SystemExit(f"{args.build}/bin/accrue-run is not built: run packaging/check first")
    args.work.mkdir(parents=True, exist_ok=True)
    python = ensure_environment() / "bin/python"
    layouts = (args.only,) if args.only else LAYOUTS
    medians = {layout: compare(args, args.work.resolve(), layout, python) for layout in layouts}
    slow = [f"{layout} {median:.3f}" for layout, median in medians.items() if median < args.require]
    if slow:
        raise SystemExit(f"below {args.require:g} times PyTorch's tokens/s: {', '.join(slow)}")


main()
