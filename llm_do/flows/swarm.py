"""Flows in code: `Swarm` and the groups it may contain. All of them declare a `FlowSpec`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeAlias, cast

from llm_do.diagnostics.codes.flows import (
    LD513,
    ambiguous_member,
    clashing_tool,
    handoff_outside,
    two_declarations,
)
from llm_do.diagnostics.codes.names import not_an_agent, unknown_member
from llm_do.diagnostics.diagnostic import Location
from llm_do.errors import LinkError, UsageError
from llm_do.formats.parts.flow_steps import StepFile, StepsFile, tree_of
from llm_do.formats.syntax.flow_expression import FlowSyntaxError, FlowTree, Parallel, Reference, parse_flow
from llm_do.linker.checks.flow_checks import (
    FlowFault,
    FlowPosition,
    delegate_name,
    find_condition_faults_of,
    find_own_faults,
    flow_positions,
)
from llm_do.linker.python.exports import tool_name
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import Aggregate, FlowMode, FlowSpec, handoff_names
from llm_do.project.registry import NAME_PATTERN, Registered

__all__ = ["Member", "ParallelGroup", "SerialGroup", "Swarm", "SwarmNode"]

Member: TypeAlias = "AgentSpec | FlowSpec | Callable[..., Any] | str"
"""An agent, a flow or group, a function, or the registered name of one."""

OnError = Literal["cancel", "collect"]


class CodedFlow(FlowSpec):
    """A flow declared in code, which entries and tools can call directly."""

    async def __call__(self, input: object) -> Any:
        """Call the flow from code inside a run, as `ctx.call` does by name."""
        from llm_do.runtime.call.invocation import invoke
        from llm_do.runtime.context.call_context import CURRENT_CALL

        ctx = CURRENT_CALL.get(None)
        if ctx is None:
            raise UsageError(f"the flow {self.name!r} was called outside a run", hint="Use `await run(flow, input)`.")
        return await invoke(Registered(self.name, "flow", self), input, ctx)


class Swarm(CodedFlow):
    """Several agents under one name.

    Args:
        agents: The members. The first one starts in mode `handoff`, and leads in mode `team`.
        flow: The steps of a workflow, such as `"a >> (b | c)"`; None runs the members in order.
        steps: Instead of `flow`, a list of steps as in the manifest: expressions, and objects with `when`, `for_each`
            or `repeat`.
        mode: `workflow`, `handoff` or `team`.
        max_handoffs: The most handoffs in one run.
        name: The flow's name.
        description: Shown to models when the flow is a tool.
        separator: Joins the outputs of parallel members.
        aggregate: Combines the outputs of parallel members instead of `separator`.
        on_error: `cancel` cancels the other parallel members when one fails; `collect` lets them finish.
        max_concurrency: The most parallel members running at once.

    Raises:
        LinkError: The expression is malformed, names an unknown member or names one twice; or an argument is invalid.

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
        steps: Sequence[str | Mapping[str, Any]] | None = None,
    ) -> None:
        members = _named_members(name, agents)
        super().__init__(
            name=name,
            mode=mode,
            agents=tuple(known for known, _ in members),
            tree=_tree(name, flow, mode) if steps is None else _tree_of_steps(name, steps, flow, mode, on_error),
            members=_objects_by_name(name, members),
            separator=separator,
            aggregate=aggregate,
            on_error=on_error,
            max_concurrency=max_concurrency,
            max_handoffs=max_handoffs,
            description=description,
        )
        _check(self, flow if flow is not None else steps or "")


class ParallelGroup(CodedFlow):
    """Members that run in parallel: each gets the same input, and their outputs are joined in declared order.

    Args:
        name: The group's name.
        agents: The members.
        separator: Joins their outputs.
        aggregate: Combines their outputs instead of `separator`.
        on_error: `cancel` cancels the others when one fails; `collect` lets them finish.
        max_concurrency: The most members running at once.
        description: What the group is for.

    Raises:
        LinkError: There are no members, or one is listed twice.

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
        members = _named_members(name, agents)
        super().__init__(
            name=name,
            agents=tuple(known for known, _ in members),
            tree=Parallel(tuple(Reference(known) for known, _ in members)) if members else None,
            members=_objects_by_name(name, members),
            separator=separator,
            aggregate=aggregate,
            on_error=on_error,
            max_concurrency=max_concurrency,
            description=description,
        )
        _check(self, "")


class SerialGroup(CodedFlow):
    """Members that run in sequence: the output of each is the input of the next.

    Args:
        name: The group's name.
        agents: The members.
        description: What the group is for.

    Raises:
        LinkError: There are no members, or one is listed twice.
    """

    def __init__(self, name: str, agents: Sequence[Member], *, description: str | None = None) -> None:
        members = _named_members(name, agents)
        super().__init__(
            name=name,
            agents=tuple(known for known, _ in members),
            members=_objects_by_name(name, members),
            description=description,
        )
        _check(self, "")


class SwarmNode(CodedFlow):
    """A swarm under another name, as a member of a flow; it shares nothing with that flow.

    Args:
        swarm: The swarm.
        name: Its name in the flow.

    Raises:
        LinkError: `swarm` is not a flow, or the name is invalid.
    """

    def __init__(self, swarm: FlowSpec, name: str) -> None:
        if not isinstance(swarm, FlowSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LinkError(f"the node {name!r} needs a flow, not {swarm!r}", hint="Pass a `Swarm` or a group.")
        values: dict[str, Any] = {item.name: getattr(swarm, item.name) for item in fields(FlowSpec)}
        values["name"] = name
        super().__init__(**values)
        _check_arguments(self)


def _named_members(flow: str, agents: Sequence[Member]) -> list[tuple[str, Any]]:
    if isinstance(agents, str) or not isinstance(agents, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise LinkError(f"the members of the flow {flow!r} are not a list", hint="Write `agents=[...]`.")
    return [_named_member(member) for member in agents]


def _named_member(member: Member) -> tuple[str, Any]:
    """Return a member's name and its object, which is None for a registered name."""
    if isinstance(member, str):
        return member, None
    if isinstance(member, AgentSpec | FlowSpec):
        return member.name, member
    name = tool_name(member)
    if name is None:
        raise LinkError("a function without a name can't be a step", hint="Define it with `def`.")
    return name, member


def _objects_by_name(flow: str, members: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    objects: dict[str, Any] = {}
    for name, member in members:
        if member is None:
            continue
        if objects.get(name, member) is not member:
            problem = ambiguous_member(name, flow)
            raise LinkError(problem.message, [problem.at(Location(flow))], hint="Rename one of them.")
        objects[name] = member
    return objects


def _tree(name: str, flow: str | None, mode: FlowMode) -> FlowTree | None:
    if mode not in ("workflow", "handoff", "team"):
        raise LinkError(f"the flow {name!r} has the mode {mode!r}", hint="Use workflow, handoff or team.")
    if flow is None:
        return None
    if mode != "workflow":
        raise LinkError(f"the flow {name!r} has an expression, but its mode is {mode}", hint="Omit `flow`.")
    try:
        return parse_flow(flow)
    except FlowSyntaxError as error:
        fault = FlowFault(error.problem, FlowPosition("flow", start=error.start, end=error.end))
        raise _link_error(name, flow, [fault]) from error


def _tree_of_steps(name: str, steps: object, flow: str | None, mode: FlowMode, on_error: OnError) -> FlowTree | None:
    """Return the tree of steps in code, which are checked as those of a manifest."""
    from pydantic import TypeAdapter, ValidationError

    if flow is not None:
        raise LinkError(two_declarations(name).message, hint="Omit `flow`.")
    if mode != "workflow":
        raise LinkError(f"the flow {name!r} has steps, but its mode is {mode}", hint="Omit `steps`.")
    try:
        parsed = TypeAdapter[list[StepFile]](StepsFile).validate_python(steps)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(key) for key in ("steps", *first["loc"]) if not str(key).startswith("<"))
        raise LinkError(f"the flow {name!r}: {at}: {first['msg']}", hint=LD513.fix) from error
    try:
        return tree_of(parsed, on_error)
    except FlowSyntaxError as error:
        position = FlowPosition("steps", start=error.start, end=error.end, keys=error.keys)
        raise _link_error(name, cast("Sequence[Any]", steps), [FlowFault(error.problem, position)]) from error


def _check_arguments(flow: FlowSpec) -> None:
    """Check that the arguments of a flow in code are ones that a manifest would accept."""
    name, most, handoffs = flow.name, flow.max_concurrency, flow.max_handoffs
    valid_name = _is_text(name) and re.fullmatch(NAME_PATTERN, name) is not None
    checks: list[tuple[bool, str, object]] = [
        (valid_name, "`name` must be at most 64 letters, digits, _ and -, starting with a letter or _", name),
        (_is_text(flow.separator), "`separator` must be a string", flow.separator),
        (flow.aggregate is None or callable(flow.aggregate), "`aggregate` must be a function", flow.aggregate),
        (flow.on_error in ("cancel", "collect"), "`on_error` must be 'cancel' or 'collect'", flow.on_error),
        (most is None or (type(most) is int and most >= 1), "`max_concurrency` must be a whole number above 0", most),
        (type(handoffs) is int and handoffs >= 0, "`max_handoffs` must be a whole number, 0 or more", handoffs),
    ]
    for valid, requirement, value in checks:
        if not valid:
            raise LinkError(
                f"the flow {name!r}: {requirement}, not {value!r}", hint="Change it where you create the flow."
            )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check(flow: FlowSpec, text: str | Sequence[Any]) -> None:
    _check_arguments(flow)
    faults = [*find_own_faults(flow), *_find_non_agents(flow)]
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
        faults += _find_clashes(lead, flow.agents[1:])
    faults += find_condition_faults_of(flow, {})
    if faults:
        raise _link_error(flow.name, text, faults)


def _find_non_agents(flow: FlowSpec) -> list[FlowFault]:
    """Find members that have to be agents but are something else."""
    needed = flow.agents if flow.mode == "handoff" else flow.agents[:1] if flow.mode == "team" else ()
    others = [name for name in needed if not isinstance(flow.members.get(name, AgentSpec(name)), AgentSpec)]
    return [FlowFault(not_an_agent(name, flow.mode), FlowPosition()) for name in others]


def _find_clashes(lead: AgentSpec, workers: Sequence[str]) -> list[FlowFault]:
    """Find tools of a lead that have the name of a delegate tool."""
    delegates = {delegate_name(worker) for worker in workers}
    names = [item if isinstance(item, str) else tool_name(item) for item in lead.tools]
    return [
        FlowFault(clashing_tool(lead.name, name, None, "the team"), FlowPosition())
        for name in names
        if name in delegates
    ]


def _link_error(name: str, declared: str | Sequence[Any], faults: Sequence[FlowFault]) -> LinkError:
    """Create the error for a flow in code; its diagnostics are located in the expression instead of a file."""
    found = [fault.problem.at(_place(name, _text_at(declared, fault), fault.position)) for fault in faults]
    first = faults[0]
    text = _text_at(declared, first)
    where = f" at column {first.position.start + 1} of {text!r}" if first.position.start >= 0 else ""
    return LinkError(f"the flow {name!r}: {first.problem.message}{where}", found, hint=first.problem.hint)


def _text_at(declared: str | Sequence[Any], fault: FlowFault) -> str:
    """Return the expression that a fault is in."""
    if isinstance(declared, str):
        return declared
    found: Any = declared
    for key in fault.position.keys[1:]:
        found = found[key]
    return found if isinstance(found, str) else ""


def _place(name: str, text: str, position: FlowPosition) -> Location:
    if position.start < 0:
        return Location(name)
    before = text[: position.start]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return Location(name, line, column, line, column + position.end - position.start)
