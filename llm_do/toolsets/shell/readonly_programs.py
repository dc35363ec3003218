"""Recognise commands that only read: those whose words the grammar of their program knows to only read.

The result is the paths that a command names, which `llm_do.toolsets.shell.path_arguments` looks up, or the reason why
the command may do more than read.
"""

from __future__ import annotations

from collections.abc import Sequence

from llm_do._startup.frozen import frozen
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.commands.grammar import reading_programs

__all__ = ["READING_PROGRAMS", "NotReadOnlyError", "ReadOnlyCommand", "parse_read_only"]

READING_PROGRAMS = tuple(dict.fromkeys(name.partition(" ")[0] for name in reading_programs()))
"""The programs that run without approval."""


_SAMPLE = "ls, cat, head, tail, wc, grep, find, sort, sed -n, jq, diff, git log and others"


class NotReadOnlyError(Exception):
    """A command may do more than read; the message is a clause that says why."""


@frozen
class ReadOnlyCommand:
    """A command that only reads the paths it names, files below them, or files below the current directory.

    `git` is the subcommand of a git command, with the subcommand of that, if it has one.
    """

    paths: tuple[str, ...]
    git: tuple[str, ...] = ()


def parse_read_only(argv: Sequence[str]) -> ReadOnlyCommand:
    """Parse a command that only reads; raise `NotReadOnlyError` if it may do more.

    Example:
        >>> parse_read_only(["grep", "-rn", "TODO", "src"]).paths
        ('src',)
        >>> parse_read_only(["find", ".", "-delete"])
        Traceback (most recent call last):
        ...
        llm_do.toolsets.shell.readonly_programs.NotReadOnlyError: find has the word -delete, ...
    """
    program = argv[0]
    reading = read_command(tuple(argv))
    if program not in READING_PROGRAMS and not reading.reads:
        raise NotReadOnlyError(f"{program} is not one of the programs that only read ({_SAMPLE})")
    if reading.unknown:
        raise NotReadOnlyError(
            f"{reading.subcommand} has the word {reading.unknown[0]}, which is not known to only read"
        )
    if not reading.reads:
        raise NotReadOnlyError(f"{reading.subcommand} is not known to only read when it is called like this")
    if reading.follows:
        raise NotReadOnlyError(f"{reading.subcommand} would follow links this way, which may lead outside the project")
    paths: list[str] = []
    for role, text, _ in reading.pieces:
        if role in ("path", "any") and text != "-":
            paths.append(text)
        elif role == "ref":
            # A revision may contain a path (`HEAD:path`, `:/text`, `1,2:path`), so it is checked as both.
            paths += [part for part in (text, text.partition(":")[2], text.rpartition(":")[2]) if part]
    git = tuple(reading.subcommand.split()[1:]) if program == "git" else ()
    return ReadOnlyCommand(tuple(paths), git)
