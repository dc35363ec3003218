"""An edit: one piece of a text replaced."""

from __future__ import annotations

from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError

__all__ = ["apply_edit"]


def apply_edit(text: str, old: str, new: str, path: str) -> str:
    """Replace the only occurrence of `old` in the text of a file.

    Line feeds in `old` also match the carriage returns of a file that has them. `path` names the file in messages. If
    `old` is missing or occurs more than once, or nothing would change, `FileRefusedError` is raised.

    Example:
        >>> apply_edit("one two", "two", "three", "a.txt")
        'one three'
    """
    if not old:
        raise FileRefusedError(
            display_path(path), "the text to replace is empty", reason="invalid", hint="Use write_file for a new file."
        )
    if old == new:
        raise FileRefusedError(display_path(path), "old and new are the same text", reason="invalid")
    at = text.find(old)
    if at < 0 and "\r\n" in text and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
        at = text.find(old)
    if at < 0:
        raise FileRefusedError(
            display_path(path),
            "it does not contain the text to replace",
            reason="invalid",
            hint="Read the file and give the exact text, white space included.",
        )
    if text.find(old, at + 1) >= 0:
        raise FileRefusedError(
            display_path(path),
            "it contains the text to replace more than once",
            reason="invalid",
            hint="Give more of the lines around it.",
        )
    return text[:at] + new + text[at + len(old) :]
