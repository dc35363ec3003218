"""The words of a text, as a search compares them: the same for every database, whatever its own idea of a word is."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["is_beginning", "search_words"]

_WORD = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
"""A run of letters and digits; scripts without spaces between words have a word for each character.

It is compiled with the first search: that takes longer than opening a store, and few commands search.
"""

_SHORTEST_PLURAL = 4
_SHORTEST_BEGINNING = 3
_LONGEST = 64
"""Characters of a word that count; a database may refuse longer ones."""


def search_words(text: str, *, most: int | None = None) -> list[str]:
    """Return the words of a text without case, accents and the `s` of plurals.

    Args:
        text: The text.
        most: Return at most this many different words.

    Example:
        >>> search_words("Her 2 chairs, at the Café: 東京")
        ['her', '2', 'chair', 'at', 'the', 'cafe', '東', '京']
        >>> search_words("to be or not to be", most=3)
        ['to', 'be', 'or']
    """
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = unicodedata.normalize("NFC", "".join(each for each in plain if not unicodedata.combining(each)))
    words = [_singular(word)[:_LONGEST] for word in re.findall(_WORD, plain)]
    return words if most is None else list(dict.fromkeys(words))[:most]


def is_beginning(word: str) -> bool:
    """Whether a word that is searched for also stands for longer ones that begin with it.

    Example:
        >>> is_beginning("cha"), is_beginning("a")
        (True, False)
    """
    return len(word) >= _SHORTEST_BEGINNING


def _singular(word: str) -> str:
    return word[:-1] if len(word) >= _SHORTEST_PLURAL and word[-1] == "s" and word[-2] != "s" else word
