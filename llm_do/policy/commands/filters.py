"""Filters: commands that read only what the command before them prints, and do nothing but print a part of it."""

from __future__ import annotations

import re

from llm_do.policy.commands.command_reading import read_command

__all__ = ["FILTERS", "is_filter"]

_TEXT = (
    "cat",
    "column",
    "cut",
    "expand",
    "fold",
    "head",
    "jq",
    "nl",
    "rev",
    "sed",
    "sort",
    "tac",
    "tail",
    "tr",
    "uniq",
    "wc",
)
_GREPS = ("grep", "egrep", "fgrep")

FILTERS = frozenset(_TEXT + _GREPS)
"""Programs that read their standard input where no file is named."""

_RECURSIVE = re.compile(r"-[^-]*[rRd]|--(rec|der|dir)")
_ENVIRONMENT = re.compile("env", re.IGNORECASE)


def is_filter(argv: tuple[str, ...]) -> bool:
    """Whether a command does nothing but print a part of its standard input, in an order of its own.

    Example:
        >>> [is_filter(tuple(line.split())) for line in ("tail -20", "grep -i error", "grep -r x", "head -5 notes.txt")]
        [True, True, False, False]
    """
    if argv[0] not in FILTERS:
        return False
    reading = read_command(argv)
    if not reading.reads or any(piece.role not in ("option", "text") for piece in reading.pieces):
        return False
    if argv[0] in _GREPS:  # which read the whole folder then
        return not any(piece.role == "option" and _RECURSIVE.match(piece.text) for piece in reading.pieces)
    return argv[0] != "jq" or not any(_ENVIRONMENT.search(piece.text) for piece in reading.pieces)
