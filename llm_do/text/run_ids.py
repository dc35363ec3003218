"""Ids of runs as people see them; every command takes what is shown."""

from __future__ import annotations

import re

__all__ = ["short_run_id"]

GENERATED = re.compile("[0-9a-f]{32}")


def short_run_id(run_id: str) -> str:
    """Return the beginning of a generated id, which is unique; an id that somebody chose is returned unchanged.

    The runs of a batch have its id and a number, so the beginning of one is that of all.

    Args:
        run_id: The run's id.

    Example:
        >>> short_run_id("7f3a91c05e6b4d2f8a90b1c2d3e4f506"), short_run_id("letters-2026-1")
        ('7f3a91c05e6b', 'letters-2026-1')
    """
    return run_id[:12] if GENERATED.fullmatch(run_id) else run_id
