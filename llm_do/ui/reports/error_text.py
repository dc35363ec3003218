"""Errors for people: one paragraph of what failed, where, why, and what to do."""

from __future__ import annotations

from llm_do._machine_limits import find_limit
from llm_do.errors import LlmDoError
from llm_do.text.sanitizer import sanitize

__all__ = ["block_lines", "error_text", "paragraph", "sentence"]

_ENDS = (".", "!", "?", "…")


def error_text(error: BaseException) -> str:
    """An exception as one paragraph, `error: what and why (where). What to do.`, and the lines of its block.

    Example:
        >>> error_text(LlmDoError("the file is not YAML", hint="quote the value", file="main.agent", line=3))
        'error: the file is not YAML (main.agent:3). Quote the value.'
    """
    if isinstance(error, LlmDoError):
        text = paragraph(error.message, agent_path=error.agent_path, file=error.file, line=error.line, hint=error.hint)
        return "\n".join([text, *block_lines(error.block)])
    limit = find_limit(error)
    if limit is not None:
        return paragraph(limit.message, hint=limit.hint)
    text = str(error)
    notes = getattr(error, "__notes__", [])
    hint = f"{sentence('; '.join(notes), capital=True)} --debug shows the traceback." if notes else None
    return paragraph(f"{type(error).__name__}: {text}" if text else type(error).__name__, hint=hint)


def block_lines(block: str | None) -> list[str]:
    """The lines of an error's block, indented and safe for a terminal.

    Example:
        >>> block_lines("-old\\n+new")
        ['  -old', '  +new']
    """
    return [f"  {sanitize(line)}".rstrip() for line in (block or "").splitlines()]


def paragraph(
    message: str,
    *,
    agent_path: str | None = None,
    file: str | None = None,
    line: int | None = None,
    hint: str | None = None,
    label: str = "error",
) -> str:
    """The parts of an error as one paragraph, safe for a terminal."""
    places = [agent_path] if agent_path else []
    if file:
        places.append(f"{file}:{line}" if line else file)
    message = " ".join(message.split())
    where = ", ".join(place for place in places if place not in message)
    text = f"{message.rstrip('.')} ({where})" if where else message
    parts = [sentence(text)] + ([sentence(hint, capital=True)] if hint else [])
    return sanitize(f"{label}: {' '.join(parts)}")


def sentence(text: str, *, capital: bool = False) -> str:
    """A text with a full stop and, if asked for, a capital letter.

    Example:
        >>> sentence("quote the value", capital=True)
        'Quote the value.'
    """
    text = " ".join(text.split())
    if capital and text[:1].islower():
        text = text[0].upper() + text[1:]
    return text if text.endswith(_ENDS) or not text else f"{text}."
