"""The choices below an approval question, each with what it does, and how a person's answer is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from llm_do.runtime.approval.broker import ALL_ANSWERS, Answer
from llm_do.text.sanitizer import sanitize
from llm_do.ui.approval.frame import Frame
from llm_do.ui.terminal.text_width import text_width, truncate, wrap, wrap_words

__all__ = ["NOTE", "PROMPT", "choice_keys", "choice_lines", "letter_of", "parse_answer", "rules_text", "short_choices"]

NOTE = "note for the model: "
"""The prompt after `d`."""

PROMPT = "allow? "
"""The prompt below the choices."""

Key = Literal["once", "all", "session", "pattern", "always", "deny", "note", "abort", "view"]

_CHOICES: Mapping[str, tuple[Answer, str, str]] = {
    "y": ("once", "yes, this once", "once"),
    "e": ("all", "yes, all {count} identical calls", "all {count}"),
    "s": ("session", "yes, and exactly this call again in this session", "this session"),
    "p": ("session", "yes, and in this session every call that {rule}", "session by rule"),
    "w": ("always", "yes, and always in this project; keeps {what} for you", "always"),
    "n": ("deny", "no", "deny"),
    "d": ("deny", "no, with a note for the model", "deny with a note"),
    "a": ("abort", "abort the run", "abort the run"),
}
"""The keys, each with the answer that must be accepted for it, what it says, and that in short."""

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
    "v": "view",
    "view": "view",
}
_DENIALS = ("n", "d", "a")
_INDENT = "     "
_RULE_LINES = 2
"""Lines of a rule among the choices; the whole rule is shown before it is accepted."""

_TYPED = "a number, another rule, or nothing to go back:"


def choice_keys(answers: Collection[Answer] = ALL_ANSWERS, *, identical: int = 1) -> list[str]:
    """The keys that answer a question.

    Example:
        >>> choice_keys(("once", "all", "deny"), identical=5)
        ['y', 'e', 'n', 'd']
    """
    return [key for key, (answer, _, _) in _CHOICES.items() if answer in answers and (key != "e" or identical > 1)]


def choice_lines(
    frame: Frame, keys: Sequence[str], *, rules: Sequence[str] = (), identical: int = 1, hidden: str = ""
) -> list[str]:
    """The choices, a line or more for each.

    Args:
        frame: What may be drawn.
        keys: The keys that answer the question.
        rules: The rules that are proposed, the narrowest first.
        identical: How many identical calls wait.
        hidden: What `v` shows in addition.
    """
    found: list[str] = []
    for key in keys:
        if key not in _DENIALS:
            shown = bool(rules) and "p" in keys
            what = "that rule, or this call," if shown else "a rule, or this call," if rules else "this call"
            rule = "this rule allows:" if rules else "a rule of yours allows"
            found += _choice(frame, key, _CHOICES[key][1].format(count=identical, rule=rule, what=what))
            if rules and (key == "p" or (key == "w" and not shown)):
                found += _rule(frame, sanitize(rules[0]))
    found += _side_by_side(frame, [(key, _CHOICES[key][1]) for key in keys if key in _DENIALS])
    return [*found, *_choice(frame, "v", f"view all of it: {hidden}")] if hidden else found


def short_choices(frame: Frame, keys: Sequence[str], *, identical: int = 1, hidden: str = "") -> list[str]:
    """The choices as a paragraph, for a low terminal.

    Example:
        >>> short_choices(Frame(200), ["y", "e", "n", "d", "a"], identical=5)
        ['y once, e all 5, n deny, d deny with a note, a abort the run, ? explain']
    """
    words = [f"{key} {_CHOICES[key][2].format(count=identical)}" for key in keys]
    words += [*(["v view all"] if hidden else []), "? explain"]
    lines: list[str] = []
    for word in words:
        shown = word if word is words[-1] else f"{word},"
        if lines and text_width(lines[-1]) + len(shown) + 1 < frame.columns:
            lines[-1] += f" {shown}"
        else:
            lines.append(f"  {shown}" if lines else shown)
    return lines


def _choice(frame: Frame, key: str, text: str) -> list[str]:
    first, *rest = wrap_words(text, max(frame.columns - len(_INDENT) - 1, 10))
    return [f"  {frame.paint(key, 'name')}  {first}", *(f"{_INDENT}{piece}" for piece in rest)]


def _rule(frame: Frame, rule: str) -> list[str]:
    room = max(frame.columns - len(_INDENT) - 1, 10)
    pieces = list(wrap(rule, room))
    if len(pieces) > _RULE_LINES:
        pieces[_RULE_LINES - 1 :] = [truncate("".join(pieces[_RULE_LINES - 1 :]), room)]
    return [f"{_INDENT}{frame.paint(piece, 'tool')}" for piece in pieces]


def _side_by_side(frame: Frame, choices: Sequence[tuple[str, str]]) -> list[str]:
    """Choices that need no explanation, on one line where it has room for them."""
    if sum(len(text) + len(_INDENT) + 2 for _, text in choices) >= frame.columns:
        return [line for key, text in choices for line in _choice(frame, key, text)]
    return ["  " + "    ".join(f"{frame.paint(key, 'name')}  {text}" for key, text in choices)] if choices else []


def rules_text(rules: Sequence[str], columns: int = 80, *, exact: bool, edited: bool = False) -> str:
    """The rules proposed for a lasting answer, and the prompt for one."""
    shown = {"0": "exactly this call"} if exact else {}
    shown |= {str(number): sanitize(rule) for number, rule in enumerate(rules, 1)}
    room = max(columns - 1, 20)
    lines: list[str] = []
    for key, text in shown.items():
        first = next(wrap(text, room - 4))
        rest = text[len(first) :]
        lines += [f"  {key} {first}", *(f"    \\ {piece}" for piece in wrap(rest, room - 6) if piece)]
    question = "Enter accepts the rule; edit it, type another or a number, or Ctrl-D to go back" if edited else _TYPED
    asked = wrap_words(question, max(columns - 2, 20))
    return "".join(f"{line}\n" for line in lines) + "\n  ".join(asked) + ("\n" if edited else " ")


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
