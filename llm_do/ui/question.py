"""The question that a person answers before a call is made, as text, and what their answer means.

Everything is shown, nothing is cut, and no text of a model can look like a line of ours: each of its lines stands
behind a bar of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from llm_do.policy.display import format_args, visible
from llm_do.runtime.approvals import ApprovalRequest
from llm_do.ui.text import wrap

__all__ = ["CHOICES", "NOTE", "parse_answer", "question_text"]

CHOICES = "allow? y once, s for this session, n deny, d deny with a note, a abort the run: "
"""What is asked at the end of a question, and again after a key that means nothing."""

NOTE = "note for the model: "
"""What is asked after `d`."""

Key = Literal["once", "session", "deny", "note", "abort"]

_KEYS: dict[str, Key] = {
    "y": "once",
    "yes": "once",
    "s": "session",
    "session": "session",
    "n": "deny",
    "no": "deny",
    "d": "note",
    "a": "abort",
    "abort": "abort",
}
_LINE = "    | "
_MORE = "    \\ "


def question_text(request: ApprovalRequest, columns: int = 80) -> str:
    """The question, without the choices.

    Args:
        request: What is asked.
        columns: Columns of the terminal; longer lines go on in the next, behind a backslash instead of a bar.

    Returns:
        Lines, with a line break at the end.
    """
    room = max(columns - 1, 20)
    lines = _continued(f"{visible(request.agent_path)} wants to call {visible(request.tool_name)}", room)
    if request.description:
        lines += _named("what", visible(request.description, lines=True), room)
    for name, value in format_args(request.args):
        lines += _named(name, value, room)
    if not request.args:
        lines.append("  (no arguments)")
    if request.diff:
        lines += ["  changes:", *_block(visible(request.diff.removesuffix("\n"), lines=True), room)]
    lines += _named("asked because", visible(_why(request)), room)
    return "".join(f"{line}\n" for line in lines)


def _why(request: ApprovalRequest) -> str:
    if request.rule and request.rule not in request.reason:
        return f"{request.reason or 'a rule says so'} (rule {request.rule})"
    return request.reason or "calls of this tool are asked about"


def _named(name: str, text: str, room: int) -> list[str]:
    line = f"  {name}: {text}"
    if "\n" not in text and next(wrap(line, room)) == line:
        return [line]
    return [*_continued(f"  {name}:", room), *_block(text, room)]


def _continued(line: str, room: int) -> list[str]:
    first = next(wrap(line, room))
    return [first, *(f"{_MORE}{piece}" for piece in wrap(line[len(first) :], room - len(_MORE)) if piece)]


def _block(text: str, room: int) -> Iterator[str]:
    for line in text.split("\n"):
        mark = _LINE
        for piece in wrap(line, room - len(_LINE)):
            yield f"{mark}{piece}"
            mark = _MORE


def parse_answer(text: str) -> Key | None:
    """What a person's line means; None for one that means nothing.

    Example:
        >>> parse_answer(" Y "), parse_answer("what?")
        ('once', None)
    """
    return _KEYS.get(text.strip().lower())
