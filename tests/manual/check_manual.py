#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual does what it says.

check_manual.py text ROOT            every page: how it opens, how long its sentences are, where its links lead
check_manual.py commands FILE BIN    runs the ```sh blocks of a page, line by line, with BIN in front of PATH
Blocks for another machine (a cluster, an installation) are ```shell and are not run. Paths below /tmp become a folder of the test's own.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LONGEST_SENTENCE = 25
README_LINES = 150


def prose(text):
    """The sentences of a page: paragraphs and list items, without code, tables, headings and pictures."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.S | re.M)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(\|.*|#.*)$", "", text, flags=re.M)
    text = re.sub(r"^( *)(-|\d+\.) ", "\n", text, flags=re.M)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from re.split(r"(?<=[.!?])\**\s+(?=[A-Z`*\"])", " ".join(paragraph.split()))


def check_text(root):
    wrong = []
    pages = root / "resources/manual"
    topics = (pages / "contents.txt").read_text().split()
    if sorted(topics) != sorted(page.stem for page in pages.glob("*.md")):
        wrong.append("contents.txt does not list the pages of its folder")
    readme = (root / "README.md").read_text()
    listed = re.findall(r"^\| \[[a-z-]+\]\(resources/manual/([a-z-]+)\.md\)", readme, flags=re.M)
    if listed != topics:
        wrong.append("README.md lists other pages than contents.txt, or in another order")
    if readme.count("\n") > README_LINES:
        wrong.append(f"README.md has more than {README_LINES} lines")
    for topic in topics:
        page = pages / f"{topic}.md"
        text = page.read_text()
        if not re.match(r"# .+\n\nAfter this page you (can|know) ", text):
            wrong.append(f"{page.name} does not open with what its reader can do after it")
    with_blocks = {page for page in [root / "README.md", *pages.glob("*.md")] if any(commands_of(page.read_text()))}
    tested = (root / "tests/manual/CMakeLists.txt").read_text()
    wrong += [f"{page.name} shows commands, and no test runs them" for page in with_blocks if page.name not in tested]
    for page in [root / "README.md", root / ".github/CONTRIBUTING.md", *(pages / f"{topic}.md" for topic in topics)]:
        text = page.read_text()
        for sentence in prose(text):
            if len(sentence.split()) > LONGEST_SENTENCE:
                wrong.append(f"{page.name}: {len(sentence.split())} words: {sentence}")
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", re.sub(r"```.*?```", "", text, flags=re.S)):
            if "://" not in link and not (page.parent / link).exists():
                wrong.append(f"{page.name} links to {link}, which is not there")
    return wrong


def commands_of(text):
    for block in re.findall(r"^ *```sh\n(.*?)^ *```$", text, flags=re.S | re.M):
        yield from (line.strip() for line in block.splitlines() if line.strip())


def check_commands(page, programs):
    root = page.resolve().parent
    while not (root / "CMakePresets.json").exists():
        root = root.parent
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": folder, "XDG_RUNTIME_DIR": folder, "LC_ALL": "C.UTF-8"}
        for command in commands_of(page.read_text()):
            line = command.replace("/tmp/", folder + "/").replace("build/default/bin", str(programs))
            line = line.replace("build/default/", str(programs.parent) + "/")
            print("$ " + command, flush=True)
            ended = subprocess.run(["bash", "-c", line], cwd=root, env=environment, capture_output=True, text=True)
            if ended.returncode != 0:
                return [f"{page.name}: status {ended.returncode} of: {command}\n{ended.stdout}{ended.stderr}"]
    return []


if __name__ == "__main__":
    if sys.argv[1] == "text":
        problems = check_text(pathlib.Path(sys.argv[2]))
    else:
        problems = check_commands(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
