"""Gated tools as the runtime sees them: what a gate can do, the states of one call, and the order of its tool calls.

What gates mean (contexts, state machines, dynamic types) is `llm_do.toolkits`; nothing here knows it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_ai.toolsets import AbstractToolset

from llm_do._frozen import frozen
from llm_do.errors import ToolError
from llm_do.runtime.artifacts import keep_artifact
from llm_do.runtime.bounded import Bounded, bounded
from llm_do.runtime.events import StateChangedEvent
from llm_do.runtime.results import to_json_data
from llm_do.runtime.traits import traits_of
from llm_do.tools import Update

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai import ToolDefinition
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import ModelRequestParameters

    from llm_do.project.gates import Gate
    from llm_do.runtime.context import CallContext
    from llm_do.toolkits.context import Context

__all__ = [
    "DYNAMIC_MARK",
    "Attempt",
    "GateState",
    "GatedToolset",
    "Gating",
    "Order",
    "Settled",
    "ToolGate",
    "attempted",
    "refusal",
    "shown",
]

DYNAMIC_MARK = "x-llm-do-dynamic"
"""The key under which a dynamic type describes itself in a tool's JSON Schema."""


class GateState(Protocol):
    """A machine's state at one moment: a value that never changes."""

    @property
    def context(self) -> Context:
        """What its tools share; for reading only."""
        ...

    @property
    def unlocked_states(self) -> frozenset[str]:
        """The states that are unlocked."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON data."""
        ...


@frozen
class Settled:
    """What a successful call comes to.

    Args:
        result: What the model is told.
        state: The machine's state from now on.
        updates: What of its context changed.
    """

    result: Any
    state: GateState
    updates: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Attempt(AbstractContextManager["Attempt", None], ABC):
    """One call of a gated tool while it runs: inside, the tool's code finds the machine's context."""

    @abstractmethod
    def settle(self, value: Any) -> Settled:
        """Find out what the call comes to; nothing has changed yet.

        Args:
            value: What the tool returned.

        Raises:
            ToolError: It failed, or its updates were refused.
        """


class ToolGate(ABC):
    """One tool's place in a machine. The machine's state isn't in it, so that any number of calls may share it.

    Args:
        key: What the machine is called in its agent.
        machine: The machine.
        hides: Whether the tool is hidden while it isn't available.
    """

    def __init__(self, key: str, machine: object, *, hides: bool) -> None:
        self.key = key
        self.machine = machine
        self.hides = hides

    @abstractmethod
    def begin(self, saved: GateState | None) -> GateState:
        """The machine's state when a call begins: the saved one, else its first one."""

    @abstractmethod
    def closed(self, state: GateState) -> str | None:
        """Why the tool is not available, None when it is."""

    @abstractmethod
    def shown(self, state: GateState, definition: ToolDefinition) -> ToolDefinition:
        """The tool as a model sees it in this state."""

    @abstractmethod
    def fault(self, state: GateState, written: object) -> str | None:
        """What is wrong with arguments in this state, None when nothing is.

        Args:
            state: The machine's state.
            written: What the model wrote: JSON text or data.
        """

    @abstractmethod
    def attempt(self, state: GateState, frame: object) -> Attempt:
        """A call that is about to run.

        Args:
            state: The machine's state.
            frame: The frame of the agent's call.
        """


class GatedToolset(AbstractToolset[Any]):
    """A toolset whose tools are gated by a machine of their own."""

    @property
    @abstractmethod
    def gates(self) -> Mapping[str, Gate]:
        """Every tool with its gate."""

    @abstractmethod
    def check(self) -> None:
        """See that every tool can be used; a `ToolkitError` says why one can't."""

    @abstractmethod
    def gated_tools(
        self, name: str, key: str, prefix: str | None, *, hides: bool | None = None
    ) -> Sequence[PydanticTool[Any]]:
        """Its tools, each with its gate in its traits; none is prepared anew for each step.

        Args:
            name: The toolset's registered name.
            key: What its machine is called in the agent.
            prefix: What stands before its tools' names.
            hides: Whether tools that aren't available are hidden; None leaves it to the toolset.
        """


@dataclass(slots=True, eq=False)
class _Place:
    """One call's place in the queues of its machines."""

    before: tuple[_Place, ...]
    left: asyncio.Event = field(default_factory=asyncio.Event)
    stopped_by: str | None = None


class Order:
    """The order of one response's calls: those to one machine run one after the other.

    A call only ever waits for calls that the model wrote before it, and each of these leaves however it ends, so
    nothing can wait for ever.
    """

    __slots__ = ("_places", "_tails")

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._tails: dict[str, _Place] = {}

    def begin(self) -> None:
        """A new response."""
        self._places.clear()
        self._tails.clear()

    def take(self, call_id: str, machines: Sequence[str]) -> None:
        """Give a call its place; called in the order that the model wrote."""
        before = {id(tail): tail for machine in machines if (tail := self._tails.get(machine)) is not None}
        place = self._places[call_id] = _Place(tuple(before.values()))
        for machine in machines:
            self._tails[machine] = place

    async def turn(self, call_id: str) -> str | None:
        """Wait until the calls before this one have ended.

        Returns:
            The name of the tool that stopped the rest, None when the call may go on.
        """
        place = self._places.get(call_id)
        if place is None:
            return None
        for other in place.before:
            if not other.left.is_set():
                await other.left.wait()
            if other.stopped_by is not None:
                place.stopped_by = other.stopped_by
                return other.stopped_by
        return None

    def leave(self, call_id: str, tool_name: str, *, succeeded: bool) -> None:
        """Let the next calls go on, or stop them."""
        place = self._places.get(call_id)
        if place is None or place.left.is_set():
            return
        if not succeeded and place.stopped_by is None:
            place.stopped_by = tool_name
        place.left.set()


class Gating:
    """The machines of one agent's call: their states, and the order of the calls to each.

    Args:
        declared: The gates that the agent itself declares, by the tool's name on the wire.
        saved: States to begin with, by machine.
    """

    __slots__ = ("_machines", "_saved", "declared", "order", "states")

    def __init__(
        self, declared: Mapping[str, ToolGate] | None = None, saved: Mapping[str, GateState] | None = None
    ) -> None:
        self.declared: Mapping[str, ToolGate] = declared or {}
        self.order = Order()
        self.states: dict[str, GateState] = {}
        self._saved: Mapping[str, GateState] = saved or {}
        self._machines: dict[str, object] = {}

    def gates(self, tool_name: str, own: ToolGate | None) -> tuple[ToolGate, ...]:
        """The gates that a call passes: its toolkit's, then the agent's.

        Args:
            tool_name: The tool's name on the wire.
            own: The gate in its traits.
        """
        declared = self.declared.get(tool_name)
        if own is None:
            return () if declared is None else (declared,)
        return (own,) if declared is None else (own, declared)

    def state(self, gate: ToolGate) -> GateState:
        """The state of a gate's machine, which begins when it is first asked for."""
        state = self.states.get(gate.key)
        if state is None:
            state = self.states[gate.key] = gate.begin(self._saved.get(gate.key))
            self._machines[gate.key] = gate.machine
        return state

    def state_of(self, machine: object) -> GateState | None:
        """The state of a machine, None where it isn't one of this call's."""
        for key, known in self._machines.items():
            if known is machine:
                return self.states[key]
        return None

    def result(self) -> dict[str, GateState]:
        """Every machine's state, and those that were saved and that nothing here asked for."""
        return {**self._saved, **self.states}


def shown(gating: Gating, parameters: ModelRequestParameters) -> ModelRequestParameters:
    """What a model is sent of an agent's tools: those that are available now, with their schemas as they are now.

    Hiding here, and not where tools are listed, keeps a hidden tool callable for later calls of the same response, and
    adds nothing to the history.

    Args:
        gating: The call's machines.
        parameters: The request with all tools.

    Returns:
        The request; itself where no tool is gated.
    """
    tools: list[ToolDefinition] = []
    changed = False
    for definition in parameters.function_tools:
        traits = traits_of(definition.metadata)
        gates = gating.gates(definition.name, traits.gate if traits is not None else None)
        made: ToolDefinition | None = definition
        for gate in gates:
            state = gating.state(gate)
            if gate.hides and gate.closed(state) is not None:
                made = None
                break
            made = gate.shown(state, made)
        changed = changed or made is not definition
        if made is not None:
            tools.append(made)
    return replace(parameters, function_tools=tools) if changed else parameters


async def refusal(gating: Gating, call: ToolCallPart, gates: Sequence[ToolGate]) -> str | None:
    """Wait for a call's turn, then say why it may not run, None when it may.

    Args:
        gating: The call's machines.
        call: What the model wrote.
        gates: The gates it passes.
    """
    stopper = await gating.order.turn(call.tool_call_id)
    if stopper is not None:
        return f"not run: {stopper}, called before it in the same response, did not succeed"
    for gate in gates:
        state = gating.state(gate)
        reason = gate.closed(state)
        if reason is not None:
            return f"{call.tool_name} is not available now: {reason}"
        fault = gate.fault(state, call.args)
        if fault is not None:
            return fault
    return None


async def attempted(
    ctx: CallContext,
    call: ToolCallPart,
    gates: Sequence[ToolGate],
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
    succeeded: Callable[[Any], bool] | None = None,
) -> tuple[Any, Bounded]:
    """Run a tool and, once it has succeeded, change the states of its machines: all of them or none.

    Args:
        ctx: The call whose model asks.
        call: What the model wrote.
        gates: The gates of the tool.
        args: The validated arguments.
        handler: Runs the tool.
        succeeded: Whether a result counts as success; one that doesn't changes no state and stops the calls after it.

    Returns:
        The result, and the same as the model is told it.

    Raises:
        ToolError: It said that it failed, or its updates were refused.
    """
    limit = ctx.runtime.config.settings.max_result_bytes
    keep = partial(keep_artifact, ctx.project, f"{call.tool_name}-{call.tool_call_id}")
    if not gates:
        value = _plain(await handler(args))
        return value, bounded(value, limit, keep)
    gating = ctx.frame.gating
    settled: list[tuple[ToolGate, Settled]] = []
    with ExitStack() as stack:
        # The toolkit's own attempt is the innermost: its context is the one that the tool's code means.
        attempts = [
            (gate, stack.enter_context(gate.attempt(gating.state(gate), ctx.frame))) for gate in reversed(gates)
        ]
        value = await handler(args)
        if succeeded is not None and not succeeded(value):
            gating.order.leave(call.tool_call_id, call.tool_name, succeeded=False)
            return value, bounded(value, limit, keep)
        for gate, attempt in reversed(attempts):
            outcome = attempt.settle(value)
            value = outcome.result
            settled.append((gate, outcome))
    # A result that can't be said is a failure too, so it comes before anything changes.
    said = bounded(value, limit, keep)
    for gate, outcome in settled:
        before = gating.states[gate.key]
        if outcome.state is before:
            continue
        gating.states[gate.key] = outcome.state
        ctx.emit(
            StateChangedEvent,
            toolkit=gate.key,
            updates=to_json_data(outcome.updates) if ctx.run.subscriptions else None,
            states=sorted(outcome.state.unlocked_states),
        )
    return value, said


def _plain(value: Any) -> Any:
    """What a tool without any context returned; an `Update` of nothing is its result."""
    if not isinstance(value, Update):
        return value
    if value.failure is not None:
        raise ToolError(value.failure)
    if value.updates:
        raise ToolError("it ran, but has no context to update: put it into a toolkit, or name it in `states:`")
    return value.result
