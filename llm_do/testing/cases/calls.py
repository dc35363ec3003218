"""The tool calls that a run made, and whether the patterns of a test match them.

An expectation isn't met by a doubt: a call that is expected is matched as by a rule that allows, one that is forbidden
as by a rule that denies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import Inventory, KnownTool
from llm_do.policy.arguments import attached_paths, resolve_by_text
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import ToolCallInfo
from llm_do.project.flow_spec import every_agent
from llm_do.runtime.record.events.tool_events import ToolCallEvent, ToolResultEvent

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.runtime.record.events.event import Event

__all__ = ["Call", "CallPatterns", "calls_of"]

_MOST = 60


@frozen
class Call:
    """A tool call.

    Args:
        tool: The tool, as the model knows it.
        args: The arguments.
        agent: The agent that requested it.
        path: Its call path.
        status: `success`, `failed`, `denied`, `refused`, `timed_out` or `cancelled`.
    """

    tool: str
    args: Mapping[str, Any]
    agent: str
    path: str
    status: str

    @property
    def ran(self) -> bool:
        """Whether the tool was called: the call was neither denied nor refused."""
        return self.status not in ("denied", "refused")

    @property
    def text(self) -> str:
        """The call in a line."""
        shown = ", ".join(
            f"{name}={_shorten(json.dumps(value, ensure_ascii=False))}" for name, value in self.args.items()
        )
        return f"{self.tool}({shown})"


def calls_of(events: Sequence[Event]) -> list[Call]:
    """The tool calls of runs, in the order in which they were requested."""
    ends = {(each.call_id, each.tool_call_id): each for each in events if isinstance(each, ToolResultEvent)}
    calls: list[Call] = []
    for event in events:
        if not isinstance(event, ToolCallEvent):
            continue
        end = ends.get((event.call_id, event.tool_call_id))
        args = event.args if end is None or end.args is None else end.args
        status = end.status if end is not None else "cancelled"
        calls.append(Call(event.tool_name, _arguments(args), event.agent_name, event.path, status))
    return calls


def _arguments(args: object) -> Mapping[str, Any]:
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return {}
    return cast("Mapping[str, Any]", args) if isinstance(args, Mapping) else {}


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


class CallPatterns:
    """Matches patterns with calls by what the project's tools declare of their arguments.

    Args:
        project: The project.
    """

    def __init__(self, project: Project) -> None:
        self._project = project

    def matches(self, pattern: str, call: Call, *, broadly: bool = False) -> bool:
        """Whether a pattern matches a call, surely or `broadly`."""
        return matches(parse_pattern(pattern), self._info(call), restrictive=broadly)

    def _info(self, call: Call) -> ToolCallInfo:
        known = self._known(call)
        facts = known.facts if known is not None else ToolFacts()
        root = f"{self._project.root}/"
        args = {
            name: value.removeprefix(root) if isinstance(value, str) and facts.argument_kind(name) == "path" else value
            for name, value in call.args.items()
        }
        return ToolCallInfo(
            call.tool,
            args,
            agent=call.agent,
            path=call.path,
            tool=known.tool if known is not None else "",
            kind=facts.kind,
            primary=facts.primary,
            resolved=resolve_by_text(facts, args),
            reads=tuple(facts.reads),
            writes=tuple(facts.writes),
            restrictive=attached_paths(facts, args),
        )

    def _known(self, call: Call) -> KnownTool | None:
        """What is known of a call's tool: of its agent, else of any, such as for an agent made in the run."""
        return self._tools.get((call.agent, call.tool)) or self._tools.get(("", call.tool))

    @cached_property
    def _tools(self) -> Mapping[tuple[str, str], KnownTool]:
        registry = self._project.registry
        inventory = Inventory(registry)
        found: dict[tuple[str, str], KnownTool] = {}
        for spec, _ in every_agent(registry):
            for tool in inventory.of(spec).tools:
                found.setdefault((spec.name, tool.name), tool)
                found.setdefault(("", tool.name), tool)
        return found
