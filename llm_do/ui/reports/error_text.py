"""How a failure is told to a person: one paragraph of what failed, where, why, and what to do."""

from __future__ import annotations

from llm_do.errors import LlmDoError
from llm_do.text.sanitizer import sanitize

__all__ = ["error_text", "paragraph", "sentence"]

_ENDS = (".", "!", "?", "…")


def error_text(error: BaseException) -> str:
    """Tell of an error in one paragraph.

    Args:
        error: Any exception; one of ours says where it happened and what to do.

    Returns:
        `error: what and why (where). What to do.`

    Example:
        >>> error_text(LlmDoError("the file is no YAML", hint="quote the value", file="main.agent", line=3))
        'error: the file is no YAML (main.agent:3). Quote the value.'
    """
    if isinstance(error, LlmDoError):
        return paragraph(error.message, agent_path=error.agent_path, file=error.file, line=error.line, hint=error.hint)
    said = str(error)
    notes = getattr(error, "__notes__", [])
    hint = f"{sentence('; '.join(notes), capital=True)} --debug shows the traceback." if notes else None
    return paragraph(f"{type(error).__name__}: {said}" if said else type(error).__name__, hint=hint)


def paragraph(
    message: str,
    *,
    agent_path: str | None = None,
    file: str | None = None,
    line: int | None = None,
    hint: str | None = None,
    label: str = "error",
) -> str:
    """Put the parts of an error together; whoever wrote them, they do nothing to a terminal."""
    places = [agent_path] if agent_path else []
    if file:
        places.append(f"{file}:{line}" if line else file)
    said = " ".join(message.split())
    where = ", ".join(place for place in places if place not in said)
    text = f"{said.rstrip('.')} ({where})" if where else said
    parts = [sentence(text)] + ([sentence(hint, capital=True)] if hint else [])
    return sanitize(f"{label}: {' '.join(parts)}")


def sentence(text: str, *, capital: bool = False) -> str:
    """A text with what a sentence has at its ends.

    Example:
        >>> sentence("quote the value", capital=True)
        'Quote the value.'
    """
    text = " ".join(text.split())
    if capital and text[:1].islower():
        text = text[0].upper() + text[1:]
    return text if text.endswith(_ENDS) or not text else f"{text}."
