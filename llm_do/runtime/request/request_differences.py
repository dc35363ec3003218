"""What differs between two requests, part by part: for recordings that don't fit, and for runs that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.canonical_messages import canonical_text
from llm_do.runtime.record.sent_request import SentRequest

__all__ = ["RequestDifference", "RequestPart", "request_differences"]

RequestPart: TypeAlias = Literal[
    "model", "instructions", "output", "tool", "tools", "setting", "input", "prompt", "result", "length", "conversation"
]
"""A part of a request; `tools` is their order, `prompt` a later one than the input, `length` that of the history."""


@frozen
class RequestDifference:
    """One part that differs.

    Args:
        part: What differs.
        name: Which tool, or setting, or which tool's result; empty for what there is one of.
        before: The part of the first request; None if it has none.
        after: The part of the second.
        args: The arguments of the tool call whose result differs, if they are data.
    """

    part: RequestPart
    name: str
    before: Any
    after: Any
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])


def request_differences(before: SentRequest, after: SentRequest) -> list[RequestDifference]:
    """What differs between two requests of an agent: its setup, and then the first message that isn't the same."""
    old, new = before.setup, after.setup
    parts: tuple[RequestPart, ...] = ("model", "instructions", "output")
    found = [RequestDifference(each, "", old[each], new[each]) for each in parts if not _same(old[each], new[each])]
    found += _tool_differences(old["tools"], new["tools"])
    found += _setting_differences(old["settings"], new["settings"])
    found += _message_differences(before.messages, after.messages)
    return found


def _same(one: object, other: object) -> bool:
    return canonical_text(one) == canonical_text(other)


def _tool_differences(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[RequestDifference]:
    old, new = _by_name(before), _by_name(after)
    found = [
        RequestDifference("tool", name, old.get(name), new.get(name))
        for name in [*old, *(each for each in new if each not in old)]
        if not _same(old.get(name), new.get(name))
    ]
    if not found and not _same(before, after):
        found.append(RequestDifference("tools", "", list(old), list(new)))
    return found


def _by_name(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(tool.get("name") or canonical_text(tool)): tool for tool in tools}


def _setting_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[RequestDifference]:
    for name in sorted({*old, *new}):
        if not _same(old.get(name), new.get(name)):
            yield RequestDifference("setting", name, old.get(name), new.get(name))


def _message_differences(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[RequestDifference]:
    """The first message that differs; those after it follow from it."""
    for number, (one, other) in enumerate(zip(before, after, strict=False)):
        if not _same(one, other):
            found = _part_difference(one, other, first=number == 0)
            return [replace(found, args=_arguments(after[:number], other, found.name)) if found.name else found]
    if len(before) == len(after):
        return []
    old, new = list(before[len(after) :]) or None, list(after[len(before) :]) or None
    return [RequestDifference("length", "", old, new)]


def _arguments(history: Sequence[Mapping[str, Any]], message: Mapping[str, Any], tool: str) -> Mapping[str, Any]:
    """The arguments of the first of a tool's calls whose results a message has."""
    answered = {part.get("tool_call_id") for part in message["parts"] if part.get("tool_name") == tool}
    for earlier in reversed(history):
        for part in earlier["parts"]:
            if part.get("part_kind") == "tool-call" and part.get("tool_call_id") in answered:
                return part["args"] if isinstance(part.get("args"), dict) else {}
    return {}


def _part_difference(one: Mapping[str, Any], other: Mapping[str, Any], *, first: bool) -> RequestDifference:
    old, new = cast("list[Any]", one["parts"]), cast("list[Any]", other["parts"])
    for before, after in zip(old, new, strict=False):
        if _same(before, after):
            continue
        kind = after.get("part_kind")
        if kind == "user-prompt" and before.get("part_kind") == kind:
            return RequestDifference("input" if first else "prompt", "", before.get("content"), after.get("content"))
        if kind == "tool-return" and before.get("part_kind") == kind:
            return RequestDifference("result", str(after.get("tool_name")), before.get("content"), after.get("content"))
        return RequestDifference("conversation", "", before, after)
    return RequestDifference("conversation", "", old, new)
