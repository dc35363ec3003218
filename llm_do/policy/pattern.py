"""Parse rule patterns: `[AGENT:]TOOL[(PATTERN)]`.

`llm_do.policy.matcher` matches them against calls.

    read_file                            every call of the tool
    write_file(reports/**)               its primary argument, here a path
    shell(git log *)                     its primary argument, here a command
    send(to=*@example.org, kind=mail)    arguments by name
    writer:write_file(reports/**)        only from the agent `writer`
    main/writer:write_file(reports/**)   only at this call path
    plane::select_project                another spelling of plane_select_project
    files.write(secret/**)               whatever tool changes a file there; likewise files.read
    net(*.example.org)                   whatever tool reaches the host
    http_get(https://example.org/v1/**)  a URL: its host and its path

`*`, `?` and `[...]` are wildcards in every part. Quotes and backslashes make any character literal: spaces, commas,
parentheses, wildcards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from llm_do.policy.command_patterns import CommandGlob
from llm_do.policy.urls.url_pattern import UrlGlob
from llm_do.text.globs import Atom, Atoms, Glob, PathGlob, character_class

__all__ = ["ACTIONS", "Action", "ArgumentPattern", "Pattern", "PatternError", "parse_pattern"]

Action = Literal["files.read", "files.write", "net"]
"""What a rule may be about instead of a tool: an effect, whichever tool has it."""

ACTIONS: tuple[Action, ...] = get_args(Action)

_NAMED = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=")


class PatternError(ValueError):
    """The text of a rule isn't a valid pattern; `column` counts from 1, `hint` says what to write instead."""

    def __init__(self, message: str, text: str, column: int, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.column = column
        self.hint = hint


@dataclass(frozen=True)
class ArgumentPattern:
    """The part of a pattern that matches one argument, as text, a path, a command or a URL, whichever it is."""

    atoms: Atoms

    @cached_property
    def plain(self) -> Glob:
        """The glob for text: `*` matches any text."""
        return Glob(self.atoms)

    @cached_property
    def path(self) -> PathGlob:
        """The glob for a path inside a root: `*` stays within a segment."""
        return PathGlob.of(self.atoms)

    @cached_property
    def command(self) -> CommandGlob:
        """The glob for a command, matched word by word."""
        return CommandGlob.of(self.atoms)

    @cached_property
    def url(self) -> UrlGlob:
        """The glob for a host or a URL: `*` is any text in a host, and stays within a segment of a path."""
        return UrlGlob.of(self.atoms)

    @cached_property
    def spans_folders(self) -> bool:
        """Whether it has both a wildcard and a slash."""
        return self.plain.literal is None and any(atom.text == "/" for atom in self.atoms)

    def mismatch(self, kind: Literal["path", "host"]) -> str | None:
        """Explain why no resolved path, or no host, can match, if the pattern is spelled as none of them ever is."""
        if kind == "host":
            return self.url.fault
        first = self.path.segments[0] if self.path.segments else None
        if any(segment is not None and segment.literal == ".." for segment in self.path.segments):
            return "paths are resolved before they are compared, so that none has `..` in it"
        if first is not None and first.literal == "/":
            return "paths are relative to the folder that its tools work in"
        bare = bool(self.atoms) and self.atoms[0] == Atom("char", "~")
        return "`~` isn't replaced, and paths outside the project's folder are beyond these rules" if bare else None


@dataclass(frozen=True)
class Pattern:
    """A parsed rule pattern: the tools and agents it applies to, and the arguments it requires."""

    text: str
    tool: Glob = field(repr=False)
    agent: Glob | None = field(default=None, repr=False)
    agent_path: PathGlob | None = field(default=None, repr=False)
    primary: ArgumentPattern | None = field(default=None, repr=False)
    named: tuple[tuple[str, ArgumentPattern], ...] = field(default=(), repr=False)
    action: Action | None = None

    @property
    def caller_names(self) -> tuple[str, ...]:
        """The names without wildcards in front of the tool, in the order of the call path; places in flows left out.

        Example:
            >>> parse_pattern("main/2/*/critic:send").caller_names, parse_pattern("critic:send").caller_names
            (('main', 'critic'), ('critic',))
        """
        globs = self.agent_path.segments if self.agent_path is not None else (self.agent,)
        names = [glob.literal for glob in globs if glob is not None and glob.literal is not None]
        return tuple(name for name in names if not name.isdecimal())

    @property
    def calling_agent(self) -> Glob | None:
        """The glob for the agent that makes the call, None for any."""
        if self.agent_path is not None:
            return self.agent_path.segments[-1] if self.agent_path.segments else None
        return self.agent

    def names_tool(self, name: str) -> bool:
        """Whether the pattern applies to a tool with this name on the wire."""
        return self.action is None and self.tool.matches(name)


def parse_pattern(text: str) -> Pattern:
    """Parse the text of a rule.

    Example:
        >>> parse_pattern("writer:write_file(reports/**)").names_tool("write_file")
        True
    """
    return _Reader(text).pattern()


class _Reader:
    """A parser of one pattern; `at` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str, hint: str, at: int | None = None) -> PatternError:
        return PatternError(message, self.text, (self.at if at is None else at) + 1, hint)

    def pattern(self) -> Pattern:
        head = self.name()
        agent: Atoms | None = None
        if self.peek() == ":":
            if not head:
                raise self.fail("there is no agent in front of the colon", "write `agent:tool`, or leave the colon out")
            self.at += 1
            agent, start = head, self.at
            head = self.name()
            if self.peek() == ":":
                raise self.fail("there is a second colon", "quote a colon that belongs to a name", start)
        if not head:
            raise self.fail("there is no tool", "write the name of a tool, or `*` for all of them")
        primary, named = self.arguments() if self.peek() == "(" else (None, ())
        if self.at < len(self.text):
            raise self.fail(
                f"there is a stray {self.text[self.at]!r}",
                "write `tool`, `tool(PATTERN)` or `tool(name=PATTERN, ...)`; quote a character that belongs to a name",
            )
        glob = Glob(head)
        action = glob.literal if glob.literal in ACTIONS else None
        if action is not None and named:
            raise self.fail(f"{action} has no arguments with names", f"write `{action}(PATTERN)`", 0)
        by_path = agent is not None and any(atom.text == "/" for atom in agent)
        return Pattern(
            self.text,
            glob,
            agent=Glob(agent) if agent and not by_path else None,
            agent_path=PathGlob.of(agent) if agent and by_path else None,
            primary=primary,
            named=named,
            action=action,
        )

    def name(self) -> Atoms:
        """Read a name; `toolkit::tool` is another spelling of `toolkit_tool`."""
        head = self.atoms(":(),", blanks=False)
        while head and self.text.startswith("::", self.at):
            self.at += 2
            rest = self.atoms(":(),", blanks=False)
            if not rest:
                raise self.fail("there is no tool behind `::`", "write `toolkit::tool`")
            head = (*head, Atom("char", "_"), *rest)
        return head

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def arguments(self) -> tuple[ArgumentPattern | None, tuple[tuple[str, ArgumentPattern], ...]]:
        self.at += 1
        if _NAMED.match(self.text, self.at) is None:
            start = self.at
            argument = self.argument("()")
            if not argument.atoms and self.peek() == ")":
                raise self.fail("the parentheses are empty", "leave them out, or write `*` between them", start)
            self.close()
            return argument, ()
        named: dict[str, ArgumentPattern] = {}
        while True:
            start = self.at
            found = _NAMED.match(self.text, self.at)
            if found is None:
                raise self.fail("there is no `name=` here", "quote a comma that belongs to a pattern")
            if found[1] in named:
                raise self.fail(f"the argument {found[1]} is given twice", "give each argument one pattern", start)
            self.at = found.end()
            named[found[1]] = self.argument("(),")
            if self.peek() != ",":
                break
            self.at += 1
        self.close()
        return None, tuple(named.items())

    def close(self) -> None:
        if self.peek() == "(":
            raise self.fail("there is a parenthesis inside the pattern", "quote it: '('")
        if self.peek() != ")":
            raise self.fail("the parenthesis is not closed", "write `)` at the end")
        self.at += 1
        if self.at < len(self.text):
            raise self.fail("something follows the closing parenthesis", "quote a parenthesis inside the pattern: ')'")

    def argument(self, stops: str) -> ArgumentPattern:
        atoms = list(self.atoms(stops, blanks=True))
        while atoms and atoms[0].bare and atoms[0].kind == "char" and atoms[0].text.isspace():
            del atoms[0]
        while atoms and atoms[-1].bare and atoms[-1].kind == "char" and atoms[-1].text.isspace():
            del atoms[-1]
        return ArgumentPattern(tuple(atoms))

    def atoms(self, stops: str, *, blanks: bool) -> Atoms:
        out: list[Atom] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in stops:
                break
            if char.isspace() and not blanks:
                raise self.fail("there is a blank in a name", "write the pattern without blanks, or quote them")
            if char in "'\"":
                out.extend(self.quoted(char))
            elif char == "\\":
                out.append(self.escaped())
            elif char == "[":
                out.append(self.character_class())
            else:
                out.append({"*": Atom("star"), "?": Atom("any")}.get(char) or Atom("char", char))
                self.at += 1
        return tuple(out)

    def quoted(self, quote: str) -> list[Atom]:
        start = self.at
        self.at += 1
        out = [Atom("void", bare=False)]
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == quote:
                self.at += 1
                return out
            if char == "\\" and quote == '"' and self.text[self.at + 1 : self.at + 2] in ("\\", '"'):
                self.at += 1
                char = self.text[self.at]
            out.append(Atom("char", char, bare=False))
            self.at += 1
        raise self.fail(
            "the quote is not closed", f"write {quote} where it ends, or \\{quote} for the character", start
        )

    def escaped(self) -> Atom:
        if self.at + 1 == len(self.text):
            raise self.fail("a backslash ends the pattern", "write \\\\ for the character")
        self.at += 2
        return Atom("char", self.text[self.at - 1], bare=False)

    def character_class(self) -> Atom:
        start = self.at
        negated = self.text[start + 1 : start + 2] in ("!", "^")
        first = start + 1 + negated
        end = self.text.find("]", first + 1)
        if end < 0:
            raise self.fail("the bracket is not closed", "write `]` where the set ends, or \\[ for the character")
        body = self.text[first:end]
        ranges: list[tuple[str, str]] = []
        place = 0
        while place < len(body):
            low, high = body[place], body[place + 2 : place + 3]
            if body[place + 1 : place + 2] == "-" and high:
                if low > high:
                    raise self.fail(f"the range {low}-{high} is empty", f"write {high}-{low}", first + place)
                ranges.append((low, high))
                place += 3
            else:
                ranges.append((low, low))
                place += 1
        self.at = end + 1
        return character_class(ranges, negated=negated)
