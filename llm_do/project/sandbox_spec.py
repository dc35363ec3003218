"""`SandboxSpec`: how a project's commands that run without approval are confined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llm_do._startup.frozen import frozen

__all__ = ["SandboxMode", "SandboxSpec"]

SandboxMode = Literal["auto", "required", "off"]


@frozen
class SandboxSpec:
    """The manifest's `sandbox`.

    Args:
        mode: `auto` confines commands where the machine can, `required` lets none run unasked where it can't, `off`
            confines none.
        writable: Folders outside the project in which commands may write, and `.git` for those that commit.
        readable: Globs of the project's files that may hold secrets, and paths in the home folder (`~/.kube`), that
            commands may read anyway.
    """

    mode: SandboxMode = "auto"
    writable: Sequence[str] = ()
    readable: Sequence[str] = ()
