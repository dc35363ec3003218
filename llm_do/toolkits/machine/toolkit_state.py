"""`ToolkitState`: a machine's context and states at one moment; and how a tool's code finds those of its run."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from llm_do.errors import ToolkitError
from llm_do.machines.context import Context
from llm_do.machines.dynamic_schema import Resolved
from llm_do.runtime.call.call_scope import CallFrame
from llm_do.runtime.context.call_context import CURRENT_CALL
from llm_do.text.json_data import to_json_data

__all__ = ["OPEN_TRANSACTIONS", "OpenTransaction", "ToolkitState", "current_state", "state_in_run", "transaction_of"]


@dataclass(frozen=True, slots=True, eq=False)
class ToolkitState:
    """A toolkit's context and unlocked states at one moment. It never changes: a run makes new ones.

    Args:
        context: The context, for reading only.
        unlocked_states: The states that are unlocked.

    Example:
        >>> state = ToolkitState.from_dict({"context": {"user": "ann"}, "unlocked_states": ["in"]})
        >>> state.context.get("user"), state.to_dict()["unlocked_states"]
        ('ann', ['in'])
    """

    context: Context
    unlocked_states: frozenset[str] = frozenset()
    resolved: dict[str, Resolved] = field(default_factory=dict[str, Resolved], repr=False)
    """Dynamic schemas of this context by tool, made when they are needed: what they are made of doesn't change."""

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON data."""
        return {"context": to_json_data(self.context.to_dict()), "unlocked_states": sorted(self.unlocked_states)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolkitState:
        """The state that `to_dict` wrote; schemas are the toolkit's, which continues from it."""
        context = Context(initial_data=data.get("context") or {})
        return cls(context.sealed(), frozenset(data.get("unlocked_states") or ()))


@dataclass(slots=True, eq=False)
class OpenTransaction:
    """One call of a gated tool while it runs.

    Args:
        machine: Whose tool it is.
        frame: The frame of the agent's call; None outside a Runtime.
        context: The context it may change; it counts once the call has succeeded.
        unlocked_states: The states at its beginning.
    """

    machine: object
    frame: object
    context: Context
    unlocked_states: frozenset[str]


OPEN_TRANSACTIONS: ContextVar[tuple[OpenTransaction, ...]] = ContextVar("llm_do_toolkit_work", default=())
"""The gated calls that run in this task or worker thread, innermost last."""


def current_state() -> Context:
    """The context of the toolkit whose tool is running, or of the agent's own `states:`.

    Returns:
        The context of this run, never a template's. What a tool changes in it counts once the tool has succeeded.

    Raises:
        ToolkitError: Nothing here has a context.
    """
    call = CURRENT_CALL.get(None)
    frame = call.frame if call is not None else None
    for work in reversed(OPEN_TRANSACTIONS.get()):
        if work.frame is frame:
            return work.context
    if isinstance(frame, CallFrame) and len(frame.gating.states) == 1:
        return next(iter(frame.gating.states.values())).context
    raise ToolkitError(
        "no tool of a toolkit is running here, so there is no current state",
        hint="Call current_state() in a tool of a toolkit, or in one that the agent's `states:` names.",
    )


def transaction_of(machine: object) -> OpenTransaction | None:
    """The innermost call of this machine's tools that runs here."""
    return next((work for work in reversed(OPEN_TRANSACTIONS.get()) if work.machine is machine), None)


def state_in_run(machine: object) -> OpenTransaction | ToolkitState | None:
    """A machine's state in the run that this code is part of: the nearest call that has it, its callers included."""
    call = CURRENT_CALL.get(None)
    if call is None:
        return transaction_of(machine)
    while call is not None:
        frame = call.frame
        for work in reversed(OPEN_TRANSACTIONS.get()):
            if work.frame is frame and work.machine is machine:
                return work
        state = frame.gating.state_of(machine)
        if isinstance(state, ToolkitState):
            return state
        call = call.parent
    return transaction_of(machine)
