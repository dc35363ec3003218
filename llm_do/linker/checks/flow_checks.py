"""Checks of flows: names, duplicates, cycles, unreachable members, and conditions against the outputs they are about.

The caller turns the position of a fault in a flow into a location in a file. `llm_do.formats.syntax.flow_expression`
parses expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import flows as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.formats.syntax.flow_expression import (
    Choice,
    Condition,
    FlowTree,
    ForEach,
    Reference,
    Repeat,
    Serial,
    conditions_in,
    names_in,
)
from llm_do.formats.syntax.source import KeyPath
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member, handoff_names
from llm_do.project.registry import Registered

__all__ = [
    "FlowFault",
    "FlowPosition",
    "delegate_name",
    "find_condition_faults_of",
    "find_flow_faults",
    "find_own_faults",
    "flow_positions",
    "transfer_tool_names",
]


@frozen
class FlowPosition:
    """A position in a flow: the manifest's key, such as `flow`, `agents` or `lead`, or the flow itself if empty.

    `index` is the member of a list; `start` and `end` are offsets in the expression, which is at `keys`. -1 means none.
    """

    key: str = ""
    index: int = -1
    start: int = -1
    end: int = -1
    keys: KeyPath = ()


@frozen
class FlowFault:
    """A fault and its position in the flow."""

    problem: Problem
    position: FlowPosition


def delegate_name(worker: str) -> str:
    """Return the name of the tool with which a lead delegates a task to a worker.

    Example:
        >>> delegate_name("reporter")
        'delegate_to_reporter'
    """
    return f"delegate_to_{worker}"


def transfer_tool_names(spec: AgentSpec) -> tuple[str, ...]:
    """Return the names of the tools with which an agent hands over."""
    return tuple(f"transfer_to_{name}" for name in dict.fromkeys(handoff_names(spec)))


def find_own_faults(flow: FlowSpec) -> Iterator[FlowFault]:
    """Find the faults that don't depend on other definitions: duplicates, and nothing to run."""
    if flow.tree is None and not flow.agents:
        yield FlowFault(problems.flow_without_members(flow.name), FlowPosition())
    written: set[str] = set()
    for step in names_in(flow.tree) if flow.tree is not None else ():
        if step.name in written:
            yield FlowFault(problems.repeated_step(step.name), _step(step))
        written.add(step.name)
    seen: set[str] = set()
    for index, name in enumerate(flow.agents):
        if name in seen:
            yield FlowFault(problems.repeated_member(name), _listed(flow, index))
        elif flow.tree is not None and name not in written:
            yield FlowFault(problems.unused_member(name), _listed(flow, index))
        seen.add(name)


def find_flow_faults(flow: FlowSpec, registry: Mapping[str, Registered]) -> Iterator[FlowFault]:
    """Find the faults of a flow, given all names of a project; ignore unknown names."""
    for name, position in flow_positions(flow):
        found = as_member(flow, name, registry)
        if found is not None and found.kind == "flow":
            route = _way_back(found.value, flow, registry, set())
            if route is not None:
                path = [flow.name, *(item.name for item in route)]
                yield FlowFault(problems.circular_flow(path), position)
    if flow.mode == "handoff":
        yield from _handoff_faults(flow, registry)


def flow_positions(flow: FlowSpec) -> Iterator[tuple[str, FlowPosition]]:
    """Return every name that a flow refers to, with its position in the expression, or else in the list."""
    written: set[str] = set()
    for step in names_in(flow.tree) if flow.tree is not None else ():
        written.add(step.name)
        yield step.name, _step(step)
    for index, name in enumerate(flow.agents):
        if name not in written:
            yield name, _listed(flow, index)


def _handoff_faults(flow: FlowSpec, registry: Mapping[str, Registered]) -> Iterator[FlowFault]:
    """Find handoffs out of the flow, and agents that no handoff leads to."""
    targets: dict[str, tuple[str, ...]] = {}
    for index, name in enumerate(flow.agents):
        found = as_member(flow, name, registry)
        if found is None or found.kind != "agent":
            continue
        targets[name] = handoff_names(found.value)
        for outside in (target for target in targets[name] if target not in flow.agents):
            yield FlowFault(problems.handoff_outside(name, outside), _listed(flow, index))
    reached: set[str] = set()
    waiting = list(flow.agents[:1])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(targets.get(name, ()))
    for index, name in enumerate(flow.agents):
        if name in targets and name not in reached:
            yield FlowFault(problems.no_handoff_to(name), _listed(flow, index))


def _way_back(
    inner: FlowSpec, start: FlowSpec, registry: Mapping[str, Registered], seen: set[FlowSpec]
) -> tuple[FlowSpec, ...] | None:
    """Return the flows on the path from one back to the start, None if there is no path; visit each once."""
    if inner is start:
        return (inner,)
    if inner in seen:
        return None
    seen.add(inner)
    for name in inner.names():
        found = as_member(inner, name, registry)
        if found is not None and found.kind == "flow":
            rest = _way_back(found.value, start, registry, seen)
            if rest is not None:
                return (inner, *rest)
    return None


def _step(step: Reference) -> FlowPosition:
    return FlowPosition("flow", start=step.start, end=step.start + len(step.name), keys=step.keys)


_PLAN = ("planner", "executor", "synthesiser")


def _listed(flow: FlowSpec, index: int) -> FlowPosition:
    if flow.mode == "plan" and index < len(_PLAN):
        return FlowPosition(_PLAN[index])
    if flow.mode == "team":
        return FlowPosition("lead") if index == 0 else FlowPosition("workers", index - 1)
    return FlowPosition("agents", index)


_Schema: TypeAlias = "Mapping[str, Any] | None"
_TEXT: Mapping[str, Any] = {"type": "string"}
_NOTHING_JOINED: Mapping[str, Any] = {"type": "null"}
_DEEPEST = 20
"""The deepest flows in flows whose outputs are looked up."""


def find_condition_faults_of(flow: FlowSpec, registry: Mapping[str, Registered]) -> Iterator[FlowFault]:
    """Find what is wrong with the conditions of a flow; one without conditions imports nothing."""
    if flow.tree is None or next(conditions_in(flow.tree), None) is None:
        return
    checker = _Checker(flow, registry, [])
    checker.output(flow.tree, _Output())
    yield from checker.faults


@frozen
class _Output:
    """The schemas of a step's output, and of the list of outputs that it joins; None is one that isn't known."""

    schema: _Schema = None
    outputs: _Schema = None


@frozen
class _Checker:
    """Follows the schemas of outputs through the steps of a flow."""

    flow: FlowSpec
    registry: Mapping[str, Registered]
    faults: list[FlowFault]
    depth: int = 0

    def output(self, tree: FlowTree, before: _Output) -> _Output:
        """Return the output of steps, given their input."""
        if isinstance(tree, Reference):
            return self._member(tree.name)
        if isinstance(tree, Serial):
            for step in tree.steps:
                before = self.output(step, before)
            return before
        if isinstance(tree, Choice):
            self._check(tree.when, before)
            then = self.output(tree.then, before)
            other = self.output(tree.other, before) if tree.other is not None else before
            return then if then == other else _Output()
        if isinstance(tree, Repeat):
            found = self.output(tree.body, _Output())
            self._check(tree.until, found)
            return found
        if isinstance(tree, ForEach):
            kind = self._check(tree.items, before).get("type")
            if isinstance(kind, str) and kind not in ("array", "null"):
                position = _condition_position(tree.items, 0, len(tree.items.text))
                joined = tree.items.text.strip() == "output" and (before.outputs or {}).get("type") == "array"
                problem = problems.list_needed(tree.items.text, kind, joined=joined)
                self.faults.append(FlowFault(problem, position))
            return self._joined([self.output(tree.body, _Output())], tree.on_error)
        return self._joined([self.output(member, before) for member in tree.members], self.flow.on_error)

    def _joined(self, members: Sequence[_Output], on_error: str) -> _Output:
        """Return what is made of the outputs of parallel members, or of the items of a list."""
        if self.flow.aggregate is not None:
            return _Output(None, _NOTHING_JOINED)
        first = members[0].schema if members else None
        same = on_error == "cancel" and all(member.schema == first for member in members)
        return _Output(_TEXT, {"type": "array", "items": first} if same and first is not None else {"type": "array"})

    def _check(self, condition: Condition, before: _Output) -> Mapping[str, Any]:
        """Check an expression; return the schema of its value, which is empty if it isn't known."""
        from llm_do.formats.syntax.condition import read_condition

        value, faults = read_condition(condition.text, before.schema, before.outputs)
        for fault in faults:
            self.faults.append(FlowFault(fault.problem, _condition_position(condition, fault.start, fault.end)))
        return value

    def _member(self, name: str) -> _Output:
        found = as_member(self.flow, name, self.registry)
        if found is None:
            return _Output()
        if found.kind == "agent":
            return _Output(_agent_schema(cast("AgentSpec", found.value)), _NOTHING_JOINED)
        inner = found.value
        if isinstance(inner, FlowSpec) and inner.mode == "workflow" and self.depth < _DEEPEST:
            return _Checker(inner, self.registry, [], self.depth + 1).output(inner.steps, _Output())
        return _Output()


def _condition_position(condition: Condition, start: int, end: int) -> FlowPosition:
    return FlowPosition("steps", start=start, end=end, keys=condition.keys)


def _agent_schema(spec: AgentSpec) -> _Schema:
    """Return the schema of an agent's output, None if it isn't known or another agent may answer instead."""
    from pydantic import BaseModel

    declared = spec.output_type
    if spec.handoffs or spec.output_guards:
        return None
    if declared is str:
        return _TEXT
    if isinstance(declared, dict):
        return cast("dict[str, Any]", declared)
    if isinstance(declared, type) and issubclass(declared, BaseModel) and declared.__pydantic_complete__:
        schema = declared.model_json_schema(mode="serialization", by_alias=False)
        return schema if declared.model_config.get("extra") != "allow" else None
    return None
