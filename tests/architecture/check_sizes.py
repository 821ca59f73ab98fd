#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds functions and classes of the product to a size. check_sizes.py ROOT [--list]

A function may have 60 lines; the functions of a class, over all its files, may have 400. What is larger stands in sizes.txt
with its size and why, so that nothing grows unseen; when it shrinks, its line follows. --list prints what that file should say.
Needs universal-ctags."""

import collections
import json
import pathlib
import re
import subprocess
import sys

FUNCTION_LINES = 60
CLASS_LINES = 400
EXCEPTIONS = "tests/architecture/sizes.txt"


def functions(root):
    """Yields (scope, kind of scope, name, lines) of every function that has a body."""
    files = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "engine", "app", "ui"],
                           check=True, capture_output=True, text=True).stdout.split("\n")
    sources = [file for file in files if file.endswith((".h", ".cpp", ".cu")) and (pathlib.Path(root) / file).exists()]
    tags = subprocess.run(["ctags", "--output-format=json", "--languages=C++", "--langmap=C++:+.cu", "--kinds-C++=f",
                           "--fields=+neS", "-L", "-", "-o", "-"],
                          cwd=root, check=True, capture_output=True, text=True, input="\n".join(sources)).stdout
    for line in tags.splitlines():
        tag = json.loads(line)
        if "end" in tag:
            scope = re.sub(r"__anon\w+(::)?", "", tag.get("scope", "")).rstrip(":")
            yield scope, tag.get("scopeKind", ""), tag["name"], tag["end"] - tag["line"] + 1


def large(root):
    """Sizes above the ceilings, by ("function" or "class", name)."""
    sizes, classes = {}, collections.Counter()
    for scope, kind, name, lines in functions(root):
        full = f"{scope}::{name}" if scope else name
        if lines > FUNCTION_LINES:
            sizes["function", full] = max(lines, sizes.get(("function", full), 0))
        if kind in ("class", "struct"):
            classes[scope] += lines
    sizes.update({("class", name): lines for name, lines in classes.items() if lines > CLASS_LINES})
    return sizes


def allowed(root):
    """Size and reason, by ("function" or "class", name)."""
    entries = {}
    for line in (pathlib.Path(root) / EXCEPTIONS).read_text().splitlines():
        if line and not line.startswith("#"):
            what, name, lines, reason = line.split(maxsplit=3)
            entries[what, name] = int(lines), reason
    return entries


def main():
    root, *options = sys.argv[1:]
    found, known = large(root), allowed(root)
    if options == ["--list"]:
        for (what, name), lines in sorted(found.items()):
            print(what, name, lines, known.get((what, name), (0, "?"))[1])
        return 0
    problems = []
    for (what, name), lines in sorted(found.items()):
        limit = known.get((what, name), (0, ""))[0]
        if not limit:
            ceiling = FUNCTION_LINES if what == "function" else CLASS_LINES
            problems.append(f"{what} {name} has {lines} lines, and at most {ceiling} are allowed: cut it, or say in {EXCEPTIONS} why not")
        elif lines > limit:
            problems.append(f"{what} {name} has grown from {limit} to {lines} lines: cut it, or raise its number in {EXCEPTIONS}")
        elif lines < limit:
            problems.append(f"{what} {name} has {lines} lines: write that in {EXCEPTIONS}, where it has {limit}")
    problems += [f"{what} {name} is small or gone: take it out of {EXCEPTIONS}" for what, name in sorted(known.keys() - found.keys())]
    print("\n".join(problems) if problems else "sizes: no breach")
    return 1 if problems else 0


sys.exit(main())
