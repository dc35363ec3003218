"""Suppressing warnings of libraries about things that llm-do does on purpose."""

from __future__ import annotations

import re
import warnings
from itertools import takewhile

__all__ = ["suppress_warning"]


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
