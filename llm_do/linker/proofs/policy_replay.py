"""Decide about recorded calls again, by other rules: what they would have allowed, asked about and denied.

Nothing is guessed: a call whose arguments weren't recorded whole, or whose tool isn't known any more, stays unknown.
The decisions are those of the function that decides at run time, as far as rules and declared facts go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import KnownTool
from llm_do.linker.analysis.permissions import call_of, decide_about, makers_on
from llm_do.linker.proofs.call_graph import CallGraph, Node
from llm_do.linker.proofs.call_verdicts import shell_decision
from llm_do.linker.proofs.tool_cases import shell_of
from llm_do.policy.rules import Policy
from llm_do.policy.values import Decision, Effect, ToolCallInfo
from llm_do.project.project import Project
from llm_do.text.canonical_json import canonical_json

__all__ = ["Now", "RecordedCall", "Replayed", "Replayer", "Then"]

Then = Literal["allowed", "approved", "rejected", "denied"]
"""What happened to a call: it ran unasked, a person allowed it, a person denied it, or it was denied unasked."""

Now = Literal["allow", "ask", "deny", "unknown"]

_REPLACED = re.compile(r"\[redacted(?: [^\]]*)?\]|\ufffd")
"""What secrets, and characters that can't be written, are replaced by in the record."""


@frozen
class RecordedCall:
    """One tool call of the record.

    Args:
        run: The run's id.
        agent: The agent whose model made it.
        path: The agent's call path.
        tool: The tool as the model knows it.
        args: The arguments; None if they weren't recorded as data.
        then: What happened to it.
        rule: The rule that made it a question then, if one did.
    """

    run: str
    agent: str
    path: str
    tool: str
    args: Mapping[str, Any] | None
    then: Then
    rule: str | None = None


@frozen
class Replayed:
    """A recorded call with what the rules say about it now.

    Args:
        call: The call.
        now: The effect; `unknown` if it can't be known.
        reason: The decision's reason, or why it isn't known.
        rule: The rule that decides, if one does.
        info: The call as rules see it; None if it isn't known.
        tool: Its tool; None if it isn't known.
    """

    call: RecordedCall
    now: Now
    reason: str = ""
    rule: str | None = None
    info: ToolCallInfo | None = None
    tool: KnownTool | None = None

    @property
    def differs(self) -> bool:
        """Whether a run would go another way: another answer, or a question more or less."""
        same: Mapping[Then, Now] = {"allowed": "allow", "approved": "ask", "rejected": "ask", "denied": "deny"}
        return self.now != "unknown" and self.now != same[self.call.then]


@dataclass
class Replayer:
    """Decides about the recorded calls of a project by a policy."""

    project: Project
    policy: Policy
    _decided: dict[object, Replayed] = field(default_factory=dict[object, Replayed])

    def replay(self, call: RecordedCall) -> Replayed:
        """Decide about one call; equal calls are decided about once."""
        try:
            key = (call.agent, call.path, call.tool, call.then, call.rule is None, canonical_json(call.args))
        except TypeError:
            return Replayed(call, "unknown", "its arguments aren't data")
        if key not in self._decided:
            self._decided[key] = self._decide(call)
        return replace(self._decided[key], call=call)

    @cached_property
    def _graph(self) -> CallGraph:
        return CallGraph(self.project)

    @cached_property
    def tools(self) -> Mapping[tuple[str, str], KnownTool]:
        """The tools of every agent, by the names of both; a team's lead has those of each team."""
        nodes = [node for node in self._graph.named if node.kind == "agent"]
        flows = [flow for node in self._graph.named if (flow := self._graph.flow(node)) is not None]
        nodes += [Node("agent", flow.agents[0], flow.name) for flow in flows if flow.mode == "team" and flow.agents]
        return {(node.name, tool.name): tool for node in nodes for tool in self._graph.tools(node).tools}

    def _decide(self, call: RecordedCall) -> Replayed:
        tool = self.tools.get((call.agent, call.tool))
        if tool is None:
            known = any(agent == call.agent for agent, _ in self.tools)
            who = f"{call.agent} has no tool {call.tool}" if known else f"there is no agent {call.agent}"
            return Replayed(call, "unknown", f"{who} that is known before a run")
        if call.args is None:
            return Replayed(call, "unknown", "its arguments weren't recorded as data")
        hidden = self._hidden(tool, call.args)
        if hidden is not None:
            return Replayed(call, "unknown", f"its argument {hidden} wasn't recorded whole")
        makers = makers_on(call.path.split("/"), self.project)
        info = call_of(tool, call.path, call.args, agent=call.agent, makers=makers)
        own = None
        if tool.facts.commands:
            own = shell_decision(shell_of(tool, self.project), info.resolved.get(tool.facts.commands[0]))
        decision = decide_about(tool, info, self.policy, self.project.settings, toolset=own)
        if self.policy.function is not None and decision.source not in ("deny", "ask", "blocked"):
            return Replayed(call, "unknown", f"{self.policy.function} may decide otherwise")
        if any(value is None for value in info.resolved.values()) and decision.source in ("deny", "ask"):
            return Replayed(call, "unknown", "where its path leads isn't in the record")
        effect = self._by_toolset(call, tool, decision)
        return Replayed(call, effect, decision.reason, decision.rule, info, tool)

    @staticmethod
    def _by_toolset(call: RecordedCall, tool: KnownTool, decision: Decision) -> Effect:
        """Return the effect, where the toolset decides by more than rules see: what it decided then."""
        if decision.source != "toolset" or not tool.facts.decides or call.rule is not None:
            return decision.effect
        return {"approved": "ask", "rejected": "ask", "denied": "deny"}.get(call.then, decision.effect)  # pyright: ignore[reportReturnType]

    def _hidden(self, tool: KnownTool, args: Mapping[str, Any]) -> str | None:
        """Return an argument that rules may look at and that wasn't recorded whole."""
        for name, value in args.items():
            if name in self._compared(tool) and any(map(_REPLACED.search, _texts(value))):
                return name
        return None

    def _compared(self, tool: KnownTool) -> frozenset[str]:
        """Return the arguments of a tool that rules compare."""
        facts = tool.facts
        named = {name for rule in self.policy.rules for name, _ in rule.pattern.named}
        if facts.primary is None and any(rule.pattern.primary is not None for rule in self.policy.rules):
            named.update(facts.arguments or ())
        return frozenset({*facts.named_arguments, *named})


def _texts(value: object) -> Iterable[str]:
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            todo += cast("Mapping[object, object]", part).values()
        elif isinstance(part, Sequence):
            todo += cast("Sequence[object]", part)
