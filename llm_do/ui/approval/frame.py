"""The frame that a question is drawn in: a bar at the left of every line, and lines that fit into the terminal.

No text of a model can look like a line of ours: behind the bar its lines are indented further than our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import text_width, wrap, wrap_words

__all__ = ["Frame", "Span"]

Span = tuple[int, int]
"""Where a part of a text begins and ends."""

Wrap: TypeAlias = Callable[[str, int], Iterator[str]]
"""Breaks a line: `wrap` keeps a model's text as it is, `wrap_words` is for prose."""

_LEAST = 20
_MARK = "\\ "
"""Begins what continues a line of a model's text."""


@frozen
class Frame:
    """How wide a question may be, and what it may be drawn with.

    Args:
        columns: The terminal's width.
        color: Use ANSI colours.
        lines: Draw with box characters; else with ASCII.
    """

    columns: int = 80
    color: bool = False
    lines: bool = True

    @property
    def room(self) -> int:
        """Columns behind the bar."""
        return max(self.columns - 3, _LEAST)

    @property
    def gap(self) -> str:
        """What stands for something left out."""
        return "⋯" if self.lines else "..."

    def paint(self, text: str, style: str) -> str:
        """A text in one of our styles."""
        return paint(text, style, color=self.color)

    def top(self, text: str, beside: str = "") -> list[str]:
        """The first lines: what the question is, and a remark at the right."""
        lines = self.prose(text, "question", bar=("╭", "+"))
        blanks = self.room - text_width(text) - text_width(beside)
        if not beside:
            return lines
        if len(lines) == 1 and blanks >= 2:
            return [f"{lines[0]}{' ' * blanks}{self.paint(beside, 'quiet')}"]
        return [*lines, *self.prose(beside, "quiet")]

    def prose(self, text: str, style: str = "", *, bar: tuple[str, str] = ("│", "|")) -> list[str]:
        """A sentence of ours; it may contain a model's words, so what continues it is marked."""
        first = next(wrap_words(text, self.room))
        rest = text[len(first) :].lstrip(" ")
        pieces = [piece for piece in wrap_words(rest, self.room - len(_MARK)) if rest]
        lines = [f"{self._bar(*bar)}{self.paint(first, style)}"]
        return [line.rstrip() for line in (*lines, *(self._framed(f"{_MARK}{piece}", style) for piece in pieces))]

    def bottom(self, text: str) -> list[str]:
        """The last lines."""
        *lines, last = self.prose(text, "quiet")
        return [*lines, last.replace(self._bar("│", "|").rstrip(), self._bar("╰", "+").rstrip(), 1)]

    def named(self, name: str, text: str, style: str = "", *, pieces: Wrap = wrap) -> list[str]:
        """A value and its name, on one line if it fits on it; lines of a text are numbered."""
        if "\n" not in text and text_width(f"{name}: {text}") <= self.room:
            return [f"{self._bar('│', '|')}{self.paint(f'{name}:', 'quiet')} {self.paint(text, style)}".rstrip()]
        found = [self._framed(piece, "quiet") for piece in wrap(f"{name}:", self.room)]
        lines = text.split("\n")
        if len(lines) == 1:
            return [*found, *self.row("", " ", text, style, pieces=pieces)]
        width = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            found += self.row(f"{number:>{width}}", " ", line, style)
        return found

    def row(
        self,
        number: str,
        sign: str,
        text: str,
        style: str = "",
        marked: Sequence[Span] = (),
        *,
        pieces: Wrap = wrap,
    ) -> list[str]:
        """A line of a model's text behind its number and sign; what doesn't fit follows behind a mark."""
        lead = f"{number} " if number else ""
        found: list[str] = []
        start = 0
        for piece in pieces(text, max(self.room - len(lead) - 2, 1)):
            gutter = self.paint(lead, "quiet") if not found else " " * len(lead)
            mark = f"{sign} " if not found else _MARK
            shown = self._marked(piece, style, start, marked)
            found.append(f"{self._bar('│', '|')}{gutter}{self.paint(mark, style)}{shown}".rstrip())
            start += len(piece)
        return found

    def note(self, width: int, text: str) -> list[str]:
        """A remark between numbered lines."""
        room = max(self.room - width - len(self.gap) - 2, 1)
        return [self._framed(f"{' ' * width} {self.gap} {piece}", "quiet") for piece in wrap_words(text, room)]

    def _framed(self, text: str, style: str) -> str:
        return f"{self._bar('│', '|')}{self.paint(text, style)}".rstrip()

    def _bar(self, drawn: str, plain: str) -> str:
        return f"{self.paint(drawn if self.lines else plain, 'ask')} "

    def _marked(self, piece: str, style: str, start: int, marked: Sequence[Span]) -> str:
        if not self.color or not marked:
            return self.paint(piece, style)
        return "".join(
            self.paint(text, style if plain else f"{style} changed") for text, plain in _cut(piece, start, marked)
        )


def _cut(piece: str, start: int, marked: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """The parts of a piece, and whether each is an ordinary one; `start` is where the piece begins in its text."""
    at = 0
    for first, last in marked:
        low, high = max(first - start, at), min(last - start, len(piece))
        if low < high:
            yield piece[at:low], True
            yield piece[low:high], False
            at = high
    yield piece[at:], True
