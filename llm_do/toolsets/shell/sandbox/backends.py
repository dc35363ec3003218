"""Which sandbox works on this machine, found out once per process."""

from __future__ import annotations

import functools
import sys
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.toolsets.shell.sandbox import bubblewrap, landlock

__all__ = ["Backend", "SandboxStatus", "status"]

Backend = Literal["bubblewrap", "landlock"]


@frozen
class SandboxStatus:
    """Which sandbox confines commands that run without approval, and what it enforces, or why there is none.

    Args:
        active: Whether there is one.
        backend: `bubblewrap` or `landlock`; None if there is none.
        reason: What it enforces, or why there is none, in a sentence without a full stop.
    """

    active: bool
    backend: Backend | None
    reason: str


@functools.lru_cache(maxsize=1)
def status() -> SandboxStatus:
    """Check whether a sandbox works on this machine.

    Example:
        >>> status().active in (True, False)
        True
    """
    if not sys.platform.startswith("linux"):
        return _none(f"there is none on {sys.platform}")
    prefix, reason = bubblewrap.find_prefix()
    if prefix is not None:
        return SandboxStatus(active=True, backend="bubblewrap", reason=f"bubblewrap: {_ENFORCED}")
    if landlock.abi():
        found = f"Landlock ({reason}): {_ENFORCED}; new files only in folders without code"
        return SandboxStatus(active=True, backend="landlock", reason=found)
    return _none(f"{reason}, and the kernel has no Landlock")


_ENFORCED = "commands that run without approval can't change the project's code or .git, or read secrets"


def _none(why: str) -> SandboxStatus:
    return SandboxStatus(active=False, backend=None, reason=f"{why}: rules on commands are a convention, not a wall")
