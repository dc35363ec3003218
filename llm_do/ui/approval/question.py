"""The question that a person answers before a call is made, as text, and how their answer is read.

Everything is shown and nothing is cut. No text of a model can look like a line of ours: each of its lines begins with a
bar.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from llm_do.runtime.approval.broker import ALL_ANSWERS, Answer, ApprovalRequest
from llm_do.text.sanitizer import format_arguments, sanitize
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import wrap, wrap_words

__all__ = [
    "NOTE",
    "choice_keys",
    "choices_text",
    "head_text",
    "help_text",
    "letter_of",
    "more_text",
    "parse_answer",
    "question_text",
    "rules_text",
]

NOTE = "note for the model: "
"""The prompt after `d`."""

Key = Literal["once", "all", "session", "pattern", "always", "deny", "note", "abort"]

_CHOICES: Mapping[str, tuple[Answer, str]] = {
    "y": ("once", "once"),
    "e": ("all", "all {count}"),
    "s": ("session", "this session"),
    "p": ("session", "session by rule"),
    "w": ("always", "always"),
    "n": ("deny", "deny"),
    "d": ("deny", "deny with a note"),
    "a": ("abort", "abort the run"),
}
"""The keys, each with the answer that must be accepted for it, and its words."""

_KEYS: dict[str, Key] = {
    "y": "once",
    "yes": "once",
    "e": "all",
    "all": "all",
    "s": "session",
    "session": "session",
    "p": "pattern",
    "pattern": "pattern",
    "w": "always",
    "always": "always",
    "n": "deny",
    "no": "deny",
    "d": "note",
    "a": "abort",
    "abort": "abort",
}
_HELP = (
    "  s this exact call, any number of times in this session",
    "  p any call that a rule allows, in this session",
    "  w this call or a rule, permanently (.llm-do/approvals.json)",
)
_TYPED = "a number, another rule, or nothing to go back:"
_Wrap: TypeAlias = "Callable[[str, int], Iterator[str]]"
"""Breaks a line: `wrap` keeps a model's text as it is, `wrap_words` is for our own prose."""

_LINE = "    | "
_MORE = "    \\ "


def choices_text(columns: int = 80, answers: Collection[Answer] = ALL_ANSWERS, *, identical: int = 1) -> str:
    """The choices at the end of a question, shown again after an unknown key.

    Example:
        >>> choices_text(200, ("once", "all", "deny", "abort"), identical=5)
        'allow? y once, e all 5, n deny, d deny with a note, a abort the run: '
    """
    lines = ["allow?"]
    keys = choice_keys(answers, identical=identical)
    for key in keys:
        word = f"{key} {_CHOICES[key][1].format(count=identical)}" + ("," if key != keys[-1] else ":")
        if len(lines[-1]) + len(word) + 2 > columns - 1:
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines) + " "


def choice_keys(answers: Collection[Answer], *, identical: int = 1) -> list[str]:
    """The keys that answer a question."""
    return [key for key, (answer, _) in _CHOICES.items() if answer in answers and (key != "e" or identical > 1)]


def help_text(columns: int = 80) -> str:
    """How the lasting answers differ, shown after an unknown answer such as `?`."""
    lines = [line for text in _HELP for line in _continued(text, max(columns - 1, 20), wrap_words)]
    return "".join(f"{line}\n" for line in lines)


def rules_text(rules: Sequence[str], columns: int = 80, *, exact: bool = False, edited: bool = False) -> str:
    """The rules proposed for a lasting answer, and the prompt for one."""
    shown = {"0": "exactly this call"} if exact else {}
    shown |= {str(number): sanitize(rule) for number, rule in enumerate(rules, 1)}
    lines = [line for key, text in shown.items() for line in _continued(f"  {key} {text}", max(columns - 1, 20))]
    question = "Enter accepts the rule; edit it, type another or a number, or Ctrl-D to go back" if edited else _TYPED
    asked = wrap_words(question, max(columns - 2, 20))
    return "".join(f"{line}\n" for line in lines) + "\n  ".join(asked) + ("\n" if edited else " ")


def question_text(request: ApprovalRequest, columns: int = 80, *, color: bool = False) -> str:
    """The question, without the choices."""
    room = max(columns - 1, 20)
    asks = _continued(f"{sanitize(request.agent_path)} wants to call {sanitize(request.tool_name)}", room, wrap_words)
    lines = [paint(line, "question", color=color) for line in asks]
    if request.identical > 1:
        lines += _continued(f"  {request.identical} identical calls", room)
    if request.description:
        lines += _named("what", sanitize(request.description, lines=True), room)
    for name, value in format_arguments(request.args):
        lines += _named(name, value, room)
    if not request.args:
        lines.append("  (no arguments)")
    if request.diff:
        lines += ["  changes:", *_changes(sanitize(request.diff.removesuffix("\n"), lines=True), room, color=color)]
    lines += _named("reason", sanitize(_why(request)), room, wrap_words)
    return "".join(f"{line}\n" for line in lines)


def head_text(request: ApprovalRequest, columns: int = 80, *, color: bool = False) -> str:
    """The head of a question whose first lines are out of sight: agent, tool and target."""
    room = max(columns - 1, 20)
    asks = f"{sanitize(request.agent_path)} wants to call {sanitize(request.tool_name)}"
    lines = [paint(line, "question", color=color) for line in _continued(asks, room, wrap_words)]
    primary = request.call.primary if request.call is not None else None
    names = (primary,) if isinstance(primary, str) else primary or ()
    for name, value in format_arguments({name: request.args[name] for name in names if name in request.args}):
        first, *rest = _named(name, value, room)
        lines += [first, *rest[:_HEAD_LINES], *(["    ..."] if len(rest) > _HEAD_LINES else [])]
    return "".join(f"{line}\n" for line in lines)


_HEAD_LINES = 3
"""Lines of a long target in a head, after its first one."""


def more_text(shown: int, total: int, columns: int = 80) -> str:
    """The prompt between two pages of a question.

    Example:
        >>> more_text(34, 3012)
        '34 of 3,012 lines; Enter shows more, r the rest, n denies: '
    """
    text = f"{shown:,} of {total:,} lines; Enter shows more, r the rest, n denies:"
    return "\n  ".join(wrap_words(text, max(columns - 2, 20))) + " "


def _why(request: ApprovalRequest) -> str:
    if request.rule and request.rule not in request.reason:
        return f"{request.reason or 'a rule says so'} (rule {request.rule})"
    return request.reason or "calls of this tool need approval"


def _named(name: str, text: str, room: int, pieces: _Wrap = wrap) -> list[str]:
    line = f"  {name}: {text}"
    if "\n" not in text and next(wrap(line, room)) == line:
        return [line]
    return [*_continued(f"  {name}:", room), *_block(text, room, pieces)]


def _continued(line: str, room: int, pieces: _Wrap = wrap) -> list[str]:
    first = next(pieces(line, room))
    rest = line[len(first) :]
    if pieces is wrap_words:
        rest = rest.lstrip(" ")
    return [first, *(f"{_MORE}{piece}" for piece in pieces(rest, room - len(_MORE)) if piece)]


def _block(text: str, room: int, pieces: _Wrap = wrap) -> Iterator[str]:
    for line in text.split("\n"):
        mark = _LINE
        for piece in pieces(line, room - len(_LINE)):
            yield f"{mark}{piece}"
            mark = _MORE


def _changes(diff: str, room: int, *, color: bool) -> Iterator[str]:
    for line in diff.split("\n"):
        name = {"+": "good", "-": "bad", "@": "quiet"}.get(line[:1])
        for piece in _block(line, room):
            yield paint(piece, name, color=color) if name else piece


def parse_answer(text: str) -> Key | None:
    """The key that a person's line stands for; None for an unknown one.

    Example:
        >>> parse_answer(" Y "), parse_answer("what?")
        ('once', None)
    """
    return _KEYS.get(text.strip().lower())


def letter_of(key: Key) -> str:
    """The letter that a person types for an answer.

    Example:
        >>> letter_of("note")
        'd'
    """
    return next(letter for letter, each in _KEYS.items() if each == key)
