"""Prints the entries of a lock that would have allowed what no one could be asked about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llm_do.cli.process.streams import warn
from llm_do.formats.lock import FILE

__all__ = ["print_needed"]


def print_needed(needed: Sequence[Mapping[str, Any]]) -> None:
    """Print entries of a lock, ready to be pasted, each once."""
    entries = list(dict.fromkeys(json.dumps(entry, indent=2, sort_keys=True) for entry in needed))
    if entries:
        which = ("this entry", "it") if len(entries) == 1 else ("these entries", "them")
        warn(f"to allow exactly this, review {which[0]} and add {which[1]} to `approvals` in {FILE}:")
        warn(",\n".join(entries))
