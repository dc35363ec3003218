"""The words of a command pattern, and what a wildcard among them stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from llm_do.policy.commands.command_reading import is_url, read_command
from llm_do.policy.commands.grammar import is_known
from llm_do.policy.commands.launching_programs import INTERPRETERS, RUNNERS, WRAPPERS
from llm_do.policy.secrets import names_secret_file
from llm_do.text.globs import Atoms, Glob, PathGlob, split_atoms

__all__ = ["CommandWords", "Word", "is_off_limits", "program_of"]

_OUTSIDE = re.compile(r"(?:^|[=@,]|:(?!//)|^-[A-Za-z0-9]+)(?:[/~]|file:)", re.IGNORECASE)
_CLIMBING = re.compile(r"(?:^|[/=@,:]|^-[A-Za-z0-9]+)\.\.(?:[/=@,:]|$)")
_AUTHORITY = re.compile(r"[a-z+]+://[A-Za-z0-9.:-]+(?:/.*)?", re.DOTALL)
"""A URL whose host no program can read in two ways."""
_ENCODED_CLIMB = re.compile(
    r"(?:[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){2}(?:[/\\?#]|%(?:25)*(?:2f|5c)|$)", re.IGNORECASE
)
"""A `..` in a URL, however it is encoded: servers disagree about what it means."""
_FED = frozenset({"gxargs", "parallel", "xargs"})
"""Wrappers whose input becomes further words."""


@dataclass(frozen=True)
class Word:
    """One word of a command pattern."""

    atoms: Atoms

    @cached_property
    def glob(self) -> Glob:
        """The glob that matches the word."""
        return Glob(self.atoms)

    @cached_property
    def _segments(self) -> tuple[Glob | None, ...]:
        parts = [Glob(part) for part in split_atoms(self.atoms, "/", quoted=True)]
        return tuple(None if part.is_star and len(part.atoms) > 1 else part for part in parts)

    def admits(self, token: str, *, as_path: bool = True) -> bool:
        """Whether it allows a word: wildcards cover no option and, in a path, no `..`, and stay within a segment."""
        if self.glob.literal is not None:
            return token == self.glob.literal
        prefix = self.glob.prefix
        if token.startswith("-") and not prefix.startswith("-"):
            return False
        if not as_path:
            return self.glob.matches(token)
        if _CLIMBING.search(token) or (_OUTSIDE.search(token) and not _OUTSIDE.search(prefix)):
            return False
        if names_secret_file(token) and not names_secret_file(prefix):
            return False
        if is_url(token) and (_AUTHORITY.fullmatch(token) is None or _ENCODED_CLIMB.search(token)):
            return False
        return self.glob.is_star or PathGlob(self._segments).matches(token.split("/"))


@dataclass(frozen=True)
class CommandWords:
    """The words of a pattern of one command."""

    words: tuple[Word, ...]

    @cached_property
    def program(self) -> str | None:
        """The program's name in lower case, None if it contains a wildcard."""
        name = self.words[0].glob.literal if self.words else None
        return None if name is None else name.lower()

    @cached_property
    def is_broad(self) -> bool:
        """Whether its final `*` stands for any program, or for any text that a program executes."""
        return _is_broad(self.words)

    @cached_property
    def names_url(self) -> bool:
        """Whether a word is a URL, so that its final `*` stands for no other one."""
        return any("://" in word.glob.prefix for word in self.words[1:])

    @cached_property
    def options(self) -> tuple[Word, ...]:
        return tuple(word for word in self.words[1:] if word.glob.prefix.startswith("-") and word.glob.prefix != "-")

    @cached_property
    def ordered(self) -> tuple[Word, ...]:
        ordered = [word for word in self.words[1:] if word not in self.options]
        while ordered and ordered[-1].glob.is_star:
            ordered.pop()
        return tuple(ordered)


def _is_broad(words: tuple[Word, ...]) -> bool:
    if not words or words[0].glob.is_star:
        return True
    if len(words) == 1 or not words[-1].glob.is_star:
        return False
    argv = tuple(word.glob.literal or "x" for word in words[:-1])
    program = program_of(argv[0])
    if program in WRAPPERS and (not is_known(program) or program in _FED):
        return True
    if program in INTERPRETERS and all(word.startswith("-") for word in argv[1:]):
        return True
    reading = read_command(argv)
    if not is_known(reading.subcommand) and not RUNNERS.get(program, frozenset()).isdisjoint(argv[1:]):
        return True
    return reading.open_launch


def program_of(name: str) -> str:
    """Return the name of a program without its path, in lower case."""
    return name.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


def is_off_limits(text: str) -> bool:
    """Whether a path must be spelled out: one that seems to leave the folder, or that names a secret file."""
    return _CLIMBING.search(text) is not None or _OUTSIDE.search(text) is not None or names_secret_file(text)
