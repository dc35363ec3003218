"""Prepare a command line to be carried out without a shell: the directory that it changes to, and its file patterns.

`llm_do.policy.commands.command_line` parses it. A pattern is expanded as shells do, but below the root only: matches
are sorted, hidden files and folders match only a pattern that begins with a dot, and a pattern without a match stays as
it is.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.commands.command_line import CommandSyntaxError, SimpleCommand, Word, parse_line, to_command_line
from llm_do.policy.values import CommandLine
from llm_do.text.canonical_json import digest
from llm_do.text.globs import Glob, parse_glob
from llm_do.toolsets.shell.path_arguments import directory_below_root

__all__ = ["CommandRefusedError", "PreparedLine", "parse_command", "prepare_line"]

_MOST_MATCHES = 1_000
_MOST_VISITED = 20_000
_ENCODABLE = re.compile(r"[^\ud800-\udfff]+")
"""A name that is text: others couldn't be shown."""


class CommandRefusedError(ToolError):
    """A command line isn't supported; the message says why and what to do instead."""


@frozen
class PreparedLine:
    """A command line with its file patterns expanded.

    `cwd` is the real path of the directory below the root that it runs in, `directory` the path as it was written.
    `expanded` is set if there was a pattern, so that the words depend on the files.
    """

    commands: tuple[SimpleCommand, ...]
    cwd: str
    directory: str
    expanded: bool = False

    @property
    def line(self) -> CommandLine:
        """The argument vectors that run."""
        return to_command_line(self.commands)

    @property
    def basis(self) -> str:
        """A digest of the words, if they depend on the files; else empty."""
        return digest([list(command.argv) for command in self.commands]) if self.expanded else ""

    @property
    def pipelines(self) -> list[list[SimpleCommand]]:
        """The commands, one list for each pipeline."""
        found: list[list[SimpleCommand]] = []
        for command in self.commands:
            if command.join == "|":
                found[-1].append(command)
            else:
                found.append([command])
        return found


def parse_command(text: str) -> CommandLine:
    """Parse a command line into its argument vectors, with its file patterns as they are.

    Anything but commands of literal words that are joined by `|`, `&&`, `||` or `;` raises `CommandRefusedError`.

    Example:
        >>> parse_command("git log -3 --format='%h %s' | head -n 2")
        (('git', 'log', '-3', '--format=%h %s'), ('head', '-n', '2'))
        >>> parse_command("ls > x")
        Traceback (most recent call last):
        ...
        llm_do.toolsets.shell.command_line.CommandRefusedError: redirections (`>`, `<`) are not supported, ...
    """
    return to_command_line(_parsed(text))


def prepare_line(text: str, root: Root, cwd: str) -> PreparedLine:
    """Parse a command line that starts in a directory below the root, and expand its file patterns.

    A line that isn't supported raises `CommandRefusedError`, a directory outside the root `FileRefusedError`.
    """
    commands = _parsed(text)
    folder = directory_below_root(root, cwd)
    while len(commands) > 1 and commands[0].argv[0] == "cd" and commands[1].join in ("&&", ";"):
        cwd = _target(commands[0], cwd)
        folder = directory_below_root(root, cwd)
        commands = (_first(commands[1]), *commands[2:])
    if any(command.argv[0] == "cd" for command in commands):
        raise CommandRefusedError(
            "`cd` is only supported at the beginning of a line, as `cd DIRECTORY && ...`: each call starts in the "
            "usual directory, or in `cwd`"
        )
    expanded = any(word.pattern for command in commands for word in command.words)
    if expanded:
        expand = _Expansion(root, folder)
        commands = tuple(expand.command(command) for command in commands)
    return PreparedLine(commands, folder, cwd, expanded)


def _parsed(text: str) -> tuple[SimpleCommand, ...]:
    try:
        return parse_line(text).commands
    except CommandSyntaxError as error:
        raise CommandRefusedError(str(error)) from error


def _first(command: SimpleCommand) -> SimpleCommand:
    return SimpleCommand(command.words, None, command.stdout, command.stderr)


def _target(command: SimpleCommand, cwd: str) -> str:
    operands = [word for word in command.argv[1:] if word != "--"]
    if len(operands) != 1 or operands[0].startswith("-") or command.words[-1].pattern is not None:
        raise CommandRefusedError("`cd` takes the name of one directory below the project's folder here")
    return operands[0] if operands[0].startswith("/") else str(PurePosixPath(cwd) / operands[0])


class _Expansion:
    """The expansion of the file patterns of one line."""

    def __init__(self, root: Root, cwd: str) -> None:
        self.root = root
        self.cwd = cwd
        self.visited = 0

    def command(self, command: SimpleCommand) -> SimpleCommand:
        """Return a command with its patterns expanded."""
        words = tuple(found for word in command.words for found in self._word(word))
        return SimpleCommand(words, command.join, command.stdout, command.stderr)

    def _word(self, word: Word) -> list[Word]:
        if word.pattern is None:
            return [word]
        parts = word.pattern.split("/")
        if parts[0] == "" or ".." in parts:
            raise CommandRefusedError(
                "file patterns are expanded below the directory only: name the files, or quote it"
            )
        found = self._matches("", parts)
        if len(found) > _MOST_MATCHES:
            raise CommandRefusedError(f"{word.text} matches more than {_MOST_MATCHES:,} files: name a folder instead")
        return [Word(path) for path in sorted(found)] or [Word(word.text)]

    def _matches(self, base: str, parts: list[str]) -> list[str]:
        """Return the paths below the directory that match a pattern, given by its segments."""
        glob, rest = parse_glob(parts[0]), parts[1:]
        literal = glob.literal
        if literal is not None:
            if rest:
                return self._matches(f"{base}{literal}/", rest)
            return [f"{base}{literal}"] if self._exists(f"{base}{literal}") else []
        names = [name for name in self._names(base) if _matches_name(glob, name)]
        if not rest:
            return [f"{base}{name}" for name in names]
        return [found for name in names for found in self._matches(f"{base}{name}/", rest)]

    def _names(self, base: str) -> list[str]:
        try:
            with self.root.folder(f"{self.cwd}/{base}") as (opened, _):
                names = [entry.name for entry in opened.entries() if _ENCODABLE.fullmatch(entry.name)]
        except FileRefusedError:  # not a folder, or one that is outside the root
            return []
        self.visited += len(names)
        if self.visited > _MOST_VISITED:
            raise CommandRefusedError("a file pattern looks through too many files: name a folder, or use `find`")
        return names

    def _exists(self, path: str) -> bool:
        try:
            found = self.root.stat(f"{self.cwd}/{path}", follow=path.endswith("/"))
        except FileRefusedError:
            return False
        return found.kind == "folder" or not path.endswith("/")


def _matches_name(glob: Glob, name: str) -> bool:
    return glob.matches(name) and (not name.startswith(".") or glob.prefix.startswith("."))
