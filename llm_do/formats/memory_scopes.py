"""Who shares what agents remember: the runs of a thread, those of a user, or all of a project."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

__all__ = ["MEMORY_SCOPES", "MemoryScope"]

MemoryScope: TypeAlias = Literal["thread", "user", "project"]

MEMORY_SCOPES: tuple[MemoryScope, ...] = get_args(MemoryScope)
"""Every scope, the narrowest first."""
