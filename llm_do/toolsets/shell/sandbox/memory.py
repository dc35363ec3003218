"""The limit on the memory of a command that runs without approval: a short pattern can make `grep` use all of it."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Sequence

from llm_do.toolsets.shell.sandbox.bubblewrap import PROGRAM_FOLDERS

__all__ = ["MEMORY", "limit_memory"]

MEMORY = 4 * 1024**3
"""Bytes of address space for a command that only reads."""


def limit_memory(argv: Sequence[str]) -> list[str]:
    """Limit a command to `MEMORY`, or to this process's own limit, if the machine has `prlimit` (util-linux)."""
    program = _prlimit()
    if program is None:
        return list(argv)
    import resource  # There is none on Windows.

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    return [program, f"--as={most}", "--", *argv]


@functools.cache
def _prlimit() -> str | None:
    return shutil.which("prlimit", path=os.pathsep.join(PROGRAM_FOLDERS)) if sys.platform == "linux" else None
