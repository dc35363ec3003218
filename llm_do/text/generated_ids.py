"""Ids of runs, messages and revisions: unique, not secret; and those of runs as people see them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence

from llm_do.text.sanitizer import sanitize

__all__ = ["MOST_LISTED", "WRITE_MORE", "new_id", "several_begin_alike", "short_run_id"]

DIGITS = 32

SLOTS_PER_SECOND = 16
"""How often the first four digits of new ids change; they come round after 68 minutes."""

RANDOM_BYTES = 14

AT_ONCE = 256
"""Ids whose randomness is asked for together. Asking the system lets other threads run, and then waits for them."""

MOST_LISTED = 5
"""Ids that are listed where several begin alike."""

WRITE_MORE = "Write more of the id."
"""What to do where several begin alike."""

GENERATED = re.compile(f"[0-9a-f]{{{DIGITS}}}")

_random: list[str] = []


def new_id() -> str:
    """Create the id of a run or a message, or a revision.

    The first four of its 32 hexadecimal digits are the time. So what is written at about the same time lies together in
    an index, and one page of it is written where random ids would need one each. Ids of UUID's version 7
    (RFC 9562, 5.7) do the same with twelve digits, but then the beginning that people see would be the time alone.

    Example:
        >>> len(new_id()), new_id() == new_id()
        (32, False)
    """
    slot = int(time.time() * SLOTS_PER_SECOND) & 0xFFFF
    return f"{slot:04x}{_random_digits()}"


def short_run_id(run_id: str) -> str:
    """Return the beginning of a generated id, which is unique; an id that somebody chose is returned unchanged.

    The runs of a batch have its id and a number, so the beginning of one is that of all.

    Args:
        run_id: The run's id. Every command takes what is returned for it.

    Example:
        >>> short_run_id("7f3a91c05e6b4d2f8a90b1c2d3e4f506"), short_run_id("letters-2026-1")
        ('7f3a91c05e6b', 'letters-2026-1')
    """
    return run_id[:12] if GENERATED.fullmatch(run_id) else run_id


def several_begin_alike(what: str, beginning: str, ids: Sequence[str]) -> str:
    """Say that the beginning of an id is that of several, and list them.

    Example:
        >>> several_begin_alike("runs", "7f", ["7f3a", "7f90"])
        "several runs have ids that begin with '7f': 7f3a, 7f90"
    """
    more = " and more" if len(ids) > MOST_LISTED else ""
    return f"several {what} have ids that begin with {beginning!r}: {', '.join(map(sanitize, ids[:MOST_LISTED]))}{more}"


def _random_digits() -> str:
    try:
        return _random.pop()
    except IndexError:
        text = os.urandom(RANDOM_BYTES * AT_ONCE).hex()
        first, *others = (text[at : at + 2 * RANDOM_BYTES] for at in range(0, len(text), 2 * RANDOM_BYTES))
        _random.extend(others)
        return first


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.clear)  # the parent uses them
