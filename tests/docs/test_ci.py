"""`.ci/run` continues after a failure and reports what was skipped and failed; all tools are stand-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOOLS = """\
#!/bin/sh
case "$0 $*" in
    *"$CI_FAILS"*) exit 1 ;;
    *" -c import sys"*) exit 1 ;;
    *" -m venv "* | *.ready*) for last; do :; done
        folder=${last%%/.ready}
        mkdir -p "$folder/bin"
        for tool in python ruff pyright lint-imports llm-do; do cp "$0" "$folder/bin/$tool"; done ;;
    *" slow") echo "===== 100 passed, 12 skipped in 3.00s =====" ;;
    *pytest*) echo "5 passed in 1.00s" ;;
esac
"""
"""A stand-in for every tool: it fails on request, creates environments, and prints what pytest would."""


def run(folder: Path, fails: str) -> subprocess.CompletedProcess[str]:
    """Run the script with stand-ins for `make` and every interpreter."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    programs = folder / "programs"
    programs.mkdir()
    for name in ("make", "python3", "python3.12", "python3.13", "pyenv", "bwrap", "initdb", "chromium"):
        (programs / name).write_text(TOOLS)
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "CI_FAILS": fails, "TMPDIR": str(folder)}
    return subprocess.run(
        ["sh", str(folder / ".ci" / "run")], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    ("fails", "code", "failed"),
    [
        ("no such step", 0, "failed: nothing"),
        ("ruff check", 1, "failed: [ruff]"),
        ("-m slow", 1, "failed: [slow tests]"),
    ],
)
def test_the_script_continues_after_a_failure_and_reports_it(
    fails: str, code: int, failed: str, tmp_path: Path
) -> None:
    ended = run(tmp_path, fails)

    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (code, failed)
    assert ended.stdout.count("\n== ") == 16
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ci", ".ci-venv", "programs"]


def test_the_script_counts_what_was_skipped(tmp_path: Path) -> None:
    line = run(tmp_path, "no such step").stdout.splitlines()[-2]

    absent = "".join(f" [Python {version}: not on this machine]" for version in ("3.12", "3.13"))
    assert line == f"skipped:{absent} [slow tests: 12 tests]"
