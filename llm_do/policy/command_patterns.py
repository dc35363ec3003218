"""Match command patterns word by word against parsed command lines, never against raw text.

A rule that allows matches narrowly:

- a bare program name matches that name only, not a path to it or a program that runs it;
- each word matches one word, and a final `*` any number of further words;
- a wildcard covers only what the program's grammar (`llm_do.policy.commands.grammar`) knows to be harmless: no option
  that writes or executes, no program, no secret file (`llm_do.policy.secrets`), and where a word may be a path, none
  that seems to leave the folder (`/x`, `~`, `..` or `file:`, also after `=`, `@`, `,`, `:` or the letters of an option,
  as in `-C..`). A rule has to spell these out. A wildcard that isn't the final `*` covers no option at all.

`*` alone allows every command that can be parsed.

A rule that denies or asks matches broadly: by any path to the program, through any wrapper, with options before and
between the words or in another order, and with any further words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeGuard, cast

from llm_do.policy.commands.command_reading import Piece, is_url, read_command
from llm_do.policy.commands.grammar import is_known
from llm_do.policy.commands.launching_programs import INTERPRETERS, RUNNERS, WRAPPERS
from llm_do.policy.secrets import names_secret_file
from llm_do.policy.values import CommandLine, Join, Pipeline
from llm_do.text.globs import Atoms, Glob, PathGlob, split_atoms

__all__ = ["CommandGlob", "Word", "is_pipeline"]

_OUTSIDE = re.compile(r"(?:^|[=@,]|:(?!//)|^-[A-Za-z0-9]+)(?:[/~]|file:)", re.IGNORECASE)
_CLIMBING = re.compile(r"(?:^|[/=@,:]|^-[A-Za-z0-9]+)\.\.(?:[/=@,:]|$)")
_REDEFINES = re.compile(r"\b(?:alias|include(?:if)?)\..*=|=(?:alias|include(?:if)?)\.|^GIT_CONFIG", re.IGNORECASE)
"""A git setting that redefines subcommands."""
_AUTHORITY = re.compile(r"[a-z+]+://[A-Za-z0-9.:-]+(?:/.*)?", re.DOTALL)
"""A URL whose host no program can read in two ways."""
_BLANKS = " \t\r\n\f\v"
_MOST_WORDS = 1000
_SCRIPT_WORD = re.compile(r"[^\s;|&()<>`$'\"{}=!]+")
_SED_RUNS = re.compile(r"(?:^|[^A-Za-z])e\s*([^\n]+)")
_QUOTING = re.compile(r"[\\'\"]")
_FED = frozenset({"gxargs", "parallel", "xargs"})
"""Wrappers whose input becomes further words."""
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
        if is_url(token) and _AUTHORITY.fullmatch(token) is None:
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


@dataclass(frozen=True)
class CommandGlob:
    """A pattern of one command, or of several that are joined."""

    commands: tuple[_Command, ...]
    joins: tuple[Join, ...] = ()

    @classmethod
    def of(cls, atoms: Atoms) -> CommandGlob:
        """Build the pattern from atoms; unquoted blanks separate words, `|`, `&&`, `||` and `;` commands."""
        commands: list[Atoms] = [()]
        joins: list[Join] = []
        at = 0
        while at < len(atoms):
            join = _join_at(atoms, at)
            if join is None:
                commands[-1] += (atoms[at],)
            else:
                commands.append(())
                joins.append(join)
            at += len(join or " ")
        words = ((Word(word) for word in split_atoms(command, _BLANKS) if word) for command in commands)
        return cls(tuple(_Command(tuple(each)) for each in words), tuple(joins))

    @cached_property
    def is_broad(self) -> bool:
        """Whether it allows running anything: `*`, or any arguments to a program that runs other programs."""
        return any(command.is_broad for command in self.commands)

    def allows(self, pipeline: Pipeline) -> frozenset[int]:
        """Return the commands of a line that a rule with this pattern allows.

        A pattern of several commands allows a part of a line, or all of it, that is joined in the same way.
        """
        size = len(self.commands)
        if size == 1:
            return frozenset(place for place, argv in enumerate(pipeline) if _allows(self.commands[0], argv))
        joins = CommandLine.joins_of(pipeline)
        found: set[int] = set()
        for start in range(len(pipeline) - size + 1):
            around = (*joins[start - 1 : start], *joins[start + size - 1 : start + size])
            if joins[start : start + size - 1] == self.joins and "|" not in around:
                part = pipeline[start : start + size]
                if all(_allows(command, argv) for command, argv in zip(self.commands, part, strict=True)):
                    found.update(range(start, start + size))
        return frozenset(found)

    def touches(self, pipeline: Pipeline) -> bool:
        """Whether a rule with this pattern that denies or asks applies to a pipeline."""
        if len(self.commands) == 1:
            return any(_touches(self.commands[0], argv) for argv in pipeline)
        left = list(self.commands)
        for argv in pipeline:
            if left and _touches(left[0], argv):
                del left[0]
        return not left


def _join_at(atoms: Atoms, at: int) -> Join | None:
    """Return the operator at a place of a pattern."""
    text = "".join(atom.text if atom.kind == "char" and atom.bare else "\0" for atom in atoms[at : at + 2])
    joins: tuple[Join, ...] = ("&&", "||", "|", ";")
    return next((join for join in joins if text.startswith(join)), None)


def _is_broad(words: tuple[Word, ...]) -> bool:
    if not words or words[0].glob.is_star:
        return True
    if len(words) == 1 or not words[-1].glob.is_star:
        return False
    argv = tuple(word.glob.literal or "x" for word in words[:-1])
    program = _program(argv[0])
    if program in WRAPPERS and (not is_known(program) or program in _FED):
        return True
    if program in INTERPRETERS and all(word.startswith("-") for word in argv[1:]):
        return True
    reading = read_command(argv)
    if program != "git" and not RUNNERS.get(program, frozenset()).isdisjoint(argv[1:]):
        return reading.open_launch or not any(piece.role == "launch" for piece in reading.pieces)
    return reading.open_launch


def _program(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


def _allows(command: _Command, argv: tuple[str, ...]) -> bool:
    words = command.words
    if len(words) == 1 and words[0].glob.is_star:
        return True
    if not words or not _allows_program(words[0], argv[0]):
        return False
    open_ended = len(words) > 1 and words[-1].glob.is_star
    fixed = words[1:-1] if open_ended else words[1:]
    if len(argv) - 1 < len(fixed) or (len(argv) - 1 > len(fixed) and not open_ended):
        return False
    if any(word.glob.literal not in (None, token) for word, token in zip(fixed, argv[1:], strict=False)):
        return False
    if len(argv) == len(words) and all(word.glob.literal is not None for word in words):
        return True
    pieces = read_command(argv).pieces
    for place, word in enumerate(fixed, start=1):
        if word.glob.literal is None and not _admits(command, word, argv, place, pieces):
            return False
    return all(_is_covered(command, piece) for piece in pieces if piece.word > len(fixed))


def _allows_program(word: Word, program: str) -> bool:
    if word.glob.literal is not None:
        return word.glob.literal == program
    if "=" in program or _program(program) in WRAPPERS or ("/" in program) != ("/" in word.glob.prefix):
        return False
    return word.admits(program)


def _admits(command: _Command, word: Word, argv: tuple[str, ...], place: int, pieces: Sequence[Piece]) -> bool:
    """Whether a word with a wildcard, which isn't the final `*`, allows the word in its place."""
    token, prefix = argv[place], word.glob.prefix
    roles = {piece.role for piece in pieces if piece.word == place}
    if "unknown" in roles and not (prefix.endswith("=") and token.startswith(prefix)):
        spelled = read_command((*argv[:place], prefix, *argv[place + 1 :])).pieces if len(prefix) > 1 else ()
        if not any(piece.role == "unknown" and piece.word == place for piece in spelled):
            return False
    if roles & {"launch", "script"} and not (prefix or command.is_broad):
        return False
    return word.admits(token, as_path=not roles <= {"text", "option"})


def _is_covered(command: _Command, piece: Piece) -> bool:
    """Whether the final `*` of a pattern covers a word, or a part of one."""
    match piece.role:
        case "unknown":
            return False
        case "launch" | "script":
            return command.is_broad and not _is_off_limits(piece.text)
        case "path" | "any" | "ref":
            return not _is_off_limits(piece.text) and _NO_OPERAND.match(piece.text) is None
        case "loose":
            return not _is_off_limits(piece.text)
        case "url":
            return not command.names_url and _NO_URL.match(piece.text) is None
        case _:
            return True


_NO_OPERAND = re.compile(r"-(?![0-9]*$)")
"""An operand after `--` that a program which doesn't know `--` would take for an option."""
_NO_URL = re.compile(r"file:|[/~@]|\.\.", re.IGNORECASE)


def _is_off_limits(text: str) -> bool:
    return _CLIMBING.search(text) is not None or _OUTSIDE.search(text) is not None or names_secret_file(text)


class _View(NamedTuple):
    """The words of a command, and the positions where programs may start, by name."""

    words: tuple[str, ...]
    starts: dict[str, list[int]]


@lru_cache(maxsize=64)
def _views(argv: tuple[str, ...]) -> tuple[_View, ...] | None:
    """Return a command and the commands it may run; None if there are too many words or they can't be determined."""
    program = _program(argv[0])
    views = [_View(argv, {name: [0] for name in (program, argv[0].lower())})]
    first = _first_searched(program, argv)
    if first < len(argv):
        words = [word for token in argv[first:] for word in _words_in(token)]
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


def _first_searched(program: str, argv: tuple[str, ...]) -> int:
    """Return the place of the first word that may name another program: any, or the first not known to be harmless."""
    if program in WRAPPERS or program in INTERPRETERS - {"git"} or program in ("find", "fd") or "=" in argv[0]:
        return 1
    if _LOADER.fullmatch(program) or not RUNNERS.get(program, frozenset()).isdisjoint(argv[1:]):
        return 1
    searched = (piece.word for piece in read_command(argv).pieces if piece.role in ("unknown", "launch", "script"))
    return min(searched, default=len(argv))


def _words_in(token: str) -> Iterator[str]:
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
