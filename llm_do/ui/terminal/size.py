"""The size of a terminal."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["terminal_size"]


def terminal_size(number: int = 2) -> tuple[int, int]:
    """Columns and rows of the terminal behind a file descriptor; 80 and 24 if unknown."""
    with suppress(OSError):
        size = os.get_terminal_size(number)
        return size.columns or 80, size.lines or 24
    return 80, 24
