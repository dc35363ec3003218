"""JSON to nodes: the standard parser's meaning, with locations, without duplicate keys, NaN or unlimited nesting.

What people write in JSON by habit although it isn't allowed (comments, trailing commas) is reported, and parsing
continues after it.
"""

from __future__ import annotations

import json
import re

from llm_do.diagnostics.codes import syntax as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.codes.files import deep_nesting, lone_surrogate
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import MAX_DEPTH, Node, NodeResult, Scalar, Source, text_fault
from llm_do.text.surrogates import has_surrogates

__all__ = ["parse_json"]

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = r"(?s://[^\r\n]*|#[^\r\n]*|/\*.*?(?:\*/|\Z))"
_OPEN_STRING = re.compile(r'"([^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+)')
_STRING = re.compile(_OPEN_STRING.pattern + '"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[-+]?[A-Za-z0-9_.$+-]+")
_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_NOT_JSON = {"NaN", "Infinity", "-Infinity", "+Infinity"}
_PYTHON = {"True": "true", "False": "false", "None": "null"}


def parse_json(text: str, file: str) -> NodeResult:
    """Read a JSON document.

    Example:
        >>> result = parse_json('{"a": [1, 2,]}', "project.json")
        >>> result.node.data(), [(item.code, item.column) for item in result.diagnostics]
        ({'a': [1, 2]}, [('LD105', 12)])
    """
    source = Source(file, text.removeprefix("\ufeff"))
    fault = text_fault(source)
    if fault is not None:
        return NodeResult(None, (fault,))
    scanner = _Scanner(source)
    try:
        node = scanner.document()
    except _Stop as stop:
        return NodeResult(None, (*scanner.diagnostics, stop.diagnostic))
    return NodeResult(node, tuple(scanner.diagnostics))


class _Stop(Exception):  # noqa: N818 (not an error: the way out of a document that can't be read on)
    def __init__(self, found: Diagnostic) -> None:
        super().__init__(found.message)
        self.diagnostic = found


class _Scanner:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at: int = 0
        self.diagnostics: list[Diagnostic] = []

    def document(self) -> Node:
        self.space()
        if self.at == len(self.text):
            raise self.stop(problems.empty_json())
        node = self.value(0)
        self.space()
        if self.at < len(self.text):
            raise self.stop(problems.text_after_document(self.shown()))
        return node

    def report(self, problem: Problem, start: int, end: int) -> None:
        self.diagnostics.append(problem.at(self.source.place(start, end)))

    def stop(self, problem: Problem) -> _Stop:
        end = min(self.at + 1, len(self.text))
        return _Stop(problem.at(self.source.place(self.at, end)))

    def shown(self) -> str:
        """The text at the current position, for a message."""
        if self.at >= len(self.text):
            return "the end of the file"
        found = _WORD.match(self.text, self.at)
        shown = found.group()[:40] if found is not None else self.text[self.at]
        return f"`{shown}`" if shown.isprintable() else f"the character U+{ord(shown[0]):04X}"

    def space(self) -> None:
        """Skip blanks, and comments with a diagnostic."""
        while True:
            found = _SPACE.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
            comment = re.compile(_COMMENT).match(self.text, self.at) if self.peek() in ("/", "#") else None
            if comment is None:
                return
            self.report(problems.json_comment(), self.at, comment.end())
            self.at = comment.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        char = self.peek()
        if depth >= MAX_DEPTH and char in ("{", "["):
            raise self.stop(deep_nesting("objects", MAX_DEPTH))
        if char == "{":
            return self.object(depth)
        if char == "[":
            return self.array(depth)
        start = self.at
        if char == '"':
            scalar: Scalar = self.string()
        else:
            scalar = self.bare()
        return Node(self.source, start, self.at, "scalar", scalar)

    def bare(self) -> Scalar:
        """A number, a constant, or what is written in their place."""
        start = self.at
        found = _WORD.match(self.text, start)
        word = found.group() if found is not None else ""
        end = start + len(word)
        if word in _CONSTANTS:
            self.at = end
            return _CONSTANTS[word]
        if word in _NOT_JSON:
            self.at = end
            self.report(problems.not_a_json_number(word), start, end)
            return 0
        number = _NUMBER.fullmatch(word)
        if number is not None:
            self.at = end
            return self.number(word, number, start)
        if word in _PYTHON:
            self.at = end
            self.report(problems.python_constant(word, _PYTHON[word]), start, end)
            return {"True": True, "False": False, "None": None}[word]
        number_like = re.match(r"[-+]?\.?[0-9]", self.text[self.at : self.at + 3]) is not None
        raise self.stop(problems.missing_value(self.shown(), self.peek(), number=number_like, word=bool(word)))

    def number(self, word: str, number: re.Match[str], start: int) -> int | float:
        try:
            value = float(word) if number[1] or number[2] else int(word)
        except ValueError:
            value = float("inf")
        if value in (float("inf"), float("-inf")):
            self.report(problems.huge_number(), start, self.at)
            return 0
        return value

    def string(self) -> str:
        start = self.at
        found = _STRING.match(self.text, start)
        if found is None:
            raise self.bad_string()
        self.at = found.end()
        if "\\" not in found[1]:
            return found[1]
        value: str = json.loads(found.group())
        if has_surrogates(value):
            self.report(lone_surrogate(), start, self.at)
            return value.encode("utf-8", "replace").decode()
        return value

    def bad_string(self) -> _Stop:
        """Find what is wrong with a string."""
        good = _OPEN_STRING.match(self.text, self.at)
        begin = self.at
        self.at = good.end() if good is not None else begin
        if self.at == len(self.text):
            self.at = begin
            return self.stop(problems.unclosed_text())
        if self.peek() == "\\":
            return self.stop(problems.invalid_escape(self.text[self.at : self.at + 2]))
        if self.peek() in "\r\n":
            return self.stop(problems.text_across_lines())
        return self.stop(problems.unescaped_character(self.shown(), self.peek()))

    def array(self, depth: int) -> Node:
        start = self.at
        self.at += 1
        items: list[Node] = []
        self.space()
        while self.peek() != "]":
            items.append(self.value(depth + 1))
            self.comma("]", start)
        self.at += 1
        return Node(self.source, start, self.at, "sequence", items=items)

    def object(self, depth: int) -> Node:
        start = self.at
        self.at += 1
        entries: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        self.space()
        while self.peek() != "}":
            begin = self.at
            if self.peek() != '"':
                raise self.stop(problems.missing_json_key(self.shown(), end=not self.peek()))
            key = self.string()
            end = self.at
            self.space()
            if self.peek() != ":":
                raise self.stop(problems.missing_colon(self.shown()))
            self.at += 1
            self.space()
            node = self.value(depth + 1)
            if key in keys:
                self.report(problems.duplicate_key(key[:60], self.source.place(*keys[key])), begin, end)
            else:
                entries[key] = node
                keys[key] = begin, end
            self.comma("}", start)
        self.at += 1
        return Node(self.source, start, self.at, "mapping", entries=entries, keys=keys)

    def comma(self, close: str, start: int) -> None:
        """Skip the comma after a member, up to the next one or to the end of the list or object."""
        self.space()
        if self.peek() == close:
            return
        if self.peek() != ",":
            line, _ = self.source.position(start)
            raise self.stop(problems.missing_comma(close, self.shown(), line))
        comma = self.at
        self.at += 1
        self.space()
        if self.peek() == close:
            self.report(problems.trailing_comma(close), comma, comma + 1)
