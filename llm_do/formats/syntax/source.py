"""Text with locations: reading a file, and the tree of nodes that YAML and JSON both become.

A `Node` knows its location; `Node.data` is plain data. `llm_do.formats.syntax.yaml_nodes` and
`llm_do.formats.syntax.json_nodes` make nodes, `llm_do.formats.validation.validator` validates them.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from llm_do._bounded_files import open_ordinary
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import files as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location

__all__ = [
    "MAX_DEPTH",
    "AmbiguousScalar",
    "KeyPath",
    "Node",
    "NodeResult",
    "Plain",
    "ReadResult",
    "Scalar",
    "Source",
    "decode",
    "format_key_path",
    "key_place_in",
    "lines_of",
    "place_in",
    "read_text",
    "text_fault",
]

MAX_BYTES = 4 * 1024 * 1024
"""Longest file that is read: far above any real one, small enough to answer at once."""

MAX_DEPTH = 100
"""Deepest nesting of lists and mappings."""

_BREAK = re.compile(r"\r\n|\r|\n")
_SURROGATE = "[\ud800-\udfff]"

KeyPath: TypeAlias = "tuple[str | int, ...]"
"""The way from the root to a value: keys and indexes."""

Scalar: TypeAlias = "str | int | float | bool | AmbiguousScalar | None"

Plain: TypeAlias = "Scalar | list[Plain] | dict[str, Plain]"
"""Data without locations, with an `AmbiguousScalar` where YAML's versions disagree about a value."""


@frozen
class AmbiguousScalar:
    """An unquoted YAML scalar that is text to one reader and something else to another, such as `no`.

    Args:
        text: The scalar as written.
        meaning: What the other reader makes of it, such as "false".
    """

    text: str
    meaning: str


class Source:
    """The text of one file, and the way from an offset in it to a line and a column.

    Args:
        file: How the file is named in diagnostics.
        text: Its text, without a byte-order mark; line ends as they are.

    Example:
        >>> Source("a.txt", "one\\r\\ntwo").place(5, 8)
        Location(file='a.txt', line=2, column=1, end_line=2, end_column=4)
    """

    __slots__ = ("_starts", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._starts: list[int] | None = None

    def _lines(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *(found.end() for found in _BREAK.finditer(self.text))]
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character offset."""
        starts = self._lines()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_start(self, line: int) -> int:
        """Offset of the first character of a line, counted from 1."""
        return self._lines()[line - 1]

    def line(self, line: int) -> str:
        """The text of a line, counted from 1, without its end."""
        return _BREAK.split(self.text[self.line_start(line) :], maxsplit=1)[0]

    def place(self, start: int, end: int | None = None) -> Location:
        """The location of the characters from `start` up to `end`; of one point when `end` is None."""
        line, column = self.position(start)
        if end is None or end < start:
            return Location(self.file, line, column)
        end_line, end_column = self.position(end)
        return Location(self.file, line, column, end_line, end_column)


_NO_ENTRIES: dict[str, Node] = {}
_NO_KEYS: dict[str, tuple[int, int]] = {}


class Node:
    """One value and its location. It doesn't change once it is built, and is shared where a YAML alias repeats it.

    A plain class: thousands are built while linking, and a frozen dataclass would make each three times as expensive.

    Args:
        source: The text that it is part of.
        start: Offset of its first character.
        end: Offset after its last character.
        kind: Mapping, sequence or scalar.
        scalar: A scalar's value; None otherwise.
        entries: A mapping's values.
        keys: A mapping's keys, each with the offsets of its start and end.
        items: A sequence's values.
        plain: Whether it is a YAML scalar written without quotes.

    Example:
        >>> from llm_do.formats.syntax.json_nodes import parse_json
        >>> node = parse_json('{"entry": {"agent": "main"}}', "project.json").node
        >>> node.at(("entry", "agent")).place.column
        21
        >>> node.key_place(("entry",)).column
        2
        >>> node.data()
        {'entry': {'agent': 'main'}}
    """

    __slots__ = ("end", "entries", "items", "keys", "kind", "plain", "scalar", "source", "start")

    def __init__(
        self,
        source: Source,
        start: int,
        end: int,
        kind: Literal["mapping", "sequence", "scalar"],
        scalar: Scalar = None,
        plain: bool = False,
        entries: dict[str, Node] = _NO_ENTRIES,
        keys: dict[str, tuple[int, int]] = _NO_KEYS,
        items: Sequence[Node] = (),
    ) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.kind = kind
        self.scalar = scalar
        self.plain = plain
        self.entries = entries
        self.keys = keys
        self.items = items

    @property
    def text(self) -> str:
        """The value as written."""
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> Location:
        """The location of the value."""
        return self.source.place(self.start, self.end)

    def at(self, loc: KeyPath) -> Node | None:
        """The node at a path below this one, None when there is none."""
        node = self
        for part in loc:
            if isinstance(part, str):
                found = node.entries.get(part)
            else:
                found = node.items[part] if 0 <= part < len(node.items) else None
            if found is None:
                return None
            node = found
        return node

    def place_of(self, loc: KeyPath) -> Location:
        """The location of the value at a path, or of the nearest value around it."""
        while True:
            node = self.at(loc)
            if node is not None:
                return node.place
            loc = loc[:-1]

    def key_place(self, loc: KeyPath) -> Location:
        """The location of the key that a path ends with, or of the value when it ends with an index."""
        if loc and isinstance(loc[-1], str):
            parent = self.at(loc[:-1])
            span = parent.keys.get(loc[-1]) if parent is not None else None
            if span is not None:
                return self.source.place(*span)
        return self.place_of(loc)

    def data(self) -> Plain:
        """The value as plain data: new dicts and lists every time."""
        if self.kind == "scalar":
            return self.scalar
        if self.kind == "mapping":
            return {key: node.data() for key, node in self.entries.items()}
        return [node.data() for node in self.items]

    def walk(self, loc: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
        """Every node from this one downwards, parents first, each with its path."""
        yield loc, self
        for key, node in self.entries.items():
            yield from node.walk((*loc, key))
        for index, node in enumerate(self.items):
            yield from node.walk((*loc, index))


@frozen
class NodeResult:
    """The tree of a text, and what is wrong with it.

    Args:
        node: The root, None when the text can't be read as its format. Present together with diagnostics
            where parsing could continue, as after a duplicate key.
        diagnostics: Everything that was found.
        ambiguous: Whether any scalar in the tree is an `AmbiguousScalar`.
    """

    node: Node | None
    diagnostics: tuple[Diagnostic, ...] = ()
    ambiguous: bool = False


@frozen
class ReadResult:
    """A file's text, or what is wrong with it.

    Args:
        text: The text without a byte-order mark, None when it can't be read.
        diagnostics: Why not.
    """

    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def read_text(path: Path, file: str | None = None) -> ReadResult:
    """Read a file as UTF-8, whatever the locale."""
    file = path.as_posix() if file is None else file
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a folder" if os.path.isdir(path) else "not a regular file"
            return ReadResult(None, (problems.unreadable_file(f"it is {kind}").at(Location(file)),))
        with open_ordinary(path) as stream:  # what is there may be another file by now
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ReadResult(None, (problems.unreadable_file(reason).at(Location(file)),))
    return decode(data, file)


def decode(data: bytes, file: str) -> ReadResult:
    """Decode a file's bytes as UTF-8.

    Example:
        >>> decode(b"caf\\xe9", "a.agent").diagnostics[0].message
        'the file is not UTF-8: byte 0xe9 at offset 3'
    """
    if len(data) > MAX_BYTES:
        return ReadResult(None, (_too_long(file),))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        place = Source(file, before + "?").place(len(before), len(before) + 1)
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        return ReadResult(None, (problems.not_utf8(data[error.start], error.start, utf16=utf16).at(place),))
    return ReadResult(text.removeprefix("\ufeff"))


def _too_long(file: str) -> Diagnostic:
    return problems.long_file(MAX_BYTES).at(Location(file))


def text_fault(
    source: Source, forbidden: re.Pattern[str] | None = None, start: int = 0, end: int | None = None
) -> Diagnostic | None:
    """Find what makes a text unreadable: its length, or a character."""
    if len(source.text) > MAX_BYTES:
        return _too_long(source.file)
    if forbidden is None and source.text.isascii():
        return None
    found = (forbidden or re.compile(_SURROGATE)).search(source.text, start, len(source.text) if end is None else end)
    if found is None:
        return None
    return problems.forbidden_character(found.group()).at(source.place(found.start(), found.end()))


def lines_of(text: str) -> list[str]:
    """Split text at LF, CRLF and CR, and at nothing else.

    Example:
        >>> lines_of("a\\r\\nb\\x0bc\\n")
        ['a', 'b\\x0bc', '']
    """
    return _BREAK.split(text)


def format_key_path(loc: Sequence[str | int]) -> str:
    """Write a path as it is written in messages.

    Example:
        >>> format_key_path(("toolsets", 0, "docs", "root"))
        'toolsets[0].docs.root'
    """
    shown = ""
    for part in loc:
        shown += f"[{part}]" if isinstance(part, int) else (f".{part}" if shown else part)
    return shown


def place_in(node: Node | None, label: str, loc: KeyPath) -> Location:
    """The place of a value in a file; the file itself if it has no nodes."""
    return node.place_of(loc) if node is not None else Location(label)


def key_place_in(node: Node | None, label: str, loc: KeyPath) -> Location:
    """The place of a key in a file; the file itself if it has no nodes."""
    return node.key_place(loc) if node is not None else Location(label)
