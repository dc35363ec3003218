"""`python -m benchmarks [NAME ...]`: measure, print the report, and end with 1 when a target is missed.

`--save` writes the report to `benchmarks/results.txt` with a description of the machine.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path

from benchmarks.measure import Figure

NAMES = ("startup", "whole_run", "in_process", "flows", "threads", "toolkits", "decide", "link")


def describe() -> str:
    """The machine the figures are of."""
    from importlib.metadata import version

    return (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, pydantic-ai-slim {version('pydantic-ai-slim')}; "
        "processor time, medians of interleaved runs"
    )


def main(arguments: list[str]) -> int:
    """Run the benchmarks named, or all."""
    save = "--save" in arguments
    wanted = [name for name in arguments if not name.startswith("-")] or NAMES
    lines = [describe(), ""]
    figures: list[Figure] = []
    print(lines[0])
    for name in wanted:
        for figure in importlib.import_module(f"benchmarks.{name}").main():
            figures.append(figure)
            lines.append(str(figure).rstrip())
            print(figure, flush=True)
    if save:
        Path(__file__).with_name("results.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
