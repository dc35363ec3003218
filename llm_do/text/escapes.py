"""Text that may hold anything, made harmless for a terminal and a log."""

from __future__ import annotations

__all__ = ["escape_controls"]


def escape_controls(text: str) -> str:
    """Write what is not visible, or not what it seems, as an escape: controls, line breaks, bidirectional marks.

    Example:
        >>> print(escape_controls("a\\x1b[31m\\u202eb"))
        a\\x1b[31m\\u202eb
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
