"""`python -m benchmarks [NAME ...]`: measure and print the report.

Exits with 1 if a target is missed, or a ratio is more than a tenth worse than in `results.txt`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from pathlib import Path

from benchmarks.measure import read_report

NAMES = (
    "startup",
    "whole_run",
    "peers",
    "in_process",
    "long_runs",
    "batches",
    "flows",
    "threads",
    "writers",
    "toolkits",
    "decide",
    "link",
    "memory",
    "blocks",
    "cassettes",
)

REPORT = Path(__file__).with_name("results.txt")


def describe() -> str:
    """Describe the machine that the figures come from."""
    from importlib.metadata import version

    return (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, pydantic-ai-slim {version('pydantic-ai-slim')}; "
        "processor time, medians of the ratios of interleaved runs"
    )


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all of them.

    Raises:
        SystemExit: The benchmark or option is unknown, or help was requested.
    """
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description="Measure and print the report.", allow_abbrev=False
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; all of them by default")
    parser.add_argument("--save", action="store_true", help=f"write the report into benchmarks/{REPORT.name} too")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(NAMES)}")
    before = {figure.name: figure for figure in read_report(REPORT.read_text("utf-8"))} if REPORT.exists() else {}
    measured = dict(before)
    good = True
    print(describe())
    for name in options.names or NAMES:
        for figure in importlib.import_module(f"benchmarks.{name}").main():
            known = before.get(figure.name)
            worse = figure.worse_than(known)
            good = good and figure.met and not worse
            measured[figure.name] = figure
            print(str(figure).rstrip() + (f"  WORSE, was {known.value:.3f}" if worse and known else ""), flush=True)
    if options.save:
        lines = [describe(), "", *(str(figure).rstrip() for figure in measured.values())]
        REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
