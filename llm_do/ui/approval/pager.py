"""All lines of a question, page by page, each below the question's head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llm_do.ui.approval.choices import parse_answer
from llm_do.ui.approval.question import QuestionText
from llm_do.ui.terminal.terminal import Terminal
from llm_do.ui.terminal.text_width import shorten_middle, wrap_words

__all__ = ["view"]

Seen = Literal["all", "part", "deny", "abort"]
"""How far a person has looked, or the answer given on the way."""

_PROMPT_ROWS = 3
_FEWEST_ROWS = 4

_OTHER_SCREEN, _BACK, _CLEAR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H\x1b[2J"


async def view(terminal: Terminal, question: QuestionText) -> Seen:
    """Show everything; returns how far the person has looked, or the answer given on the way.

    A terminal with abilities shows the pages on its other screen, so that the question stays as it was.
    """
    if terminal.is_plain:
        return await _pages(terminal, question, "")
    with terminal.aside():
        terminal.write(_OTHER_SCREEN)
        try:
            return await _pages(terminal, question, _CLEAR)
        finally:
            terminal.write(_BACK)


async def _pages(terminal: Terminal, question: QuestionText, clear: str) -> Seen:
    lines = [*question.body, *question.foot]
    at = seen = 0
    note = ""
    while True:
        rows = max(terminal.rows - len(question.head) - _PROMPT_ROWS - bool(note), _FEWEST_ROWS)
        end = min(at + rows, len(lines))
        prompt = _prompt(at, end, len(lines), terminal.columns)
        terminal.write(clear + _text([*question.head, *lines[at:end]]) + note + prompt)
        note = ""
        seen = max(seen, end) if at <= seen else seen
        line = await terminal.read_line()
        if line is None:
            terminal.write("\n")
            return "deny"
        typed = line.strip().lower()
        key = parse_answer(line)
        if key == "deny" or key == "abort":
            return key
        if typed in ("q", "quit") or (not typed and end == len(lines)):
            return "all" if seen == len(lines) else "part"
        if typed in ("b", "back"):
            at = max(at - rows, 0)
        elif typed in ("r", "rest"):
            if not clear:
                terminal.write(_text(lines[end:]))
                return "all"
            at = max(len(lines) - rows, 0)
        elif not typed:
            at = end
        else:
            note = f"{shorten_middle(typed, 20)} isn't one of these keys\n"


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _prompt(start: int, end: int, total: int, columns: int) -> str:
    """What may be typed between two pages.

    Example:
        >>> _prompt(0, 34, 3012, 120)
        'lines 1 to 34 of 3,012; Enter shows more, r the rest, q goes back to the question, n denies: '
    """
    more = "Enter shows more, r the rest, q goes back to the question"
    keys = more if end < total else "Enter goes back to the question"
    back = ", b a page" if start else ""
    text = f"lines {start + 1:,} to {end:,} of {total:,}; {keys}{back}, n denies:"
    return "\n  ".join(wrap_words(text, max(columns - 2, 20))) + " "
