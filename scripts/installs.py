"""Measure what installing llm-do takes: `python scripts/installs.py [EXTRA...]`; else the base, each extra, and all.

Each is installed into an environment of its own, from the index that pip is configured with, in the versions of
constraints/tested.txt. It prints distributions, megabytes on disk and seconds, of which the second of two installations
counts: the first one fills pip's cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def install(folder: Path, extra: str = "") -> Path:
    """Install llm-do into a new environment, which has nothing else, not even pip.

    Args:
        folder: The environment.
        extra: An extra to install with it; empty for the base alone.

    Returns:
        The folder of its programs.

    Raises:
        subprocess.CalledProcessError: pip failed; what it said is in `stderr`.
    """
    venv.create(folder, symlinks=os.name != "nt")
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "--disable-pip-version-check"]
    command = [*pip, "install", "--quiet", "-c", str(ROOT / "constraints" / "tested.txt"), target]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return programs


def distributions(programs: Path) -> list[str]:
    """The names of what is installed in an environment, llm-do included."""
    listing = "import importlib.metadata as m, json; print(json.dumps([d.name for d in m.distributions()]))"
    done = subprocess.run([programs / "python", "-c", listing], check=True, capture_output=True, text=True)
    return sorted(json.loads(done.stdout), key=str.lower)


def size(folder: Path) -> int:
    """The bytes of the files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def measure(extra: str) -> tuple[int, float, float]:
    """Install twice; return the number of distributions, megabytes, and seconds of the second time."""
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for turn in ("first", "second"):
            started = time.perf_counter()
            programs = install(Path(folder, turn), extra)
            seconds = time.perf_counter() - started
        return len(distributions(programs)), size(programs.parent) / 1e6, seconds


def main(extras: Sequence[str]) -> int:
    """Print a line of a table for each."""
    unknown = [extra for extra in extras if extra not in EXTRAS]
    if unknown:
        sys.stderr.write(f"no extra is called {unknown[0]!r}: they are {', '.join(EXTRAS)}\n")
        return 2
    print("| installed | distributions | MB | seconds |\n|---|---|---|---|")  # noqa: T201
    for extra in extras or ("", *EXTRAS):
        count, megabytes, seconds = measure(extra)
        name = f"`.[{extra}]`" if extra else "`.`"
        print(f"| {name} | {count} | {megabytes:.0f} | {seconds:.0f} |", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
