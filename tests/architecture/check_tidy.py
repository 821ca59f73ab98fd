#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy (.clang-tidy) over core, programs and studio and asks for no finding. check_tidy.py ROOT BUILD [FILE...]

Reads the compile commands of BUILD. Sources that are compiled in batches are checked in batches, so each header is read once a
batch. FILE...: the batches that hold one of these sources, in the engine too, where LibTorch's headers take most of a minute a
batch. The static analyser stays off: it looks at a batch's own lines only, of which there are none.

Needs clang-tidy-19, which Debian 12 has: its default, 14, cannot parse the ranges of the standard library that g++ 12 brings."""

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
    """The compile commands of the batches and sources that are checked."""
    areas = "(?:engine|app|ui)" if files else "(?:engine/run|app|ui)"
    product = re.compile(f"^{re.escape(str(root))}/{areas}/|^{re.escape(str(build))}/{areas}/.*/Unity/")
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


def findings(root, build, commands, source):
    """The findings in a batch or source, but for those in generated files."""
    run = subprocess.run(["clang-tidy-19", f"--config-file={root}/.clang-tidy", "-p", commands, "--quiet", CHECKS, source],
                         capture_output=True, text=True)
    found = [line for line in FINDING.findall(run.stdout) if not line.startswith(f"{build}/")]
    return found or ([f"{source}: clang-tidy failed: {run.stdout}{run.stderr}"] if run.returncode else [])


def main():
    if not shutil.which("clang-tidy-19"):
        print("tidy: skipped: clang-tidy-19 is not installed (packaging/bootstrap --ci)")
        sys.exit(SKIPPED)
    root, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    checked = list(units(root, build, [pathlib.Path(file).resolve() for file in sys.argv[3:]]))
    if not checked:
        sys.exit(f"tidy: {build}/compile_commands.json has " + (
            f"none of {' '.join(sys.argv[3:])}: name .cpp files of engine, app or ui" if sys.argv[3:] else "no source to check"))
    with tempfile.TemporaryDirectory() as commands, \
            concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
        (pathlib.Path(commands) / "compile_commands.json").write_text(json.dumps(checked))
        lists = pool.map(lambda unit: findings(root, build, commands, unit["file"]), checked)
        found = sorted({line.replace(f"{root}/", "") for lines in lists for line in lines})
    print("\n".join(found) or f"tidy: no finding in {len(checked)} batches and sources")
    sys.exit(1 if found else 0)


main()
