"""Flows in code: `Swarm`, and groups that stand in one. All are declarations over the same small tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeAlias

from llm_do.diagnostics.codes.flows import ambiguous_member, clashing_tool, handoff_outside
from llm_do.diagnostics.codes.names import not_an_agent, unknown_member
from llm_do.diagnostics.diagnostic import Location
from llm_do.errors import LinkError, UsageError
from llm_do.formats.syntax.flow_expression import FlowSyntaxError, FlowTree, Parallel, Reference, parse_flow
from llm_do.linker.checks.flow_checks import FlowFault, FlowPosition, delegate_name, find_own_faults, flow_positions
from llm_do.linker.python.exports import tool_name
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import Aggregate, FlowMode, FlowSpec, handoff_names
from llm_do.project.registry import NAME_PATTERN, Registered

__all__ = ["Member", "ParallelGroup", "SerialGroup", "Swarm", "SwarmNode"]

Member: TypeAlias = "AgentSpec | FlowSpec | Callable[..., Any] | str"
"""An agent, a flow or a group, a function, or the registered name of one."""

OnError = Literal["cancel", "collect"]


class CodedFlow(FlowSpec):
    """A flow made in code: an entry or a tool may call the object itself."""

    async def __call__(self, input: object) -> Any:
        """Call the flow from code that runs in a call, as `ctx.call` does by name."""
        from llm_do.runtime.call.invocation import invoke
        from llm_do.runtime.context.call_context import CURRENT_CALL

        ctx = CURRENT_CALL.get(None)
        if ctx is None:
            raise UsageError(f"the flow {self.name!r} is called outside of a run", hint="Use `await run(flow, input)`.")
        return await invoke(Registered(self.name, "flow", self), input, ctx)


class Swarm(CodedFlow):
    """Several agents under one name.

    Args:
        agents: The members. In modes `handoff` and `team` the first one starts, or leads.
        flow: The steps of a workflow, such as `"a >> (b | c)"`; None takes the members one after the other.
        mode: `workflow`, `handoff` or `team`.
        max_handoffs: Most handoffs in one run.
        name: The name it is called by.
        description: Shown to models when it is a tool.
        separator: Put between the outputs of parallel members.
        aggregate: Makes one output of them instead.
        on_error: `cancel` ends parallel members when one fails; `collect` lets them go on.
        max_concurrency: Parallel members that run at once.

    Raises:
        LinkError: The expression can't be read, names a member that isn't there, or something stands in it twice; or an
            argument is none that a flow takes.

    Example:
        >>> swarm = Swarm([AgentSpec("a"), AgentSpec("b")], flow="a >> b")
        >>> swarm.names()
        ('a', 'b')
    """

    def __init__(
        self,
        agents: Sequence[Member],
        flow: str | None = None,
        mode: Literal["workflow", "handoff", "team"] = "workflow",
        max_handoffs: int = 10,
        *,
        name: str = "swarm",
        description: str | None = None,
        separator: str = "\n\n",
        aggregate: Aggregate | None = None,
        on_error: OnError = "cancel",
        max_concurrency: int | None = None,
    ) -> None:
        listed = _listed(name, agents)
        super().__init__(
            name=name,
            mode=mode,
            agents=tuple(known for known, _ in listed),
            tree=_tree(name, flow, mode),
            members=_bound(name, listed),
            separator=separator,
            aggregate=aggregate,
            on_error=on_error,
            max_concurrency=max_concurrency,
            max_handoffs=max_handoffs,
            description=description,
        )
        _check(self, flow or "")


class ParallelGroup(CodedFlow):
    """Members side by side: each gets the same input, their outputs are joined in declared order.

    Args:
        name: The name it is called by.
        agents: The members.
        separator: Put between their outputs.
        aggregate: Makes one output of them instead.
        on_error: `cancel` ends the others when one fails; `collect` lets them go on.
        max_concurrency: Members that run at once.
        description: What it is there for.

    Raises:
        LinkError: It has no members, or one twice.

    Example:
        >>> ParallelGroup("reviews", [AgentSpec("facts"), AgentSpec("style")]).names()
        ('facts', 'style')
    """

    def __init__(
        self,
        name: str,
        agents: Sequence[Member],
        separator: str = "\n\n",
        aggregate: Aggregate | None = None,
        *,
        on_error: OnError = "cancel",
        max_concurrency: int | None = None,
        description: str | None = None,
    ) -> None:
        listed = _listed(name, agents)
        super().__init__(
            name=name,
            agents=tuple(known for known, _ in listed),
            tree=Parallel(tuple(Reference(known) for known, _ in listed)) if listed else None,
            members=_bound(name, listed),
            separator=separator,
            aggregate=aggregate,
            on_error=on_error,
            max_concurrency=max_concurrency,
            description=description,
        )
        _check(self, "")


class SerialGroup(CodedFlow):
    """Members one after the other: the output of each is the input of the next.

    Args:
        name: The name it is called by.
        agents: The members.
        description: What it is there for.

    Raises:
        LinkError: It has no members, or one twice.
    """

    def __init__(self, name: str, agents: Sequence[Member], *, description: str | None = None) -> None:
        listed = _listed(name, agents)
        super().__init__(
            name=name,
            agents=tuple(known for known, _ in listed),
            members=_bound(name, listed),
            description=description,
        )
        _check(self, "")


class SwarmNode(CodedFlow):
    """A swarm under another name, to stand in a flow; it shares nothing with the flow around it.

    Args:
        swarm: The swarm.
        name: The name it has there.

    Raises:
        LinkError: It is no swarm, or the name can't be one.
    """

    def __init__(self, swarm: FlowSpec, name: str) -> None:
        if not isinstance(swarm, FlowSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LinkError(f"{name!r} can't stand for {swarm!r}, which is no flow", hint="Give a `Swarm` or a group.")
        same: dict[str, Any] = {item.name: getattr(swarm, item.name) for item in fields(FlowSpec)}
        same["name"] = name
        super().__init__(**same)
        _check_arguments(self)


def _listed(flow: str, agents: Sequence[Member]) -> list[tuple[str, Any]]:
    """The members with their names."""
    if isinstance(agents, str) or not isinstance(agents, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise LinkError(f"the members of the flow {flow!r} are no list", hint="Write `agents=[...]`.")
    return [_named(member) for member in agents]


def _named(member: Member) -> tuple[str, Any]:
    """A member's name, and the object it stands for; None for a registered name."""
    if isinstance(member, str):
        return member, None
    if isinstance(member, AgentSpec | FlowSpec):
        return member.name, member
    name = tool_name(member)
    if name is None:
        raise LinkError("a function without a name can't be a step", hint="Define it with `def`.")
    return name, member


def _bound(flow: str, listed: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    bound: dict[str, Any] = {}
    for name, member in listed:
        if member is None:
            continue
        if bound.get(name, member) is not member:
            problem = ambiguous_member(name, flow)
            raise LinkError(problem.message, [problem.at(Location(flow))], hint="Rename one of them.")
        bound[name] = member
    return bound


def _tree(name: str, flow: str | None, mode: FlowMode) -> FlowTree | None:
    if mode not in ("workflow", "handoff", "team"):
        raise LinkError(f"the flow {name!r} has the mode {mode!r}", hint="Take workflow, handoff or team.")
    if flow is None:
        return None
    if mode != "workflow":
        raise LinkError(f"the flow {name!r} has an expression, but its mode is {mode}", hint="Leave `flow` out.")
    try:
        return parse_flow(flow)
    except FlowSyntaxError as error:
        fault = FlowFault(error.problem, FlowPosition("flow", start=error.start, end=error.end))
        raise _refused(name, flow, [fault]) from error


def _check_arguments(flow: FlowSpec) -> None:
    """See that a flow made in code is one that a manifest could declare."""
    name, most, handoffs = flow.name, flow.max_concurrency, flow.max_handoffs
    named = _is_text(name) and re.fullmatch(NAME_PATTERN, name) is not None
    demands: list[tuple[bool, str, object]] = [
        (named, "`name` is at most 64 letters, digits, _ and -, a letter or _ first", name),
        (_is_text(flow.separator), "`separator` is text", flow.separator),
        (flow.aggregate is None or callable(flow.aggregate), "`aggregate` is a function", flow.aggregate),
        (flow.on_error in ("cancel", "collect"), "`on_error` is 'cancel' or 'collect'", flow.on_error),
        (most is None or (type(most) is int and most >= 1), "`max_concurrency` is a whole number above 0", most),
        (type(handoffs) is int and handoffs >= 0, "`max_handoffs` is a whole number, 0 or more", handoffs),
    ]
    for fits, what, given in demands:
        if not fits:
            raise LinkError(f"the flow {name!r}: {what}, not {given!r}", hint="Change it where the flow is made.")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check(flow: FlowSpec, text: str) -> None:
    _check_arguments(flow)
    faults = [*find_own_faults(flow), *_no_agents(flow)]
    for name, position in flow_positions(flow):
        if name not in flow.agents:
            faults.append(FlowFault(unknown_member(name, flow.agents), position))
    if flow.mode == "handoff":
        for member in flow.members.values():
            faults += [
                FlowFault(handoff_outside(member.name, target), FlowPosition())
                for target in (handoff_names(member) if isinstance(member, AgentSpec) else ())
                if target not in flow.agents
            ]
    lead = flow.members.get(flow.agents[0]) if flow.mode == "team" and flow.agents else None
    if isinstance(lead, AgentSpec):
        faults += _clashes(lead, flow.agents[1:])
    if faults:
        raise _refused(flow.name, text, faults)


def _no_agents(flow: FlowSpec) -> list[FlowFault]:
    """Members that have to be agents, and that code has given something else."""
    needed = flow.agents if flow.mode == "handoff" else flow.agents[:1] if flow.mode == "team" else ()
    given = [name for name in needed if not isinstance(flow.members.get(name, AgentSpec(name)), AgentSpec)]
    return [FlowFault(not_an_agent(name, flow.mode), FlowPosition()) for name in given]


def _clashes(lead: AgentSpec, workers: Sequence[str]) -> list[FlowFault]:
    """Functions of a lead whose names its team gives to tools."""
    given = {delegate_name(worker) for worker in workers}
    names = [item if isinstance(item, str) else tool_name(item) for item in lead.tools]
    return [
        FlowFault(clashing_tool(lead.name, name, None, "the team"), FlowPosition()) for name in names if name in given
    ]


def _refused(name: str, text: str, faults: Sequence[FlowFault]) -> LinkError:
    """The error of a flow made in code: its diagnostics stand in its expression, which takes the place of a file."""
    found = [fault.problem.at(_place(name, text, fault.position)) for fault in faults]
    first = faults[0]
    where = f" at column {first.position.start + 1} of {text!r}" if first.position.start >= 0 else ""
    return LinkError(f"the flow {name!r}: {first.problem.message}{where}", found, hint=first.problem.hint)


def _place(name: str, text: str, position: FlowPosition) -> Location:
    if position.start < 0:
        return Location(name)
    before = text[: position.start]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return Location(name, line, column, line, column + position.end - position.start)
