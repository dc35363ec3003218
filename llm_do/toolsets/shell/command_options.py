"""Tables of the options that programs may be run with, and a parser of commands that uses them.

An option that isn't in the table is refused, including abbreviations of long options: a program may accept more options
than its table, but must not interpret those in it differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal

from llm_do._startup.frozen import frozen

__all__ = ["Options", "UnknownOptionError", "read_words"]

Role = Literal["operand", "value", "path"]
"""The role of a word in a command: an operand, an option's value, or an option's value that is a path."""


class UnknownOptionError(Exception):
    """A command has an option that its table doesn't name, or one that lacks its value."""


@frozen
class Options:
    """The options of one program, without their dashes.

    `flags` are letters without a value, `valued` letters with a value in the same word or the next, `attached` letters
    with an optional value in the same word. `long` options have no value, `long_valued` ones a value after `=` or in
    the next word, `long_optional` ones an optional value after `=`. `paths` names the options whose value is a path;
    `digits` is set if `-3` is an option.
    """

    flags: str = ""
    valued: str = ""
    attached: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    long_optional: frozenset[str] = frozenset()
    paths: frozenset[str] = field(default_factory=frozenset[str])
    digits: bool = False

    @classmethod
    def of(
        cls,
        flags: str = "",
        valued: str = "",
        long: str = "",
        long_valued: str = "",
        long_optional: str = "",
        paths: str = "",
        *,
        attached: str = "",
        digits: bool = False,
    ) -> Options:
        """Build a table from texts: letters in a row, names separated by blanks."""
        return cls(
            flags,
            valued,
            attached,
            frozenset(long.split()),
            frozenset(long_valued.split()),
            frozenset(long_optional.split()),
            frozenset(paths.split()),
            digits,
        )


def read_words(words: Sequence[str], options: Options) -> Iterator[tuple[Role, str, str]]:
    """Parse the words after a program as the program will; an option that isn't in the table is an error.

    Yield the role of each word or part of a word, the option it is the value of (empty for an operand), and its text.

    Example:
        >>> list(read_words(["-rn", "-e", "x", "src"], Options.of("rn", "e")))
        [('value', 'e', 'x'), ('operand', '', 'src')]
    """
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            for each in reversed(rest):
                yield "operand", "", each
            return
        if word == "-" or not word.startswith("-"):
            yield "operand", "", word
        elif word.startswith("--"):
            yield from _long(word, options, rest)
        elif not (options.digits and word[1:].isascii() and word[1:].isdigit()):
            yield from _short(word, options, rest)


def _long(word: str, options: Options, rest: list[str]) -> Iterator[tuple[Role, str, str]]:
    name, equals, value = word[2:].partition("=")
    if (not equals and name in options.long) or (not equals and name in options.long_optional):
        return
    if equals and (name in options.long_optional or name in options.long_valued):
        yield _role(name, options), name, value
    elif name in options.long_valued and rest:
        yield _role(name, options), name, _next(word, rest)
    else:
        raise UnknownOptionError(word)


def _short(word: str, options: Options, rest: list[str]) -> Iterator[tuple[Role, str, str]]:
    for place, letter in enumerate(word[1:], start=2):
        if letter in options.flags:
            continue
        if letter in options.attached:
            return
        if letter not in options.valued or not (word[place:] or rest):
            raise UnknownOptionError(f"-{letter}" if len(word) == 2 else f"-{letter} in {word}")
        yield _role(letter, options), letter, word[place:] or _next(word, rest)
        return


def _next(option: str, rest: list[str]) -> str:
    """Return a value that is a separate word. It must not look like an option, since programs differ about these."""
    value = rest.pop()
    if value.startswith("-") and value != "-" and not value[1:].isdecimal():
        raise UnknownOptionError(f"{option} {value}")
    return value


def _role(name: str, options: Options) -> Role:
    return "path" if name in options.paths else "value"
