"""What may be written to the terminal, by what it can do and what the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["can_animate", "is_plain", "wants_color"]


def is_plain(environ: Mapping[str, str]) -> bool:
    """Whether the environment says that nobody watches (`CI`), or that the terminal can't do anything (`TERM`)."""
    return environ.get("TERM", "dumb") in ("dumb", "") or bool(environ.get("CI"))


def can_animate(environ: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal on which a line may be written over."""
    return os.isatty(2) and not is_plain(environ)


def wants_color(environ: Mapping[str, str], *, no_color: bool = False) -> bool:
    """Whether stderr may be coloured."""
    return not no_color and not environ.get("NO_COLOR") and can_animate(environ)
