"""Programs that a test's project names, as if they were installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["install_program"]


def install_program(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program that does nothing on the PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
