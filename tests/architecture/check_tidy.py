#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy (.clang-tidy) over the product and asks for no finding. check_tidy.py ROOT BUILD [FILE...]

Reads the compile commands of BUILD. Sources that are compiled in batches are checked in batches, so each header is read once a
batch: all of the product takes minutes. FILE...: only the batches that hold one of these sources. The static analyser stays off:
it looks at a batch's own lines only, of which there are none. Needs clang-tidy."""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# The analyser: see above. A batch includes .cpp files, and that is what the other one reports.
CHECKS = "--checks=-clang-analyzer-*,-bugprone-suspicious-include"
FINDING = re.compile(r"^(/[^:]+:\d+:\d+: (?:warning|error): .*)$", re.MULTILINE)
SKIPPED = 77


def for_clang(command):
    """The command without GCC's precompiled header and without options that only GCC knows."""
    kept, words = [], iter(shlex.split(command))
    for word in words:
        if word == "-include":
            header = next(words)
            kept += [] if "cmake_pch" in header else [word, header]
        elif not word.startswith(("--param", "-fpch", "-W")):
            kept.append(word)
    return shlex.join(kept)


def units(root, build, files):
    """The compile commands of the product's batches and sources; with files, of those that hold one."""
    product = re.compile(f"^{re.escape(str(root))}/(?:engine|app|ui)/|^{re.escape(str(build))}/(?:engine|app|ui)/.*/Unity/")
    for unit in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(unit["file"])
        if product.match(str(source)) and not source.suffix == ".cu":
            held = re.findall(r'#include "(.*)"', source.read_text()) if "Unity" in source.parts else [str(source)]
            if not files or any(str(file) in held for file in files):
                yield unit | {"command": for_clang(unit["command"])}


def jobs():
    """As many as cores and memory allow: a batch of the engine takes up to 1.5 GB."""
    available = re.search(r"^MemAvailable: *(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    return max(1, min(len(os.sched_getaffinity(0)), int(available[1]) // 1_500_000))


def findings(commands, build, source):
    """The findings in a batch or source, but for those in generated files."""
    run = subprocess.run(["clang-tidy", "-p", commands, "--quiet", CHECKS, source], capture_output=True, text=True)
    found = [line for line in FINDING.findall(run.stdout) if not line.startswith(f"{build}/")]
    return found or ([f"{source}: clang-tidy failed: {run.stdout}{run.stderr}"] if run.returncode else [])


def main():
    if not shutil.which("clang-tidy"):
        print("tidy: skipped: clang-tidy is not installed (packaging/bootstrap --ci)")
        sys.exit(SKIPPED)
    root, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    checked = list(units(root, build, [pathlib.Path(file).resolve() for file in sys.argv[3:]]))
    if not checked:
        sys.exit(f"tidy: {build}/compile_commands.json names no source of the product")
    with tempfile.TemporaryDirectory() as commands, \
            concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
        (pathlib.Path(commands) / "compile_commands.json").write_text(json.dumps(checked))
        lists = pool.map(lambda unit: findings(commands, build, unit["file"]), checked)
        found = sorted({line.replace(f"{root}/", "") for lines in lists for line in lines})
    print("\n".join(found) or f"tidy: no finding in {len(checked)} batches and sources")
    sys.exit(1 if found else 0)


main()
