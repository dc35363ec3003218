"""A unified diff for a person: each file's name, line numbers, and what has changed within a line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from llm_do.ui.approval.frame import Frame, Span

__all__ = ["diff_lines"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_STYLES = {"+": "good", "-": "bad", " ": ""}
_LONGEST = 400
"""Characters of a line within which changes are looked for."""

_ALIKE = 0.5
"""How alike two lines must be for the difference between them to say more than the lines."""


@dataclass(slots=True)
class _Line:
    """A line of a hunk; `number` is None for a remark of diff's."""

    sign: str
    number: int | None
    text: str
    marked: Sequence[Span] = ()


@dataclass(slots=True)
class _File:
    """What changes in a file; None stands for lines that aren't shown."""

    name: str
    lines: list[_Line | None] = field(default_factory=list["_Line | None"])

    def count(self, sign: str) -> int:
        """How many lines have a sign."""
        return sum(line is not None and line.number is not None and line.sign == sign for line in self.lines)


class _OtherFormatError(ValueError):
    """A text isn't a unified diff."""


def diff_lines(diff: str, frame: Frame) -> list[str]:
    """A diff, sanitized already, as framed lines; another text as it is.

    Example:
        >>> for line in diff_lines("--- a\\n+++ a\\n@@ -7,2 +7,2 @@\\n same\\n-old\\n+new\\n", Frame(lines=False)):
        ...     print(line)
        | a  +1 -1
        | ...
        | 7   same
        | 8 - old
        | 8 + new
    """
    try:
        files = list(_files(diff.removesuffix("\n").split("\n")))
    except _OtherFormatError:
        return [row for line in diff.removesuffix("\n").split("\n") for row in frame.row("", " ", line, _raw(line))]
    return [row for each in files for row in _draw(each, frame)]


def _raw(line: str) -> str:
    return {"+": "good", "-": "bad", "@": "quiet"}.get(line[:1], "")


def _draw(file: _File, frame: Frame) -> Iterator[str]:
    width = max((len(str(line.number)) for line in file.lines if line is not None and line.number), default=1)
    yield from frame.prose(f"{file.name}  +{file.count('+'):,} -{file.count('-'):,}", "name")
    for line in file.lines:
        if line is None:
            yield from frame.prose(frame.gap, "quiet")
        elif line.number is None:
            yield from frame.note(width, line.text)
        else:
            yield from frame.row(f"{line.number:>{width}}", line.sign, line.text, _STYLES[line.sign], line.marked)


def _files(lines: Sequence[str]) -> Iterator[_File]:
    """Read a diff; `_OtherFormatError` if anything in it would be lost."""
    at = 0
    while at < len(lines):
        if at + 1 >= len(lines) or not lines[at].startswith("--- ") or not lines[at + 1].startswith("+++ "):
            raise _OtherFormatError
        file = _File(_name(lines[at][4:], lines[at + 1][4:]))
        at += 2
        while at < len(lines) and not lines[at].startswith("--- "):
            at = _hunk(lines, at, file)
        yield file


def _hunk(lines: Sequence[str], at: int, file: _File) -> int:
    """Read one hunk, or a remark on lines that the diff leaves out; returns where the next one begins."""
    found = _HUNK.match(lines[at])
    if found is None:
        if not re.fullmatch(r"\[[\d,]+ more lines of this diff are not shown\]", lines[at]):
            raise _OtherFormatError
        file.lines.append(_Line(" ", None, lines[at].strip("[]")))
        return at + 1
    old, olds, new, news = (int(text) if text is not None else 1 for text in found.groups())
    heading = lines[at][found.end() :].strip()
    if heading:
        file.lines.append(_Line(" ", None, heading))
    elif file.lines or (old > 1 and new > 1):
        file.lines.append(None)
    at, left, began = at + 1, [olds, news], len(file.lines)
    while at < len(lines) and (left != [0, 0] or lines[at].startswith("\\")):
        sign, text = lines[at][:1], lines[at][1:]
        at += 1
        if sign == "\\":
            file.lines.append(_Line(" ", None, "no line break at the end"))
            continue
        if sign == "[":
            at -= 1
            break
        if sign not in _STYLES:
            raise _OtherFormatError
        file.lines.append(_Line(sign, old if sign == "-" else new, text))
        old, new = old + (sign != "+"), new + (sign != "-")
        left = [left[0] - (sign != "+"), left[1] - (sign != "-")]
    if min(left) < 0 or (left != [0, 0] and at < len(lines) and not lines[at].startswith("[")):
        raise _OtherFormatError
    _mark([line for line in file.lines[began:] if line is not None and line.number is not None])
    return at


def _name(old: str, new: str) -> str:
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old[2:], new[2:]
    if new == "/dev/null":
        return f"{old} (removed)"
    return new if old in (new, "/dev/null") else f"{old} -> {new}"


def _mark(lines: Sequence[_Line]) -> None:
    """Mark what changes within lines: each removed one is compared with the added one in its place."""
    at = 0
    while at < len(lines):
        gone = _run(lines, at, "-")
        come = _run(lines, at + len(gone), "+")
        if len(gone) == len(come):
            for before, after in zip(gone, come, strict=True):
                before.marked, after.marked = _changes(before.text, after.text)
        at += len(gone) + len(come) or 1


def _run(lines: Sequence[_Line], at: int, sign: str) -> Sequence[_Line]:
    end = at
    while end < len(lines) and lines[end].sign == sign:
        end += 1
    return lines[at:end]


def _changes(before: str, after: str) -> tuple[list[Span], list[Span]]:
    if max(len(before), len(after)) > _LONGEST:
        return [], []
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    changed = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    return _spans(old, [(a, b) for _, a, b, _, _ in changed]), _spans(new, [(c, d) for _, _, _, c, d in changed])


def _spans(words: Sequence[str], ranges: Sequence[tuple[int, int]]) -> list[Span]:
    places = [0]
    for word in words:
        places.append(places[-1] + len(word))
    return [(places[first], places[last]) for first, last in ranges if first < last]
