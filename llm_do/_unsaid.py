"""Warnings of libraries that are not for those who use llm-do, because what they warn of is meant."""

from __future__ import annotations

import re
import warnings

__all__ = ["suppress_warning"]


def suppress_warning(message: str, category: type[Warning]) -> None:
    """Keep a warning from being told, from now on.

    A change of the filters lets every module tell again what it has told once: they are changed only where another
    filter has come before.

    Example:
        >>> suppress_warning("Could not read", UserWarning)
        >>> warnings.warn("Could not read the mind of it", UserWarning)
    """
    pattern = re.escape(message)
    if warnings.filters[:1] != [("ignore", re.compile(pattern, re.IGNORECASE), category, None, 0)]:
        warnings.filterwarnings("ignore", pattern, category)
