"""What may be written to the terminal, by its abilities and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["can_animate", "draws_lines", "hyperlink", "in_ci", "is_plain", "paint", "terminal_columns", "wants_color"]

_STYLES: Mapping[str, str] = {
    "good": "32",
    "bad": "31",
    "warn": "33",
    "name": "1",
    "ask": "35",
    "question": "1;35",
    "quiet": "2",
    "tool": "36",
    "changed": "7",
}
"""The terminal's own colours, which its owner has chosen to be readable on their background."""


def in_ci(environ: Mapping[str, str]) -> bool:
    """Whether this runs without a person, in CI: `CI` is `true`, `1` or a service's name, not `false` or `0`.

    Example:
        >>> in_ci({"CI": "true"}), in_ci({"CI": "False"}), in_ci({"CI": "0"}), in_ci({})
        (True, False, False, False)
    """
    return environ.get("CI", "").strip().lower() not in ("", "0", "false", "no", "off")


def is_plain(environ: Mapping[str, str]) -> bool:
    """Whether this runs in CI, or in a terminal without abilities (`TERM`)."""
    return environ.get("TERM", "dumb") in ("dumb", "") or in_ci(environ)


def can_animate(environ: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal on which a line may be written over."""
    return os.isatty(2) and not is_plain(environ)


def wants_color(environ: Mapping[str, str], *, no_color: bool) -> bool:
    """Whether stderr may be coloured: a terminal that can be, and nothing says otherwise."""
    if no_color or environ.get("NO_COLOR") or not can_animate(environ):
        return False
    from llm_do.models.user_config import load_user_config

    return load_user_config(environ).color != "never"


def paint(text: str, style: str, *, color: bool = True) -> str:
    """A text in one or several of our styles; without colours, the text.

    Example:
        >>> paint("old", "bad changed"), paint("old", "bad", color=False), paint("old", "")
        ('\\x1b[31;7mold\\x1b[0m', 'old', 'old')
    """
    codes = ";".join(_STYLES[name] for name in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if color and text and codes else text


def hyperlink(text: str, path: str) -> str:
    r"""A text that terminals which know links (OSC 8) open a file with; others show the text.

    Example:
        >>> hyperlink("a.agent:2", "/home/ann/a b.agent")
        '\x1b]8;;file:///home/ann/a%20b.agent\x1b\\a.agent:2\x1b]8;;\x1b\\'
    """
    from urllib.parse import quote

    return f"\x1b]8;;file://{quote(path, errors='surrogateescape')}\x1b\\{text}\x1b]8;;\x1b\\"


def terminal_columns(number: int = 2) -> int | None:
    """How wide the terminal behind a file descriptor is; None if there is none, or its width is unknown."""
    try:
        return os.get_terminal_size(number).columns or None
    except OSError:
        return None


def draws_lines(environ: Mapping[str, str]) -> bool:
    """Whether the terminal shows more than ASCII, by the locale, so that trees may have lines."""
    name = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    return "utf8" in name.lower().replace("-", "")
