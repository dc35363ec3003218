"""A diagnostic's code explained in a terminal: what is wrong, an example as a diff, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator

from llm_do.diagnostics.codes.code import Code
from llm_do.diagnostics.known_codes import CODES
from llm_do.errors import UsageError
from llm_do.text.text_diff import text_diff
from llm_do.text.words import did_you_mean
from llm_do.ui.reports.error_text import sentence
from llm_do.ui.terminal.screen import paint

__all__ = ["code_lines", "find_code"]

_STYLES = {"-": "bad", "+": "good"}


def find_code(text: str) -> Code:
    """The code that a person names.

    Raises:
        UsageError: There is none of that name.

    Example:
        >>> find_code("ld604").title
        "Rule that can't match"
    """
    name = text.strip().upper()
    found = CODES.get(name)
    if found is None:
        hint = did_you_mean(name, CODES) or "Codes are in brackets in what `llm-do check` prints."
        raise UsageError(f"there is no diagnostic {text!r}", hint=hint)
    return found


def code_lines(code: Code, *, color: bool) -> Iterator[str]:
    """The lines of an explanation.

    Example:
        >>> lines = list(code_lines(find_code("LD604"), color=False))
        >>> lines[0], lines[-1]
        ("LD604: Rule that can't match (warning)", 'To fix it: correct the name, or remove the rule.')
    """
    yield paint(f"{code.id}: {code.title} ({code.severity})", "name", color=color)
    yield ""
    yield code.explanation
    yield ""
    for line in text_diff(code.wrong, code.right, "", "")[3:]:
        yield paint(f"  {line}", _STYLES.get(line[:1], ""), color=color)
    yield ""
    yield f"To fix it: {sentence(code.fix)}"
