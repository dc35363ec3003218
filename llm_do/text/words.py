"""Words in messages: which name was meant, and a noun with its article."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest_match", "did_you_mean", "with_article"]


def closest_match(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The word most like `word`, None when none is.

    Example:
        >>> closest_match("serach", ["search", "write"])
        'search'
    """
    import difflib  # only what has a fault needs it

    found = difflib.get_close_matches(word, list(words), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(name: str, among: Iterable[str]) -> str | None:
    """A hint that names what is most like `name`, None when nothing is.

    Example:
        >>> did_you_mean("serach", ["search", "write"])
        'did you mean `search`?'
    """
    close = closest_match(name, among)
    return f"did you mean `{close}`?" if close else None


def with_article(noun: str) -> str:
    """A noun with its article.

    Example:
        >>> with_article("agent"), with_article("flow")
        ('an agent', 'a flow')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"
