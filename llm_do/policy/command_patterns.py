"""Match command patterns word by word against parsed command lines, never against raw text.

A rule that allows matches narrowly:

- a bare program name matches that name only, not a path to it or a program that runs it;
- each word matches one word, and a final `*` any number of further words;
- a wildcard never covers a word that seems to leave the folder (`/x`, `~`, `..` or `file:`, also after `=`, `@`, `,`,
  `:` or the letters of an option, as in `-C..`, but not the `://` of a URL), a secret file (`llm_do.policy.secrets`) or
  an option that writes or executes (`llm_do.policy.risks`), and one that isn't final covers no option at all: a rule
  has to spell these out.

`*` alone allows every command that can be parsed.

A rule that denies or asks matches broadly: by any path to the program, through any wrapper, with options before and
between the words or in another order, and with any further words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeGuard, cast

from llm_do.policy.risks import INTERPRETERS, RISKS, RUNNERS, WRAPPERS, is_risky, program_name
from llm_do.policy.secrets import names_secret_file
from llm_do.policy.values import Pipeline
from llm_do.text.globs import Atoms, Glob, PathGlob, split_atoms

__all__ = ["CommandGlob", "Word", "is_pipeline"]

_OUTSIDE = re.compile(r"(?:^|[=@,]|:(?!//)|^-[A-Za-z0-9]+)(?:[/~]|file:)", re.IGNORECASE)
_CLIMBING = re.compile(r"(?:^|[/=@,:]|^-[A-Za-z0-9]+)\.\.(?:[/=@,:]|$)")
_REDEFINES = re.compile(r"\b(?:alias|include(?:if)?)\..*=|=(?:alias|include(?:if)?)\.|^GIT_CONFIG", re.IGNORECASE)
"""A git setting that redefines subcommands."""
_BLANKS = " \t\r\n\f\v"
_MOST_WORDS = 1000
_SCRIPT_WORD = re.compile(r"[^\s;|&()<>`$'\"{}=!]+")
_QUOTING = re.compile(r"[\\'\"]")
_LOADER = re.compile(r"ld(?:-linux|\.so|-musl)[^/]*")


def is_pipeline(value: object) -> TypeGuard[Pipeline]:
    """Whether a resolved argument is a parsed command line with a program in every stage."""
    if not isinstance(value, tuple):
        return False
    commands = cast("tuple[object, ...]", value)
    return bool(commands) and all(isinstance(argv, tuple) and argv != () for argv in commands)


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

    def admits(self, token: str) -> bool:
        """Whether it allows a word: wildcards stay within a path segment and cover no option and no `..`."""
        if self.glob.literal is not None:
            return token == self.glob.literal
        prefix = self.glob.prefix
        if (token.startswith("-") and not prefix.startswith("-")) or _CLIMBING.search(token):
            return False
        if _OUTSIDE.search(token) and not _OUTSIDE.search(prefix):
            return False
        if names_secret_file(token) and not names_secret_file(prefix):
            return False
        return self.glob.is_star or PathGlob(self._segments).matches(token.split("/"))


@dataclass(frozen=True)
class _Command:
    """The words of a pattern of one command."""

    words: tuple[Word, ...]

    @cached_property
    def program(self) -> str | None:
        """The program's name in lower case, None if it contains a wildcard."""
        name = self.words[0].glob.literal if self.words else None
        return None if name is None else name.lower()

    @cached_property
    def options(self) -> tuple[Word, ...]:
        return tuple(word for word in self.words[1:] if word.glob.prefix.startswith("-") and word.glob.prefix != "-")

    @cached_property
    def ordered(self) -> tuple[Word, ...]:
        ordered = [word for word in self.words[1:] if word not in self.options]
        while ordered and ordered[-1].glob.is_star:
            ordered.pop()
        return tuple(ordered)


@dataclass(frozen=True)
class CommandGlob:
    """A pattern of one command, or of a pipeline of several."""

    commands: tuple[_Command, ...]

    @classmethod
    def of(cls, atoms: Atoms) -> CommandGlob:
        """Build the pattern from atoms; unquoted blanks separate words, `|` separates commands."""
        return cls(
            tuple(
                _Command(tuple(Word(word) for word in split_atoms(command, _BLANKS) if word))
                for command in split_atoms(atoms, "|")
            )
        )

    @cached_property
    def is_broad(self) -> bool:
        """Whether it allows running anything: `*`, or any arguments to a program that runs other programs."""
        return any(_is_broad(command.words) for command in self.commands)

    def allows(self, pipeline: Pipeline) -> frozenset[int]:
        """Return the stages of a pipeline that a rule with this pattern allows."""
        if len(self.commands) == 1:
            return frozenset(place for place, argv in enumerate(pipeline) if _allows(self.commands[0].words, argv))
        fits = len(self.commands) == len(pipeline) and all(
            _allows(command.words, argv) for command, argv in zip(self.commands, pipeline, strict=True)
        )
        return frozenset(range(len(pipeline))) if fits else frozenset()

    def touches(self, pipeline: Pipeline) -> bool:
        """Whether a rule with this pattern that denies or asks applies to a pipeline."""
        if len(self.commands) == 1:
            return any(_touches(self.commands[0], argv) for argv in pipeline)
        left = list(self.commands)
        for argv in pipeline:
            if left and _touches(left[0], argv):
                del left[0]
        return not left


def _is_broad(words: tuple[Word, ...]) -> bool:
    if not words or words[0].glob.is_star:
        return True
    program = (words[0].glob.literal or "").rpartition("/")[2]
    open_ended = words[-1].glob.is_star
    only_options = all((word.glob.literal or "").startswith("-") for word in words[1:-1])
    return open_ended and (program in WRAPPERS or (program in INTERPRETERS and only_options))


def _program(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


def _allows(words: tuple[Word, ...], argv: tuple[str, ...]) -> bool:
    if len(words) == 1 and words[0].glob.is_star:
        return True
    if not words or not _allows_program(words[0], argv[0]):
        return False
    open_ended = len(words) > 1 and words[-1].glob.is_star
    fixed = words[1:-1] if open_ended else words[1:]
    rest = argv[1 + len(fixed) :]
    if len(argv) - 1 < len(fixed) or (rest and not open_ended):
        return False
    program = _program(argv[0])
    programs = program_name(program, argv)
    if program in WRAPPERS:
        programs |= {*map(_program, argv)} & RISKS.keys()
    for word, token in zip(fixed, argv[1:], strict=False):
        if not word.admits(token) or not _is_spelled(word, token, programs):
            return False
    return not rest or _covers_rest(program, programs, argv, rest)


def _allows_program(word: Word, program: str) -> bool:
    if word.glob.literal is not None:
        return word.glob.literal == program
    if "=" in program or _program(program) in WRAPPERS or ("/" in program) != ("/" in word.glob.prefix):
        return False
    return word.admits(program)


def _is_spelled(word: Word, token: str, programs: set[str]) -> bool:
    return word.glob.literal is not None or not is_risky(programs, token) or is_risky(programs, word.glob.prefix)


def _covers_rest(program: str, programs: set[str], argv: tuple[str, ...], rest: tuple[str, ...]) -> bool:
    if any(is_risky(programs, token) or _CLIMBING.search(token) or _OUTSIDE.search(token) for token in rest):
        return False
    if any(map(names_secret_file, rest)):
        return False
    risk = RISKS.get(program)
    if risk is None:
        return True
    if risk.bundled and len(rest) == len(argv) - 1 and is_risky(programs, f"-{rest[0]}"):
        return False
    operands = sum(1 for token in argv[1:] if not token.startswith("-") or token == "-")
    return risk.operands is None or operands <= risk.operands


class _View(NamedTuple):
    """The words of a command, and the positions where programs may start, by name."""

    words: tuple[str, ...]
    starts: dict[str, list[int]]


@lru_cache(maxsize=64)
def _views(argv: tuple[str, ...]) -> tuple[_View, ...] | None:
    """Return a command and the commands it may run; None if there are too many words or they can't be determined."""
    program = _program(argv[0])
    views = [_View(argv, {name: [0] for name in (program, argv[0].lower())})]
    if _runs_others(program, argv):
        words: list[str] = []
        for token in argv[1:]:
            words += [token, *(inner for inner in _SCRIPT_WORD.findall(token) if inner != token)]
            if _QUOTING.search(token):
                words += _SCRIPT_WORD.findall(_QUOTING.sub("", token))
        if len(words) > _MOST_WORDS:
            return None
        starts: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for name in {_program(word), word.lower()}:
                starts.setdefault(name, []).append(place)
        if (program == "git" or "git" in starts) and any(map(_REDEFINES.search, words)):
            return None
        views.append(_View(tuple(words), starts))
    return tuple(views)


def _runs_others(program: str, argv: tuple[str, ...]) -> bool:
    """Whether a command's words may include other programs."""
    if program in WRAPPERS or program in INTERPRETERS - {"git"} or program in ("find", "fd") or "=" in argv[0]:
        return True
    if _LOADER.fullmatch(program) or not RUNNERS.get(program, frozenset()).isdisjoint(argv[1:]):
        return True
    names = program_name(program, argv)
    return program in RISKS and any(is_risky(names, token) for token in argv[1:])


def _touches(command: _Command, argv: tuple[str, ...]) -> bool:
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


def _touches_at(command: _Command, argv: Sequence[str]) -> bool:
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
