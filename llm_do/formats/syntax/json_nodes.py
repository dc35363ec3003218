"""JSON to nodes: the standard parser's meaning, with places, without duplicate keys, NaN or bottomless nesting.

What JSON people write by habit and mustn't (comments, trailing commas) is reported, and reading goes on behind it.
"""

from __future__ import annotations

import json
import re

from llm_do.diagnostics.codes import diagnostic
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import MAX_DEPTH, Node, NodeResult, Scalar, Source, text_fault

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
            raise self.stop("the file is empty", "a JSON object is expected")
        node = self.value(0)
        self.space()
        if self.at < len(self.text):
            raise self.stop(f"{self.shown()} stands behind the end of the document", "delete it")
        return node

    def report(self, code: str, message: str, start: int, end: int, hint: str | None = None) -> None:
        self.diagnostics.append(diagnostic(code, message, self.source.place(start, end), hint))

    def stop(self, message: str, hint: str | None = None, code: str = "LD105") -> _Stop:
        end = min(self.at + 1, len(self.text))
        return _Stop(diagnostic(code, message, self.source.place(self.at, end), hint))

    def shown(self) -> str:
        """What stands at the current point, for a message."""
        if self.at >= len(self.text):
            return "the end of the file"
        found = _WORD.match(self.text, self.at)
        shown = found.group()[:40] if found is not None else self.text[self.at]
        return f"`{shown}`" if shown.isprintable() else f"the character U+{ord(shown[0]):04X}"

    def space(self) -> None:
        """Go to what comes next, over blanks, and over comments with a complaint."""
        while True:
            found = _SPACE.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
            comment = re.compile(_COMMENT).match(self.text, self.at) if self.peek() in ("/", "#") else None
            if comment is None:
                return
            self.report("LD105", "JSON has no comments", self.at, comment.end(), "delete the comment")
            self.at = comment.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        char = self.peek()
        if depth >= MAX_DEPTH and char in ("{", "["):
            raise self.stop(f"lists and objects nest deeper than {MAX_DEPTH}", code="LD104")
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
        """A number, a constant, or what stands in their place."""
        start = self.at
        found = _WORD.match(self.text, start)
        word = found.group() if found is not None else ""
        end = start + len(word)
        if word in _CONSTANTS:
            self.at = end
            return _CONSTANTS[word]
        if word in _NOT_JSON:
            self.at = end
            self.report("LD116", f"`{word}` is not a number of JSON", start, end, "write a finite number")
            return 0
        number = _NUMBER.fullmatch(word)
        if number is not None:
            self.at = end
            return self.number(word, number, start)
        if word in _PYTHON:
            self.at = end
            self.report("LD105", f"`{word}` is Python, not JSON", start, end, f"write `{_PYTHON[word]}`")
            return {"True": True, "False": False, "None": None}[word]
        raise self.stop(f"a value is expected here, not {self.shown()}", self.hint())

    def hint(self) -> str | None:
        if self.peek() in ("'", "\u201c", "\u2018"):
            return 'texts stand in straight double quotes: "..."'
        if re.match(r"[-+]?\.?[0-9]", self.text[self.at : self.at + 3]):
            return "numbers are written like 12, -3 or 0.5: no leading zero or plus, a digit on both sides of the point"
        return 'texts need double quotes: "..."' if _WORD.match(self.text, self.at) else None

    def number(self, word: str, number: re.Match[str], start: int) -> int | float:
        try:
            value = float(word) if number[1] or number[2] else int(word)
        except ValueError:
            value = float("inf")
        if value in (float("inf"), float("-inf")):
            self.report("LD116", "the number is too large to be held", start, self.at)
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
        if any("\ud800" <= char <= "\udfff" for char in value):
            self.report("LD103", "a lone surrogate is not a character", start, self.at, "write the whole pair")
            return value.encode("utf-8", "replace").decode()
        return value

    def bad_string(self) -> _Stop:
        """Find what is wrong with a string."""
        good = _OPEN_STRING.match(self.text, self.at)
        begin = self.at
        self.at = good.end() if good is not None else begin
        if self.at == len(self.text):
            self.at = begin
            return self.stop("the text that starts here is never closed", 'close it with "')
        if self.peek() == "\\":
            shown = self.text[self.at : self.at + 2]
            return self.stop(f"`{shown}` is not an escape of JSON" if shown.isprintable() else "not an escape of JSON",
                             "write a backslash as \\\\")  # fmt: skip
        if self.peek() in "\r\n":
            return self.stop("the text isn't closed on its line", 'close it with ", or write a line break as \\n')
        return self.stop(f"{self.shown()} can't stand in a text", f"write it as \\u{ord(self.peek()):04x}")

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
                hint = 'keys stand in double quotes: "..."' if self.peek() else "the object is never closed"
                raise self.stop(f"a key is expected here, not {self.shown()}", hint)
            key = self.string()
            end = self.at
            self.space()
            if self.peek() != ":":
                raise self.stop(f"`:` is expected behind the key, not {self.shown()}")
            self.at += 1
            self.space()
            node = self.value(depth + 1)
            if key in keys:
                place = self.source.place(*keys[key])
                message = f"the key `{key[:60]}` is there already, at line {place.line}, column {place.column}"
                self.report("LD110", message, begin, end, "keep one of the two")
            else:
                entries[key] = node
                keys[key] = begin, end
            self.comma("}", start)
        self.at += 1
        return Node(self.source, start, self.at, "mapping", entries=entries, keys=keys)

    def comma(self, close: str, start: int) -> None:
        """Go over the comma behind a member, up to the next one or to the end of the list or object."""
        self.space()
        if self.peek() == close:
            return
        if self.peek() != ",":
            line, _ = self.source.position(start)
            kind = "list" if close == "]" else "object"
            raise self.stop(f"`,` or `{close}` is expected here, not {self.shown()}",
                            f"the {kind} starts at line {line}")  # fmt: skip
        comma = self.at
        self.at += 1
        self.space()
        if self.peek() == close:
            self.report("LD105", f"there is a comma in front of `{close}`", comma, comma + 1, "delete the comma")
