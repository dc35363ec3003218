"""Match patterns against calls: narrowly for a rule that allows, broadly for one that denies or asks.

`llm_do.policy.pattern` parses patterns, `llm_do.policy.command_patterns` compares commands word by word, and
`llm_do.policy.decision` decides what a match means for the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.policy.call_effects import covers_effects, touches_effects
from llm_do.policy.command_patterns import is_pipeline
from llm_do.policy.pattern import ArgumentPattern, Pattern
from llm_do.policy.values import Host, Pipeline, ToolCallInfo, is_folder, real_path
from llm_do.text.canonical_json import canonical_json
from llm_do.text.globs import path_parts

__all__ = ["PreparedCall", "applies_to_agent", "covers", "is_unresolved", "matches", "prepare_call"]

_Target: TypeAlias = "list[str] | Pipeline | Host | None"


@frozen
class PreparedCall:
    """A call with its resolved arguments in the form that rules compare, computed once for all rules."""

    call: ToolCallInfo
    targets: Mapping[str, _Target]
    """Resolved arguments by name: the segments of a path, a pipeline, a host, or None if it can't be resolved."""
    others: Mapping[str, Sequence[list[str]]]
    """The segments of further paths, which only rules that deny or ask look at: the links on the way, for one."""
    folders: frozenset[str]
    """Which of the paths are folders, as far as it is known."""
    unresolved: bool
    """Whether any argument that should be a path, a command or a host couldn't be resolved."""
    stages: int
    """The number of commands that the call runs, 1 for a call without commands."""


def prepare_call(call: ToolCallInfo | PreparedCall) -> PreparedCall:
    """Prepare a call for comparison with rules; return one that is prepared already as it is."""
    if isinstance(call, PreparedCall):
        return call
    targets: dict[str, _Target] = {}
    others: dict[str, Sequence[list[str]]] = {}
    folders = frozenset(name for name, value in call.resolved.items() if is_folder(value))
    for name, value in call.resolved.items():
        path = real_path(value)
        if path is None:
            targets[name] = value if isinstance(value, Host) or is_pipeline(value) else None
            continue
        targets[name] = path_parts(path)
        if isinstance(value, tuple):
            others[name] = _split_paths(value[:-1])
    for name, value in call.restrictive.items():
        others.setdefault(name, _split_paths(value if isinstance(value, tuple) else (value,)))
    pipelines = [value for value in targets.values() if isinstance(value, tuple)]
    return PreparedCall(
        call, targets, others, folders, None in targets.values(), len(pipelines[0]) if len(pipelines) == 1 else 1
    )


def _split_paths(paths: Sequence[object]) -> list[list[str]]:
    split = [path_parts(path) for path in paths if isinstance(path, str)]
    return [parts for parts in split if parts is not None]


def is_unresolved(call: ToolCallInfo | PreparedCall) -> bool:
    """Whether an argument that should be a path, a command or a host can't be resolved: no rule allows such a call."""
    return prepare_call(call).unresolved


def covers(pattern: Pattern, call: ToolCallInfo | PreparedCall) -> frozenset[int]:
    """Return the stages of a call that a pattern allows; several patterns together may allow a pipeline."""
    prepared = prepare_call(call)
    call = prepared.call
    if prepared.unresolved or (pattern.action is None and not pattern.tool.matches(call.tool_name)):
        return frozenset()
    if not _agent_matches(pattern, call, fold=False) or not _is_reviewed(pattern, call):
        return frozenset()
    everything = frozenset(range(prepared.stages))
    if pattern.action is not None:
        return everything if covers_effects(pattern, call, prepared.targets) else frozenset()
    if not _names_all_resolved(pattern, call):
        return frozenset()
    for name, argument in _arguments(pattern, call):
        everything &= frozenset() if name is None else _allowed_stages(argument, name, prepared)
        if not everything:
            break
    return everything


def matches(pattern: Pattern, call: ToolCallInfo | PreparedCall, *, restrictive: bool = False) -> bool:
    """Whether a pattern matches a call.

    Example:
        >>> from llm_do.policy.pattern import parse_pattern
        >>> log = parse_pattern("shell(git log *)")
        >>> def run(*argv: str) -> ToolCallInfo:
        ...     return ToolCallInfo("shell", {}, primary="command", resolved={"command": (argv,)})
        >>> matches(log, run("git", "log", "-3")), matches(log, run("git", "-C", "/", "log"))
        (True, False)
    """
    prepared = prepare_call(call)
    call = prepared.call
    if not restrictive:
        return len(covers(pattern, prepared)) == prepared.stages
    if pattern.action is not None:
        return _agent_matches(pattern, call, fold=True) and touches_effects(
            pattern, call, prepared.targets, prepared.others, prepared.folders
        )
    if not (pattern.tool.matches(call.tool_name) or (call.tool and pattern.tool.matches(call.tool))):
        return False
    if not _agent_matches(pattern, call, fold=True):
        return False
    if pattern.primary is None and not pattern.named:
        return True
    if pattern.primary is not None and not call.primary:
        return any(_touches(pattern.primary, name, prepared) for name in {**call.args, **call.resolved})
    if pattern.primary is not None and isinstance(call.primary, str):
        return _touches(pattern.primary, call.primary, prepared)
    return any(name is not None and _touches(argument, name, prepared) for name, argument in _arguments(pattern, call))


def applies_to_agent(pattern: Pattern, call: ToolCallInfo) -> bool:
    """Whether a pattern that denies or asks applies to the agent of a call."""
    return _agent_matches(pattern, call, fold=True)


def _is_reviewed(pattern: Pattern, call: ToolCallInfo) -> bool:
    """Whether the author of a rule can have known what a server has added to its tools."""
    if call.new_tool and pattern.tool.literal is None:
        return False
    return not call.new_arguments or pattern.primary is not None or bool(pattern.named)


def _agent_matches(pattern: Pattern, call: ToolCallInfo, *, fold: bool) -> bool:
    if pattern.agent is not None:
        if fold:
            return any(pattern.agent.matches(name) for name in (call.agent, *call.makers))
        named = pattern.agent.literal is not None
        return all(pattern.agent.matches(name) for name in (call.agent, *(() if named else call.makers)))
    if pattern.agent_path is not None:
        parts, segments = call.path.split("/"), pattern.agent_path.segments
        if not pattern.agent_path.matches(parts, restrictive=fold):
            return False
        if fold or not call.makers or (segments and segments[-1] is not None and segments[-1].literal is not None):
            return True
        return pattern.agent_path.matches(parts[: -len(call.makers)])
    return True


def _arguments(pattern: Pattern, call: ToolCallInfo) -> Iterator[tuple[str | None, ArgumentPattern]]:
    if pattern.primary is not None:
        primary = call.primary
        for name in (primary,) if isinstance(primary, str) else primary or (None,):
            yield name, pattern.primary
    yield from pattern.named


def _names_all_resolved(pattern: Pattern, call: ToolCallInfo) -> bool:
    """Whether the pattern names every resolved argument, since one such as a directory changes what the others mean."""
    if (pattern.primary is None or pattern.primary.plain.is_star) and not pattern.named:
        return True
    primary = (call.primary,) if isinstance(call.primary, str) else call.primary or ()
    named = {name for name, _ in pattern.named}
    return call.resolved.keys() <= {*primary, *named}


def _text_of(value: object) -> str | None:
    if isinstance(value, str):
        return value
    try:
        return canonical_json(value)
    except TypeError:
        return None


def _allowed_stages(argument: ArgumentPattern, name: str, prepared: PreparedCall) -> frozenset[int]:
    everything = frozenset(range(prepared.stages))
    if name in prepared.targets:
        target = prepared.targets[name]
        if isinstance(target, Host):
            return everything if argument.url.allows(target) else frozenset()
        if not isinstance(target, tuple):
            return everything if target is not None and argument.path.matches(target) else frozenset()
        allowed = argument.command.allows(target)
        # With two command lines in one call, stages can't be told apart by number: all of them or none.
        if len(target) == prepared.stages and sum(isinstance(each, tuple) for each in prepared.targets.values()) == 1:
            return allowed
        return everything if len(allowed) == len(target) else frozenset()
    args = prepared.call.args
    text = _text_of(args[name]) if name in args else None
    if text is None or (argument.spans_folders and ".." in re.split(r"[/\\]", text)):
        return frozenset()
    return everything if argument.plain.matches(text) else frozenset()


def _touches(argument: ArgumentPattern, name: str, prepared: PreparedCall) -> bool:
    if name in prepared.targets:
        target = prepared.targets[name]
        if isinstance(target, tuple):
            return argument.command.touches(target)
        if isinstance(target, Host):
            return argument.url.touches(target) or _touches_text(argument, name, prepared)
        if target is None or argument.path.matches(target, restrictive=True):
            return True
        others = prepared.others.get(name, ())
        return any(argument.path.matches(path, restrictive=True) for path in others)
    if name in prepared.call.restrictive:
        unknown = prepared.call.restrictive[name] is None
        if unknown or any(argument.path.matches(path, restrictive=True) for path in prepared.others[name]):
            return True
    return _touches_text(argument, name, prepared)


def _touches_text(argument: ArgumentPattern, name: str, prepared: PreparedCall) -> bool:
    if name not in prepared.call.args:
        return False
    texts = map(_text_of, _parts(prepared.call.args[name]))
    return any(text is None or argument.plain.matches(text, fold=True) for text in texts)


def _parts(value: object) -> Iterator[object]:
    """Yield a value and every value nested in it."""
    todo = [value]
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, (list, tuple)):
            todo += cast("Sequence[object]", part)
        elif isinstance(part, Mapping):
            todo += cast("Mapping[object, object]", part).values()
