"""Python warnings: those of libraries that are suppressed, and our own, which name the line of the caller's code."""

from __future__ import annotations

import re
import warnings
from itertools import takewhile

__all__ = ["suppress_warning", "warn_caller"]


def suppress_warning(message: str | re.Pattern[str], category: type[Warning]) -> None:
    """Suppress warnings that begin with a text, or match a pattern, from now on.

    Changing the filters makes Python forget which warnings it has shown already, so they are changed only if one that
    this function hasn't made has been put in front since.

    Example:
        >>> suppress_warning("Could not read", UserWarning)
        >>> warnings.warn("Could not read the mind of it", UserWarning)
    """
    pattern = re.escape(message) if isinstance(message, str) else message.pattern
    wanted = ("ignore", re.compile(pattern, re.IGNORECASE), category, None, 0)
    _MADE.add(wanted)
    if wanted not in takewhile(_MADE.__contains__, warnings.filters):
        warnings.filterwarnings("ignore", pattern, category)


_MADE: set[object] = set()
"""The filters that `suppress_warning` makes."""


def warn_caller(message: str) -> None:
    """Warn of something in the code that called the package, with the line of the call.

    Args:
        message: The warning.
    """
    import asyncio
    from inspect import currentframe
    from pathlib import Path

    # Frames that a caller doesn't know: those of the package, and of the event loop that it starts.
    between = tuple(f"{Path(file).parent}/" for file in (__file__, asyncio.__file__))
    level, frame = 1, currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(between):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
