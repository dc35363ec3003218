"""What is taken out of a recording: secrets, the project's folder, and text that a test says changes by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from llm_do.errors import UsageError
from llm_do.runtime.record.canonical_messages import canonical_text

__all__ = ["PROJECT", "Masks"]

PROJECT = "<project>"
"""Stands for the path of the project's folder."""

_WRITTEN = re.compile("<project(-*)>")
"""The same, written by a model or a person; a dash says so."""

IGNORED = "<ignored>"
"""Stands for text that an `ignore` pattern matches."""


class Masks:
    """Cleans the JSON text of messages and setups.

    Args:
        root: The project's folder.
        redact: Removes secrets from JSON text.
        ignore: Regular expressions of text that counts as equal.

    Raises:
        UsageError: A pattern isn't a regular expression.

    Example:
        >>> Masks(Path("/home/ann/desk"), str)('{"content":"read /home/ann/desk/a.txt"}')
        '{"content":"read <project>/a.txt"}'
        >>> Masks(Path("/home/ann/desk"), str)('{"content":"open the <project>"}')
        '{"content":"open the <project->"}'
    """

    def __init__(self, root: Path, redact: Callable[[str], str], ignore: Sequence[str] = ()) -> None:
        roots = {json.dumps(str(path), ensure_ascii=False)[1:-1] for path in (root.absolute(), root.resolve())}
        longest = sorted((path for path in roots if path != "/"), key=len, reverse=True)
        # The path of a neighbour may begin with the project's: `/desk` and `/desk-2`.
        self._root = re.compile(f"(?:{'|'.join(map(re.escape, longest))})(?![\\w.-])") if longest else None
        self._redact = redact
        self._ignore = [_compiled(pattern) for pattern in ignore]
        self._place = json.dumps(str(root.absolute()), ensure_ascii=False)[1:-1]

    def __call__(self, text: str) -> str:
        """A request's text without secrets, machine and moving parts; JSON stays JSON."""
        text = self.portable(text)
        if self._ignore:
            text = canonical_text(self._ignored(json.loads(text)))
        return text

    def portable(self, text: str) -> str:
        """An answer's text without secrets and machine."""
        text = _WRITTEN.sub(r"<project-\1>", self._redact(text))
        return self._root.sub(PROJECT, text) if self._root is not None else text

    @property
    def ignores(self) -> bool:
        """Whether there are `ignore` patterns."""
        return bool(self._ignore)

    def without_ignored(self, data: Any) -> Any:
        """Recorded data as the patterns of today leave it."""
        return self._ignored(data) if self._ignore else data

    def here(self, text: str) -> str:
        """JSON text with the project's folder put back."""
        return _WRITTEN.sub(lambda found: f"<project{found[1][1:]}>" if found[1] else self._place, text)

    def _ignored(self, data: object) -> object:
        if isinstance(data, str):
            for pattern in self._ignore:
                data = pattern.sub(IGNORED, data)
            return data
        if isinstance(data, dict):
            return {name: self._ignored(value) for name, value in cast("dict[str, object]", data).items()}
        if isinstance(data, list):
            return [self._ignored(value) for value in cast("list[object]", data)]
        return data


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{pattern!r} is not a regular expression: {error}",
            hint="Correct the pattern; a date is `\\d{4}-\\d{2}-\\d{2}`.",
        ) from error
