"""Untrusted text made safe and fully visible, for terminals, logs, approval questions and commands to copy.

Colours, boxes and paging live in `llm_do.ui.terminal`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

__all__ = [
    "escape_acting",
    "escape_controls",
    "escape_data",
    "format_arguments",
    "sanitize",
    "shell_word",
    "shell_words",
]

_INVISIBLE = frozenset(
    [
        0x034F,  # combining grapheme joiner
        *(0x115F, 0x1160, 0x3164, 0xFFA0),  # Hangul fillers
        *(0x17B4, 0x17B5),  # Khmer inherent vowels
        *range(0x180B, 0x1810),  # Mongolian selectors
        0x2800,  # blank braille pattern
        *range(0xFE00, 0xFE10),  # variation selectors
        0x1D159,  # null notehead
        *range(0xE0100, 0xE01F0),  # variation selectors supplement
    ]
)
"""Characters that print nothing although Unicode calls them letters, marks or symbols."""

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ACTING = re.compile(
    r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_OTHER = re.compile(r"[^\x00-\x7e]")
_TAIL = r"x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}"
# A whole run of backslashes is one match, also when nothing follows: that keeps long runs linear.
_ODD = re.compile(rf"(\\*)([^ -~])|(\\+)([nrt]|{_TAIL})?")
_ODD_IN_LINES = re.compile(rf"(\\*)([^ -~])|(\\+)([rt]|{_TAIL})?")


def sanitize(text: str, *, lines: bool = False) -> str:
    r"""Make every character of a text visible, and none of them able to act on a terminal.

    Control, format (bidirectional, zero-width), private, unassigned and otherwise invisible
    characters, lone surrogates and all spaces but the space are escaped as in Python. A backslash in
    front of what looks like such an escape is doubled, so that different texts never look the same.
    Nothing is truncated.

    Example:
        >>> print(sanitize("rm \u202etxt.exe\x1b[2J"))
        rm \u202etxt.exe\x1b[2J
        >>> print(sanitize("a literal \\u202e, C:\\dir"))
        a literal \\u202e, C:\dir
    """
    return _escape_invisible(text, lines=lines, double=True)


def shell_word(text: str) -> str:
    r"""A text as one word of a command that a person copies into a shell; `sanitize` changes nothing of it.

    What can't be shown, such as the bytes of a file's name that isn't UTF-8, is written in octal, as bash, zsh and ksh
    read it.

    Example:
        >>> print(shell_word("prod keys"), shell_word("desk\udcff"))
        'prod keys' $'desk\377'
    """
    import shlex  # most processes suggest no command

    quoted = shlex.quote(text)  # noqa: TID251
    if sanitize(quoted) == quoted:
        return quoted
    return f"$'{''.join(map(_in_octal, text))}'"


def shell_words(words: Iterable[str]) -> str:
    """The words of a command that a person copies into a shell."""
    return " ".join(map(shell_word, words))


def _in_octal(character: str) -> str:
    if character not in "'\\" and sanitize(character) == character:
        return character
    try:
        data = character.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # half of a character, which no file's name has
        data = character.encode(errors="replace")
    return "".join(f"\\{byte:03o}" for byte in data)


def escape_controls(text: str) -> str:
    r"""Escape what `sanitize` escapes, but leave backslashes alone, so that escaping twice changes nothing.

    Example:
        >>> print(escape_controls(escape_controls("a\x1b[31m\u202eb")))
        a\x1b[31m\u202eb
    """
    return _escape_invisible(text, lines=False, double=False)


def escape_acting(text: str) -> str:
    r"""Escape what acts on a terminal in lines that may have colours: for what was made safe piece by piece.

    Example:
        >>> escape_acting("\x1b[1mbold\x1b[0m \x1b]0;title\x07") == "\x1b[1mbold\x1b[0m " + r"\x1b]0;title\x07"
        True
    """
    return _ACTING.sub(lambda found: _escape(found[0]), text)


def escape_data(text: str) -> str:
    r"""Escape what can't be seen, and isn't ASCII, as JSON does: the same data, if the text is JSON.

    `json.dumps` escapes ASCII's own control characters, and some that act on a terminal aren't among them.

    Example:
        >>> escape_data('{"name": "a\u009b2Jb \u202e"}') == '{"name": "a' + r'\u009b2Jb \u202e"}'
        True
    """
    return text if text.isascii() else _OTHER.sub(lambda found: _as_json(found[0]), text)


def _as_json(char: str) -> str:
    return char if char.isprintable() and ord(char) not in _INVISIBLE else json.dumps(char)[1:-1]


def format_arguments(args: Mapping[str, object], *, lines: bool = True) -> list[tuple[str, str]]:
    """Format every argument of a call as a name and a text, in order.

    Strings are shown as they are, other values as JSON; a string that would read as such a value is quoted.

    Example:
        >>> format_arguments({"to": "ann", "urgent": True, "code": "1"})
        [('to', 'ann'), ('urgent', 'true'), ('code', '"1"')]
    """
    return [(sanitize(name), _format_value(value, lines=lines)) for name, value in args.items()]


def _format_value(value: object, *, lines: bool) -> str:
    if isinstance(value, str) and not _reads_as_json(value):
        return sanitize(value, lines=lines)
    # Imported here: every error message is sanitized, and few show arguments.
    from llm_do.text.canonical_json import canonical_json

    try:
        # JSON has doubled the backslashes of strings already.
        return _escape_invisible(canonical_json(value), lines=False, double=False)
    except TypeError:
        return sanitize(repr(value))


def _escape_invisible(text: str, *, lines: bool, double: bool) -> str:
    def replacement(found: re.Match[str]) -> str:
        slashes, odd, lone, tail = found.groups()
        if odd is None:
            return lone * 2 + tail if tail and double else found[0]
        if (lines and odd == "\n") or (odd.isprintable() and ord(odd) not in _INVISIBLE):
            return found[0]
        return slashes * (1 + double) + _escape(odd)

    return (_ODD_IN_LINES if lines else _ODD).sub(replacement, text)


def _reads_as_json(text: str) -> bool:
    if not text.strip():
        return True
    if len(text) > 64:
        return False
    try:
        return not isinstance(json.loads(text), (dict, list))
    except ValueError:
        return False


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
