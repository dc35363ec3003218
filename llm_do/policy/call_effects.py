"""What a call reads, changes and reaches, by its tool's facts: for the rules `files.read`, `files.write` and `net`.

Commands are read by the grammar of their programs. What they name counts for rules that deny or ask; no rule of these
allows a command, since a program may do more than its arguments say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from llm_do.policy.arguments import read_host
from llm_do.policy.commands.command_reading import Piece, Reading, read_command
from llm_do.policy.commands.restrictions import words_in
from llm_do.policy.pattern import ACTIONS, Action, ArgumentPattern, Pattern
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import CommandLine, Host, Pipeline, ToolCallInfo, Trail, is_folder
from llm_do.text.globs import Glob, path_parts

__all__ = ["concerns", "covers_effects", "is_any_host", "touches_effects"]

_PARTS = re.compile(r"[=:,@]")
_NO_PATHS = frozenset({"option", "sent", "sub", "text", "url"})
_MAY_CONTAIN = frozenset({"any", "launch", "loose", "script", "unknown"})
"""The roles of words that may be scripts, or command lines of their own."""

_SEARCHES = frozenset({"ack", "ag", "fd", "find", "git archive", "git grep", "rg", "tree"})
"""Programs that look through the whole folder if no path is named."""
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--(?:dereference-)?recursive")


class _CallEffect(NamedTuple):
    action: Action
    targets: Sequence[list[str] | Host]
    """The target under all its names, the real one first; empty for one that can't be resolved."""
    is_folder: bool = False
    is_certain: bool = True
    """Whether it isn't only that a word may be the name of a host."""


def concerns(pattern: Pattern, facts: ToolFacts) -> bool:
    """Whether calls of a tool can have the effect that a pattern is about."""
    if facts.commands:
        return True
    match pattern.action:
        case "files.read":
            return facts.reads_attachments or any(name in facts.paths for name in facts.reads)
        case "files.write":
            return any(name in facts.paths for name in facts.writes)
        case _:
            return bool(facts.hosts)


def touches_effects(
    pattern: Pattern,
    call: ToolCallInfo,
    targets: Mapping[str, list[str] | Pipeline | Host | None],
    others: Mapping[str, Sequence[list[str]]],
    folders: frozenset[str],
) -> bool:
    """Whether a call may have an effect that a rule of this pattern denies or asks about."""
    return any(
        effect.action == pattern.action
        and (effect.is_certain or not is_any_host(pattern))
        and (
            not effect.targets
            or any(_may_match(pattern.primary, target, below=effect.is_folder) for target in effect.targets)
        )
        for effect in _effects(call, targets, others, folders)
    )


def covers_effects(
    pattern: Pattern, call: ToolCallInfo, targets: Mapping[str, list[str] | Pipeline | Host | None]
) -> bool:
    """Whether all that a call does is what a rule of this pattern allows."""
    if any(isinstance(target, tuple) or target is None for target in targets.values()):
        return False
    if not targets.keys() >= {*call.reads, *call.writes}:
        return False  # an effect on something else than files and hosts
    effects = list(_effects(call, targets, {}, frozenset()))
    return bool(effects) and all(
        effect.action == pattern.action and bool(effect.targets) and _matches(pattern.primary, effect.targets[0])
        for effect in effects
    )


def is_any_host(pattern: Pattern) -> bool:
    """Whether a pattern is about every host."""
    return pattern.action == "net" and (pattern.primary is None or pattern.primary.plain.is_star)


def _matches(argument: ArgumentPattern | None, target: list[str] | Host) -> bool:
    if argument is None:
        return True
    return argument.url.allows(target) if isinstance(target, Host) else argument.path.matches(target)


def _may_match(argument: ArgumentPattern | None, target: list[str] | Host, *, below: bool) -> bool:
    if argument is None:
        return True
    if isinstance(target, Host):
        return argument.url.touches(target)
    # An absolute path may lead into the root, which isn't known here; so any end of it counts.
    ends = [target[start:] for start in range(1, len(target))] if target[:1] == ["/"] else [target]
    return any(
        argument.path.matches(end, restrictive=True) or _is_above(end, argument.path.segments, known=below)
        for end in ends
    )


def _is_above(folder: Sequence[str], segments: Sequence[Glob | None], *, known: bool) -> bool:
    """Whether a pattern is about something below a folder, which a search or a recursive command reaches too.

    A path that isn't `known` to be a folder counts as one if the pattern spells it out.
    """
    for place, name in enumerate(folder):
        segment = segments[place] if place < len(segments) else None
        if segment is None:
            return known and place < len(segments)
        if not segment.matches(name, fold=True):
            return False
    return len(folder) < len(segments)


def _effects(
    call: ToolCallInfo,
    targets: Mapping[str, list[str] | Pipeline | Host | None],
    others: Mapping[str, Sequence[list[str]]],
    folders: frozenset[str],
) -> Iterator[_CallEffect]:
    for name, target in targets.items():
        if isinstance(target, Host):
            yield _CallEffect("net", [target])
        elif isinstance(target, tuple):
            yield from _of_commands(target, [*others.get("cwd", ())])
        elif target is None:
            for action in ACTIONS:
                yield _CallEffect(action, [])
        else:
            every = [target, *others.get(name, ())]
            if name in call.reads:
                yield _CallEffect("files.read", every, name in folders)
            if name in call.writes:
                yield _CallEffect("files.write", every, name in folders)
    if call.kind in ("agent", "flow"):
        for name in call.reads:
            if name in call.restrictive:  # the files that it attaches
                yield _CallEffect("files.read", others[name])


def _of_commands(pipeline: Pipeline, folders: Sequence[list[str]]) -> Iterator[_CallEffect]:
    """Yield what commands name, in the folder they run in; one that doesn't only read may change what it names."""
    known: Mapping[str, Trail] = pipeline.places if isinstance(pipeline, CommandLine) else {}
    for argv in pipeline:
        reading = read_command(argv)
        if _searches_all(argv, reading):
            yield _CallEffect("files.read", list(folders) or [[]], is_folder=True)
        for piece in reading.pieces:
            if piece.role == "url":
                host = read_host(piece.text)
                # A program may follow links and redirects, or expand the URL: it may reach all of the host.
                yield _CallEffect("net", [Host(host)] if host is not None else [])
            if piece.role in _NO_PATHS:
                continue
            for text in filter(None, dict.fromkeys((piece.text, *_inner_texts(piece)))):
                host = read_host(text) if "." in text or ":" in text else None
                if host is not None:
                    yield _CallEffect("net", [Host(host)], is_certain="://" in text)
                places, leads_to_folder = _places(text, known.get(text), folders)
                yield _CallEffect("files.read", places, leads_to_folder)
                if not reading.reads:
                    yield _CallEffect("files.write", places, leads_to_folder)


def _searches_all(argv: Sequence[str], reading: Reading) -> bool:
    """Whether a command looks through the folder it runs in."""
    if any(piece.role in ("path", "any", "ref") for piece in reading.pieces):
        return False
    return reading.subcommand in _SEARCHES or (
        reading.subcommand.endswith("grep") and any(map(_RECURSIVE.fullmatch, argv[1:]))
    )


def _inner_texts(piece: Piece) -> Iterator[str]:
    """Yield what a word may name besides itself: the parts of it, and the words of a script in it."""
    yield from _PARTS.split(piece.text)[1:]
    if piece.role in _MAY_CONTAIN:
        yield from words_in(piece.text)


def _places(text: str, trail: Trail | None, folders: Sequence[list[str]]) -> tuple[list[list[str]], bool]:
    """Return what a word may be the path of, under all names, and whether it is known to be a folder."""
    parts = path_parts(text)
    found = [] if parts is None else [parts, *([*folder, *parts] for folder in folders)]
    found += [each for each in map(path_parts, trail or ()) if each is not None]
    return found, parts == [] or (trail is not None and is_folder(trail))
