"""Match command patterns word by word against parsed command lines, never against raw text.

A rule that allows matches narrowly:

- a bare program name matches that name only, not a path to it or a program that runs it;
- each word matches one word, and a final `*` any number of further words;
- a wildcard covers only what the program's grammar (`llm_do.policy.commands.grammar`) knows to be harmless: no option
  that writes or executes, no program, no secret file (`llm_do.policy.secrets`), and where a word may be a path, none
  that seems to leave the folder (`/x`, `~`, `..` or `file:`, also after `=`, `@`, `,`, `:` or the letters of an option,
  as in `-C..`). A rule has to spell these out. A wildcard that isn't the final `*` covers no option at all.

`*` alone allows every command that can be parsed. A filter behind a command that is allowed needs no rule
(`llm_do.policy.commands.filters`).

A rule that denies or asks matches broadly: by any path to the program, through any wrapper, with options before and
between the words or in another order, and with any further words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard, cast

from llm_do.policy.commands.command_reading import Piece, read_command
from llm_do.policy.commands.filters import is_filter
from llm_do.policy.commands.launching_programs import WRAPPERS
from llm_do.policy.commands.pattern_words import CommandWords, Word, is_off_limits, program_of
from llm_do.policy.commands.restrictions import touches
from llm_do.policy.values import CommandLine, Join, Pipeline
from llm_do.text.globs import Atoms, split_atoms

__all__ = ["CommandGlob", "is_pipeline"]

_BLANKS = " \t\r\n\f\v"


def is_pipeline(value: object) -> TypeGuard[Pipeline]:
    """Whether a resolved argument is a parsed command line with a program in every stage."""
    if not isinstance(value, tuple):
        return False
    commands = cast("tuple[object, ...]", value)
    return bool(commands) and all(isinstance(argv, tuple) and argv != () for argv in commands)


@dataclass(frozen=True)
class CommandGlob:
    """A pattern of one command, or of several that are joined."""

    commands: tuple[CommandWords, ...]
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
        return cls(tuple(CommandWords(tuple(each)) for each in words), tuple(joins))

    @cached_property
    def is_broad(self) -> bool:
        """Whether it allows running anything: `*`, or any arguments to a program that runs other programs."""
        return any(command.is_broad for command in self.commands)

    def allows(self, pipeline: Pipeline) -> frozenset[int]:
        """Return the commands of a line that a rule with this pattern allows.

        A pattern of several commands allows a part of a line, or all of it, that is joined in the same way. What a
        command that is allowed prints may go through filters.
        """
        joins = CommandLine.joins_of(pipeline)
        found = set(self._spelled(pipeline))
        for place in range(1, len(pipeline)):
            if place - 1 in found and joins[place - 1] == "|" and is_filter(pipeline[place]):
                found.add(place)
        return frozenset(found)

    def _spelled(self, pipeline: Pipeline) -> frozenset[int]:
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
            return any(touches(self.commands[0], argv) for argv in pipeline)
        left = list(self.commands)
        for argv in pipeline:
            if left and touches(left[0], argv):
                del left[0]
        return not left


def _join_at(atoms: Atoms, at: int) -> Join | None:
    """Return the operator at a place of a pattern."""
    text = "".join(atom.text if atom.kind == "char" and atom.bare else "\0" for atom in atoms[at : at + 2])
    joins: tuple[Join, ...] = ("&&", "||", "|", ";")
    return next((join for join in joins if text.startswith(join)), None)


def _allows(command: CommandWords, argv: tuple[str, ...]) -> bool:
    words = command.words
    if len(words) == 1 and words[0].glob.is_star:
        return True
    if not words or not _allowsprogram_of(words[0], argv[0]):
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


def _allowsprogram_of(word: Word, program: str) -> bool:
    if word.glob.literal is not None:
        return word.glob.literal == program
    if "=" in program or program_of(program) in WRAPPERS or ("/" in program) != ("/" in word.glob.prefix):
        return False
    return word.admits(program)


def _admits(command: CommandWords, word: Word, argv: tuple[str, ...], place: int, pieces: Sequence[Piece]) -> bool:
    """Whether a word with a wildcard, which isn't the final `*`, allows the word in its place."""
    token, prefix = argv[place], word.glob.prefix
    roles = {piece.role for piece in pieces if piece.word == place}
    if "unknown" in roles and not (prefix.endswith("=") and token.startswith(prefix)):
        spelled = read_command((*argv[:place], prefix, *argv[place + 1 :])).pieces if len(prefix) > 1 else ()
        if not any(piece.role == "unknown" and piece.word == place for piece in spelled):
            return False
    if roles & {"launch", "script"} and not (prefix or command.is_broad):
        return False
    return word.admits(token, as_path=not roles <= {"text", "option", "sent"})


def _is_covered(command: CommandWords, piece: Piece) -> bool:
    """Whether the final `*` of a pattern covers a word, or a part of one."""
    match piece.role:
        case "unknown":
            return False
        case "launch" | "script":
            return command.is_broad and not is_off_limits(piece.text)
        case "path" | "any" | "ref":
            return not is_off_limits(piece.text) and _NO_OPERAND.match(piece.text) is None
        case "loose":
            return not is_off_limits(piece.text)
        case "sent":
            return not command.names_url
        case "url":
            return not command.names_url and _NO_URL.match(piece.text) is None
        case _:
            return True


_NO_OPERAND = re.compile(r"-(?![0-9]*$)")
"""An operand after `--` that a program which doesn't know `--` would take for an option."""
_NO_URL = re.compile(r"file:|[/~@]|\.\.", re.IGNORECASE)
