#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual does what it says.

check_manual.py text ROOT            every page: how it opens, how long its sentences are, where its links lead, who runs its commands
check_manual.py commands FILE BIN    runs the ```sh blocks of a page, line by line, with BIN in front of PATH
Paths below /tmp become a folder of the test's own. Commands in ```shell blocks need more than a build: ELSEWHERE says where each is run.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LONGEST_SENTENCE = 25
README_LINES = 150
# Pages for those who read the sources. They are held to the language of the manual and to their links.
SOURCE_PAGES = [".github/CONTRIBUTING.md", "engine/README.md", "engine/examples/README.md", "engine/run/EVENTS.md", "tests/README.md",
                "tests/scenarios/README.md", "ui/README.md"]
# Page: how each command in its ```shell blocks begins, and the file that runs it, or why nothing does.
ELSEWHERE = {
    "README.md": {
        "packaging/demo": "not run: it ends when its window is closed",
        "packaging/check": ".ci/run",
    },
    ".github/CONTRIBUTING.md": {
        "packaging/bootstrap": ".ci/run",
        "cmake --preset default": "packaging/lib.sh",
        "ctest --preset default": "packaging/check",
        "ctest --preset thorough": ".ci/run",
        "cmake --preset dev": ".ci/run",
        "ninja -C build/default": "not run: a part of the default build",
        "cmake --workflow --preset asan": ".ci/run",
        "tests/architecture/check_tidy.py": "tests/architecture/CMakeLists.txt",
    },
    "resources/manual/export-and-import.md": {
        "echo": "tests/support/check_huggingface.py",
        "accrue-run data build": "tests/support/check_huggingface.py",
        "accrue-run run": "tests/support/check_huggingface.py",
    },
    "resources/manual/launchers.md": {
        "torchrun": "tests/support/check_torchrun_record.sh",
        "srun": "not run: needs a cluster's installation; test_own_ranks sets its variables",
        "mpirun": "not run: needs a cluster's installation; test_own_ranks sets its variables",
    },
    "resources/manual/library.md": {
        "cmake --install": "tests/consumer/check_consumer.sh",
        "accrue-run launch": "tests/consumer/check_consumer.sh",
    },
}


def prose(text):
    """The sentences of a page: paragraphs, list items and cells of tables, without code, headings and pictures."""
    text = re.sub(r"<!--.*?-->|^ *```.*?^ *```$|^#.*?$", "", text, flags=re.S | re.M)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]*`|\[\S*[./]\S*\]\([^)]*\)", "Code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^\|.*$", lambda row: row[0].replace("|", "\n\n"), text, flags=re.M)
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
        if not re.match(r"# .+\n\nAfter this page you can ", page.read_text()):
            wrong.append(f"{page.name} does not open with what its reader can do after it")
    words = re.findall(r"^\| \*\*(.+?)\*\*", (pages / "glossary.md").read_text(), flags=re.M)
    wrong += [f"glossary.md: {after} stands after {word}" for word, after in zip(words, words[1:]) if after.lower() < word.lower()]
    for name in ["README.md", *SOURCE_PAGES, *(f"resources/manual/{topic}.md" for topic in topics)]:
        wrong += check_page(root, name)
    return wrong + list(check_events(root))


def check_page(root, name):
    page = root / name
    text = page.read_text()
    for sentence in prose(text):
        if len(sentence.split()) > LONGEST_SENTENCE:
            yield f"{name}: {len(sentence.split())} words: {sentence}"
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        if "://" not in link and not (page.parent / link).exists():
            yield f"{name} links to {link}, which is not there"
    for language in set(re.findall(r"^ *```(\w+)$", text, flags=re.M)) - {"sh", "shell", "cpp", "cmake"}:
        yield f"{name}: commands stand in blocks of sh or shell, not of {language}"
    if any(commands_of(text)) and name not in (root / "tests/manual/CMakeLists.txt").read_text():
        yield f"{name} shows commands, and no test runs them"
    yield from unrun(root, name, list(commands_of(text, "shell")))


def unrun(root, name, commands):
    """What ELSEWHERE does not say of a page's commands, or says wrongly."""
    known = ELSEWHERE.get(name, {})
    for command in commands:
        if not any(f"{command} ".startswith(f"{beginning} ") for beginning in known):
            yield f"{name}: ELSEWHERE in check_manual.py does not say who runs: {command}"
    for beginning, runner in known.items():
        if not any(f"{command} ".startswith(f"{beginning} ") for command in commands):
            yield f"{name}: it no longer has the command of ELSEWHERE: {beginning}"
        if not runner.startswith("not run: ") and beginning not in (root / runner).read_text().replace('"', ""):
            yield f"{name}: {runner} does not run: {beginning}"


def check_events(root):
    """EVENTS.md has the kinds and fields of the table in the sources, ° where one may be absent."""
    source = (root / "engine/run/events/event_fields.h").read_text()
    code, page = {}, {}
    for kind, fields in re.findall(r'^ACCRUE_EVENT\(\w+, "(\w+)", (.*?)\)$(?=\nACCRUE|\n//)', source, flags=re.S | re.M):
        code[kind] = {name: need != "REQUIRED" for need, name in re.findall(r'(REQUIRED|OPTIONAL|LATER)\w*\("?(\w+)', fields)}
    for kind, section in re.findall(r"^### `(\w+)`$(.*?)(?=^##)", (root / "engine/run/EVENTS.md").read_text(), flags=re.S | re.M):
        cells = "".join(re.findall(r"^\|(.*?)\|", section, flags=re.M))
        page[kind] = {name: mark != "" for name, mark in re.findall(r"`(\w+)`(°?)", cells)}
    for kind in sorted(code.keys() ^ page.keys()):
        yield f"EVENTS.md and event_fields.h differ: one of them lacks {kind}"
    for kind in sorted(code | page):
        for name, _ in sorted(set(code.get(kind, {}).items()) ^ set(page.get(kind, {}).items())):
            yield f"EVENTS.md and event_fields.h differ in {name} of {kind}"


def commands_of(text, language="sh"):
    for block in re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, flags=re.S | re.M):
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
