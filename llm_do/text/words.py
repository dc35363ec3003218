"""Words in messages: which name was meant, and a noun with its article."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["article", "close_to", "nearest"]


def close_to(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The word most like `word`, None when none is.

    Args:
        word: What was written.
        words: What may have been meant.
        cutoff: How like it has to be, from 0 to 1.

    Example:
        >>> close_to("serach", ["search", "write"])
        'search'
    """
    import difflib  # only what has a fault needs it

    found = difflib.get_close_matches(word, list(words), n=1, cutoff=cutoff)
    return found[0] if found else None


def nearest(name: str, among: Iterable[str]) -> str | None:
    """A hint that names what is most like `name`, None when nothing is.

    Example:
        >>> nearest("serach", ["search", "write"])
        'did you mean `search`?'
    """
    close = close_to(name, among)
    return f"did you mean `{close}`?" if close else None


def article(noun: str) -> str:
    """A noun with its article.

    Example:
        >>> article("agent"), article("flow")
        ('an agent', 'a flow')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"
