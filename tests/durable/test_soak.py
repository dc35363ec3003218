"""The soak of the benchmarks, for a short while: everything at once on one store, with kills, loses nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import missing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it finds processes in /proc"),
]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_short_soak_finds_no_fault(database: str, tmp_path: Path) -> None:
    if database == "postgres" and (reason := missing()) is not None:
        pytest.skip(reason)
    words = ["--minutes", "0.4", "--pace", "2", "--database", database, "--folder", str(tmp_path / "soak")]

    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *words], cwd=ROOT, capture_output=True, text=True, timeout=900
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line.split(": ", 1)[1] for line in ended.stdout.splitlines() if ": " in line]
    assert "effects repeated: 0 of" in ended.stdout
    assert any(line.startswith("runs by status: ") and "completed" in line for line in lines), lines
    assert any(line.startswith("process ") and "killed" in line for line in lines), lines


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()

    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )

    assert ended.returncode == 2
    assert f"{tmp_path} isn't empty" in ended.stderr
