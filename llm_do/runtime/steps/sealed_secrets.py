"""Secrets in the steps of durable runs: sealed before they are written, and put back from the environment when read.

A mark names the variable and has a salted digest of its value, so that a changed key is noticed instead of being
replaced silently.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping

from llm_do.errors import ReplayError
from llm_do.text.large_data.replacement import replace_matches

__all__ = ["Seal"]

_MARK = re.compile(r"⟦secret ([A-Za-z0-9_]+) ([0-9a-f]{16}):([0-9a-f]{16})⟧")

_LONGEST_MARK = 1024
"""Characters of a mark: the name of a variable is the only part of any length."""


class Seal:
    """Seals the secrets of one environment.

    Args:
        secrets: The secrets, each with the name of its variable.

    Example:
        >>> seal = Seal({"sk-123456789": "ACME_API_KEY"})
        >>> "sk-123456789" in seal.close('{"args": "sk-123456789"}')
        False
        >>> seal.open(seal.close('{"args": "sk-123456789"}'))
        '{"args": "sk-123456789"}'
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = secrets
        longest = sorted(self._names, key=len, reverse=True)
        self._longest = len(longest[0]) if longest else 0
        self._pattern = re.compile("|".join(map(re.escape, longest))) if longest else None

    def close(self, text: str) -> str:
        """Replace the secrets in JSON text by marks."""
        if self._pattern is None:
            return text
        return replace_matches(self._pattern, self._mark, text, self._longest)

    def open(self, text: str) -> str:
        """Put the secrets back.

        Raises:
            ReplayError: The environment doesn't have one of them any more, or has another value.
        """
        return replace_matches(_MARK, self._value, text, _LONGEST_MARK) if "⟦secret " in text else text

    def _mark(self, found: re.Match[str]) -> str:
        salt = os.urandom(8).hex()
        return f"⟦secret {self._names[found[0]]} {salt}:{_digest(salt, found[0])}⟧"

    def _value(self, found: re.Match[str]) -> str:
        for value, name in self._names.items():
            if name == found[1] and _digest(found[2], value) == found[3]:
                return value
        raise ReplayError(
            f"a step of the run had the value of {found[1]}, which isn't set or has another value now",
            hint=f"Set {found[1]} as it was when the run began.",
        )


def _digest(salt: str, value: str) -> str:
    return hashlib.sha256(f"{salt}{json.dumps(value)}".encode()).hexdigest()[:16]
