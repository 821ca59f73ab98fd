#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Python environment of the tools that Accrue is held against: PyTorch with torchrun, Accelerate and Lightning.

Exported scripts are run in it by their tests, and so are the Python sides of the comparisons in tests/bench. It lies in build/python-tools (2.2 GB
to download once, 5 GB on disk) and imports the torch wheel that Accrue's build links. When it is current this takes no time.
"""
import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ensure_environment():
    """A virtual environment with the pinned wheels; a stamp of the lock files says when it is current."""
    locks = [ROOT / "packaging/torch-gpu.lock", ROOT / "tests/support/python_tools.lock"]
    environment = ROOT / "build/python-tools"
    stamp = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    if (environment / "stamp").exists() and (environment / "stamp").read_text() == stamp:
        return environment
    print("making the Python environment (once; 2.2 GB to download, 5 GB on disk)", file=sys.stderr, flush=True)
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", environment], check=True)
    # /tmp is often small.
    (environment / "tmp").mkdir()
    install = [environment / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-compile", "--no-deps", "--require-hashes"]
    for lock in locks:
        subprocess.run(install + ["-r", lock], check=True, env={**os.environ, "TMPDIR": str(environment / "tmp")})
    (environment / "stamp").write_text(stamp)
    return environment


if __name__ == "__main__":
    ensure_environment()
