"""Match the words of a pattern broadly, for a rule that denies or asks.

The program is found by any path, through any wrapper and in the scripts and option values that may contain it; options
may stand before and between the words or in another order, and any further words may follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from llm_do.policy.commands.command_reading import Piece, read_command
from llm_do.policy.commands.launching_programs import INTERPRETERS, RUNNERS, WRAPPERS
from llm_do.policy.commands.pattern_words import CommandWords, Word, program_of

__all__ = ["touches", "words_in"]

_REDEFINES = re.compile(r"\b(?:alias|include(?:if)?)\..*=|=(?:alias|include(?:if)?)\.|^GIT_CONFIG", re.IGNORECASE)
"""A git setting that redefines subcommands."""
_MOST_WORDS = 1000
_SCRIPT_WORD = re.compile(r"[^\s;|&()<>`$'\"{}=!]+")
_SED_RUNS = re.compile(r"(?=(?:^|[^A-Za-z])e\s*([^\n]+))")
_QUOTING = re.compile(r"[\\'\"]")
_LOADER = re.compile(r"ld(?:-linux|\.so|-musl)[^/]*")


class _View(NamedTuple):
    """The words of a command, and the positions where programs may start, by name."""

    words: tuple[str, ...]
    starts: dict[str, list[int]]


@lru_cache(maxsize=64)
def _views(argv: tuple[str, ...]) -> tuple[_View, ...] | None:
    """Return a command and the commands it may run; None if there are too many words or they can't be determined."""
    program = program_of(argv[0])
    launched = [(piece.text, *argv[piece.word + 1 :]) for piece in read_command(argv).pieces if piece.role == "launch"]
    views = [
        _View(words, {name: [0] for name in (program_of(words[0]), words[0].lower())}) for words in (argv, *launched)
    ]
    first = _first_searched(program, argv)
    if first < len(argv):
        words = [word for token in argv[first:] for word in words_in(token)]
        if len(words) > _MOST_WORDS:
            return None
        starts: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for name in {program_of(word), word.lower()}:
                starts.setdefault(name, []).append(place)
        if (program == "git" or "git" in starts) and any(map(_REDEFINES.search, words)):
            return None
        views.append(_View(tuple(words), starts))
    return tuple(views)


def _first_searched(program: str, argv: tuple[str, ...]) -> int:
    """Return the place of the first word that may name another program: any, or the first not known to be harmless."""
    if program in WRAPPERS or program in INTERPRETERS - {"git"} or program in ("find", "fd") or "=" in argv[0]:
        return 1
    if _LOADER.fullmatch(program) or not RUNNERS.get(program, frozenset()).isdisjoint(argv[1:]):
        return 1
    searched = (piece.word for piece in read_command(argv).pieces if _may_nameprogram_of(piece, argv))
    return min(searched, default=len(argv))


def _may_nameprogram_of(piece: Piece, argv: tuple[str, ...]) -> bool:
    if piece.role == "loose":  # an option whose value may be a command line
        return any(" " in word for word in argv[piece.word : piece.word + 2])
    return piece.role in ("unknown", "launch", "script")


def words_in(token: str) -> Iterator[str]:
    """Yield a word and those that a script in it, or in the value of an option, may consist of."""
    yield token
    texts = [token]
    if token.startswith("-") and not token.startswith("--"):
        texts += [token[at:] for at in range(2, min(len(token), 8))]
    texts += [found[1] for found in _SED_RUNS.finditer(token)]
    for text in dict.fromkeys(texts):
        yield from (inner for inner in _SCRIPT_WORD.findall(text) if inner != token)
        if _QUOTING.search(text):
            yield from _SCRIPT_WORD.findall(_QUOTING.sub("", text))


def touches(command: CommandWords, argv: tuple[str, ...]) -> bool:
    """Whether a rule with these words that denies or asks applies to a command."""
    views = _views(argv)
    if not command.words or views is None:
        return True
    program = command.program
    for view in views:
        if program is not None:
            starts = view.starts.get(program)
        else:
            named = command.words[0].glob
            starts = [at for name, places in view.starts.items() if named.matches(name, fold=True) for at in places]
        if starts and any(_touches_at(command, view.words[start:]) for start in starts):
            return True
    return False


def _touches_at(command: CommandWords, argv: Sequence[str]) -> bool:
    return _has_in_order(command.ordered, argv) and all(_has_option(word, argv) for word in command.options)


def _has_option(word: Word, argv: Sequence[str]) -> bool:
    option = word.glob.literal
    tokens = [token for token in argv[1:] if token.startswith("-")]
    if any(word.glob.matches(token, fold=True) for token in tokens):
        return True
    if option is None:
        return False
    name = option.partition("=")[0]
    if option.startswith("--"):
        # Programs accept abbreviations of an option, and `--opt=value` for `--opt`.
        return any(len(token) > 2 and name.startswith(token.partition("=")[0]) for token in tokens if token[:2] == "--")
    letters = {letter for token in tokens if token[:2] != "--" for letter in token[1:]}
    return set(option[1:]) <= letters


def _has_in_order(words: Sequence[Word], argv: Sequence[str]) -> bool:
    if words and len(argv) > 1 and not argv[1].startswith("-") and not _is_word(words[0], argv[1]):
        return False
    places = {1}
    for word in words:
        places = {
            place + 1 for place in _after_options(places, argv) if place < len(argv) and _is_word(word, argv[place])
        }
        if not places:
            return False
    return True


def _is_word(word: Word, token: str) -> bool:
    return word.glob.matches(token, fold=True) or word.glob.matches(token.removeprefix("./"), fold=True)


def _after_options(places: set[int], argv: Sequence[str]) -> set[int]:
    """Return the positions where the next word may be, skipping options with or without a value."""
    found: set[int] = set()
    todo = list(places)
    while todo:
        place = todo.pop()
        if place in found or place > len(argv):
            continue
        found.add(place)
        if place < len(argv) and argv[place].startswith("-"):
            todo += [place + 1, place + 2]
    return found
