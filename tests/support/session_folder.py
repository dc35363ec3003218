"""The folder of a test session: what its processes keep outside the folders of tests, and their temporary files.

It goes with the session; that of a session that was killed goes with the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["left_by_llm_do", "make", "remove"]

_PREFIX = "tests-of-llm-do-"
_PATIENCE = 30
"""Seconds in which processes that are ending remove their folders."""

_locks: list[int] = []


def make() -> None:
    """Make the folder, and tell all processes of the session by their environment."""
    outer = Path(tempfile.gettempdir())
    for each in outer.glob(f"{_PREFIX}*"):
        _remove_if_abandoned(each)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _locks.append(os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600))
    fcntl.flock(_locks[-1], fcntl.LOCK_EX)
    folder.chmod(0o711)  # some tests run commands as another user
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    os.environ["TESTS_FOLDER"] = str(folder)
    # Folders of tests stay where pytest keeps those of the last sessions.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(outer))
    os.environ["TMPDIR"] = str(folder / "tmp")


def remove() -> None:
    """Remove the folder."""
    shutil.rmtree(os.environ["TESTS_FOLDER"], ignore_errors=True)


def left_by_llm_do() -> list[str]:
    """Return the names of llm-do's own folders that are still there when all processes have had time to end."""
    if (confinement := sys.modules.get("llm_do.toolsets.shell.sandbox.confinement")) is not None:
        confinement.remove_scratch_folders()
    deadline = time.monotonic() + _PATIENCE
    while (found := _found()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _found() -> list[str]:
    return sorted(path.name for path in Path(os.environ["TMPDIR"]).glob("llm-do-*"))


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a session's folder unless that session still holds its lock."""
    try:
        number = os.open(folder / "lock", os.O_RDWR)
    except OSError:  # it is being made or removed, or isn't ours
        return
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(number)
