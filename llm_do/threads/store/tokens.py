"""Ids of messages and revisions: unique, not secret."""

from __future__ import annotations

import os

__all__ = ["new_token"]

BYTES = 16

AT_ONCE = 256
"""Tokens that are made together. Asking the system for randomness lets other threads run, and then waits for them."""

_ready: list[str] = []


def new_token() -> str:
    """Create a revision or a message id."""
    try:
        return _ready.pop()
    except IndexError:
        text = os.urandom(BYTES * AT_ONCE).hex()
        first, *others = (text[at : at + 2 * BYTES] for at in range(0, len(text), 2 * BYTES))
        _ready.extend(others)
        return first


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ready.clear)  # the parent uses them
