"""What a call reads, changes and reaches, by its tool's facts: for the rules `files.read`, `files.write` and `net`.

Commands are read by the grammar of their programs. What they name counts for rules that deny or ask; no rule of these
allows a command, since a program may do more than its arguments say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from llm_do.policy.arguments import read_host
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.pattern import ACTIONS, Action, ArgumentPattern, Pattern
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Host, Pipeline, ToolCallInfo
from llm_do.text.globs import path_parts

__all__ = ["concerns", "covers_effects", "touches_effects"]

_PARTS = re.compile(r"[=:,@]")
_NO_PATHS = frozenset({"text", "sub", "script", "ref", "option"})


class _CallEffect(NamedTuple):
    action: Action
    targets: Sequence[list[str] | Host]
    """The target under all its names, the real one first; empty for one that can't be resolved."""


def concerns(pattern: Pattern, facts: ToolFacts) -> bool:
    """Whether calls of a tool can have the effect that a pattern is about."""
    if facts.commands:
        return True
    match pattern.action:
        case "files.read":
            return any(name in facts.paths for name in facts.reads)
        case "files.write":
            return any(name in facts.paths for name in facts.writes)
        case _:
            return bool(facts.hosts)


def touches_effects(
    pattern: Pattern,
    call: ToolCallInfo,
    targets: Mapping[str, list[str] | Pipeline | Host | None],
    others: Mapping[str, Sequence[list[str]]],
) -> bool:
    """Whether a call may have an effect that a rule of this pattern denies or asks about."""
    return any(
        effect.action == pattern.action
        and (not effect.targets or any(_may_match(pattern.primary, target) for target in effect.targets))
        for effect in _effects(call, targets, others)
    )


def covers_effects(
    pattern: Pattern, call: ToolCallInfo, targets: Mapping[str, list[str] | Pipeline | Host | None]
) -> bool:
    """Whether all that a call does is what a rule of this pattern allows."""
    if any(isinstance(target, tuple) or target is None for target in targets.values()):
        return False
    if not targets.keys() >= {*call.reads, *call.writes}:
        return False  # an effect on something else than files and hosts
    effects = list(_effects(call, targets, {}))
    return bool(effects) and all(
        effect.action == pattern.action and bool(effect.targets) and _matches(pattern.primary, effect.targets[0])
        for effect in effects
    )


def _matches(argument: ArgumentPattern | None, target: list[str] | Host) -> bool:
    if argument is None:
        return True
    return argument.plain.matches(target, fold=True) if isinstance(target, Host) else argument.path.matches(target)


def _may_match(argument: ArgumentPattern | None, target: list[str] | Host) -> bool:
    if argument is None or isinstance(target, Host):
        return _matches(argument, target)
    # An absolute path may lead into the root, which isn't known here; so any end of it counts.
    ends = [target[start:] for start in range(1, len(target))] if target[:1] == ["/"] else [target]
    return any(argument.path.matches(end, restrictive=True) or _is_above(end, argument) for end in ends)


def _is_above(folder: Sequence[str], argument: ArgumentPattern) -> bool:
    """Whether a pattern is about something below a folder, which a search or a recursive command reaches too."""
    segments = argument.path.segments
    if len(folder) >= len(segments):
        return False
    return all(
        segment is None or segment.matches(name, fold=True) for segment, name in zip(segments, folder, strict=False)
    )


def _effects(
    call: ToolCallInfo,
    targets: Mapping[str, list[str] | Pipeline | Host | None],
    others: Mapping[str, Sequence[list[str]]],
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
                yield _CallEffect("files.read", every)
            if name in call.writes:
                yield _CallEffect("files.write", every)


def _of_commands(pipeline: Pipeline, folders: Sequence[list[str]]) -> Iterator[_CallEffect]:
    """Yield what commands name, in the folder they run in; one that doesn't only read may change what it names."""
    for argv in pipeline:
        reading = read_command(argv)
        for piece in reading.pieces:
            if piece.role in _NO_PATHS:
                continue
            for text in dict.fromkeys((piece.text, *_PARTS.split(piece.text)[1:])):
                host = read_host(text) if piece.role == "url" or "." in text or ":" in text else None
                if host is not None or piece.role == "url":
                    yield _CallEffect("net", [host] if host is not None else [])
                if piece.role == "url" or not text:
                    continue
                parts = path_parts(text)
                places = [] if parts is None else [parts, *([*folder, *parts] for folder in folders)]
                yield _CallEffect("files.read", places)
                if not reading.reads:
                    yield _CallEffect("files.write", places)
