"""Characters that look like those of ASCII and aren't: in a path or a command, a person would read another one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["find_lookalikes"]

_WORD = re.compile(r"[^\W\d_]+")
_SIGN = re.compile(
    "[\u2215\u2044\u29f8\u2571\u27cb"  # like /
    "\u2010\u2011\u2212\u2043\ufe58"  # like -
    "\u2024\u2236\u02d0\ua789"  # like . and :
    "\u2217\u204e\u01c3\u2223\u01c0\u037e\u223c"  # like * ! | ; ~
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e]"  # full width
    r"|(?<!\S)[\u2013\u2014](?=\w)"  # a dash where an option begins; elsewhere it belongs to prose
)
_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "MATHEMATICAL", "FULLWIDTH")
_LETTERS = frozenset("аеорсухіјѕһԁԛԝАВЕЅІЈКМНОРСТУХԌԚԜονΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսհ")
"""Letters of which a whole word may be made that reads as one of Latin letters."""


def find_lookalikes(text: str, most: int = 3) -> tuple[str, ...]:
    """Return the characters that a person might take for others, each once, with its name.

    Those are letters of another script in a word that also has Latin ones, or of which a whole word looks like one of
    Latin letters, and signs that look like ASCII's.

    Args:
        text: A path, a command, a host.
        most: How many to name.

    Example:
        >>> find_lookalikes("rm b\u0430ck\u2215up")
        ('\u0430 (U+0430, Cyrillic small letter a)', '\u2215 (U+2215, Division slash)')
        >>> find_lookalikes("rm \u0434\u043e\u043c/caf\u00e9.txt")
        ()
    """
    if text.isascii():
        return ()
    found = dict.fromkeys(_found(text))
    named = [f"{char} (U+{ord(char):04X}, {unicodedata.name(char, 'a sign').capitalize()})" for char in found]
    return (*named[:most], *([f"{len(named) - most} more"] if len(named) > most else []))


def _found(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        foreign = [char for char in word if not char.isascii() and _script(char) in _SCRIPTS]
        if foreign and (len(foreign) < len(word) or all(_is_like_latin(char) for char in word)):
            yield from foreign
    yield from _SIGN.findall(text)


def _is_like_latin(char: str) -> bool:
    return char in _LETTERS or unicodedata.normalize("NFKC", char).isascii()


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]
