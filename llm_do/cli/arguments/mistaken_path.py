"""Whether a word, where there is no project, is meant as one: every command line asks this, so it imports little."""

from __future__ import annotations

import os
import re

from llm_do.errors import UsageError
from llm_do.text.words import closest_match

__all__ = ["mistaken_path"]

_WORD = re.compile(r"[A-Za-z0-9_.~-]+")


def mistaken_path(word: str, *, named: bool) -> UsageError | None:
    """The error about a word that looks more like a mistyped project than like a prompt; None for a prompt.

    Args:
        word: The only argument, where there is no project.
        named: Whether the command line names a model: then a single word may be a prompt.
    """
    if _WORD.fullmatch(word) is None:
        return None
    close = closest_match(word, _neighbours(), spelling_only=True)
    if close is None and named:
        return None
    prompt = f'If it is a prompt, write: llm-do run --model PROVIDER:NAME "{word}"'
    if close is not None:
        prompt = f"Did you mean `{close}`? If it is a prompt, pass it on stdin."
    return UsageError(f"no project here, and no project at {word!r}", hint=prompt)


def _neighbours() -> list[str]:
    """What the current folder has that could be meant by a project's name."""
    try:
        found = [entry.name for entry in os.scandir() if entry.is_dir() or entry.name.endswith((".agent", ".json"))]
    except OSError:
        return []
    return [name for name in found if not name.startswith(".")]
