"""Large JSON, read in parts, so that a thread that reads it doesn't hold up the others.

A call into native code keeps the interpreter's lock until it returns: parsing ten million bytes in one go stops every
other thread, and with them the event loop, for up to seconds. `text.large_data` writes JSON the same way.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

__all__ = ["read_large_json"]

_WINDOW = 65_536
"""Bytes that are parsed in one go, without a noticeable pause."""

_DEEPEST = 200
"""Levels of nesting, as many as Pydantic's own parser reads."""

_MOST_CONTAINERS = 200_000
"""Lists and objects, brackets in texts among them: the garbage collector looks at all of them in one go."""

_CONTAINERS = frozenset({list, dict})

_PIECE = re.compile(rb'(?:[^"\\]{1,8192}+|\\u[dD][89abAB]..(?:\\u[dD][c-fC-F]..)?+|\\u....|\\[^u]){1,32}+', re.DOTALL)
"""A piece of a text in quotes that doesn't end within an escape."""

_scan: Callable[[str, int], tuple[Any, int]] = cast("Any", json.JSONDecoder()).scan_once


def read_large_json(data: bytes | str) -> Any:
    """Return what JSON stands for, like `json.loads`.

    Raises:
        ValueError: It isn't JSON, is nested more deeply than 200 levels, or has more than 200,000 lists and objects.

    Example:
        >>> read_large_json(b'{"rows": [1, 2.5, null], "text": "a"}')
        {'rows': [1, 2.5, None], 'text': 'a'}
    """
    reader = _Reader(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    try:
        value = reader.read(0)
    except RecursionError:
        raise _too_deep() from None
    reader.expect_end()
    _check_depth(value)
    return value


class _Reader:
    """A window on the data, which moves on; what is larger than the window is read member by member."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._start = 0
        self._text = ""
        self._at = 0
        self._is_last = False
        self._containers = 0
        self._open(0)

    def read(self, depth: int) -> Any:
        """Read the value that comes next."""
        self._skip_space()
        while True:
            text, at = self._text, self._at
            try:
                value, end = _scan(text, at)
            except (StopIteration, ValueError):
                value, end = None, -1
            # A number that ends where the window ends may have more digits.
            if end >= 0 and (self._is_last or (end < len(text) and text[end] not in ".eE")):
                if value.__class__ in _CONTAINERS:
                    self._count(text.count("[", at, end) + text.count("{", at, end))
                self._at = end
                return value
            if self._at == 0:
                break
            self._advance()
        return self._read_long(depth)

    def expect_end(self) -> None:
        """Raise `ValueError` if anything else follows."""
        self._skip_space()
        if self._at < len(self._text):
            raise self._unexpected()

    def _read_long(self, depth: int) -> Any:
        """Read a value that fills the window, or is no value."""
        opening = self._text[:1]
        if depth >= _DEEPEST:
            raise _too_deep()
        self._count(1)
        if opening == "[":
            self._at = 1
            return self._read_items(depth + 1)
        if opening == "{":
            self._at = 1
            return self._read_members(depth + 1)
        if opening == '"':
            return self._read_text()
        raise self._unexpected()

    def _read_items(self, depth: int) -> list[Any]:
        items: list[Any] = []
        if self._has("]"):
            return items
        while True:
            items.append(self.read(depth))
            if self._take("],") == "]":
                return items

    def _read_members(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if self._has("}"):
            return members
        while True:
            key = self.read(depth)
            if not isinstance(key, str):
                raise self._unexpected()
            self._take(":")
            members[key] = self.read(depth)
            if self._take("},") == "}":
                return members

    def _read_text(self) -> str:
        """Read a long text; the window begins with its opening quote."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
        parts: list[str] = []
        at = self._start + 1
        while (piece := _PIECE.match(self._data, at)) is not None:
            at = piece.end()
            parts.append(json.loads(f'"{decoder.decode(piece[0])}"'))
        decoder.decode(b"", final=True)
        if self._data[at : at + 1] != b'"':
            raise ValueError("a text in the JSON has no end")
        self._open(at + 1)
        return "".join(parts)

    def _count(self, containers: int) -> None:
        self._containers += containers
        if self._containers > _MOST_CONTAINERS:
            raise ValueError(f"the JSON has more than {_MOST_CONTAINERS} lists and objects")

    def _has(self, closing: str) -> bool:
        """Whether a container is empty; its end is skipped."""
        self._skip_space()
        if self._text[self._at : self._at + 1] != closing:
            return False
        self._at += 1
        return True

    def _take(self, expected: str) -> str:
        """Skip the mark that comes next, and return it."""
        mark = self._text[self._at : self._at + 1]
        if not mark or mark not in expected:
            self._skip_space()
            mark = self._text[self._at : self._at + 1]
            if not mark or mark not in expected:
                raise self._unexpected()
        self._at += 1
        return mark

    def _skip_space(self) -> None:
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in " \t\n\r":
                at += 1
            self._at = at
            if at < len(text) or self._is_last:
                return
            self._advance()

    def _advance(self) -> None:
        """Move the window to what comes next."""
        self._open(self._start + len(self._text[: self._at].encode("utf-8", "surrogatepass")))

    def _open(self, start: int) -> None:
        piece = self._data[start : start + _WINDOW]
        self._is_last = start + _WINDOW >= len(self._data)
        text, _ = codecs.utf_8_decode(piece, "surrogatepass", self._is_last)
        self._start, self._text, self._at = start, text, 0

    def _unexpected(self) -> ValueError:
        return ValueError(f"the JSON has an unexpected {self._text[self._at : self._at + 20]!r}")


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(_DEEPEST + 1):
        level = [part for each in level for part in _parts(each) if isinstance(part, dict | list)]
        if not level:
            return
    raise _too_deep()


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _too_deep() -> ValueError:
    return ValueError(f"the JSON is nested more deeply than {_DEEPEST} levels")
