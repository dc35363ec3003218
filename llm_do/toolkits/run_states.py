"""How code in a run finds the run's states: `current_state()` for tools, `state_in_run` for toolkits."""

from __future__ import annotations

from llm_do.errors import ToolkitError
from llm_do.machines.context import Context
from llm_do.machines.machine import Machine, ToolkitState
from llm_do.machines.tool_gate import OPEN_TRANSACTIONS, Transaction
from llm_do.runtime.context.call_context import CURRENT_CALL

__all__ = ["current_state", "state_in_run"]


def current_state() -> Context:
    """The context of the toolkit whose tool is running, or of the agent's own `states:`.

    Returns:
        The context of this run, never a template's. A tool's changes count once the tool has succeeded.

    Raises:
        ToolkitError: The code isn't called by a tool that has a context.
    """
    call = CURRENT_CALL.get(None)
    frame = call.frame if call is not None else None
    for transaction in reversed(OPEN_TRANSACTIONS.get()):
        if transaction.frame is frame:
            return transaction.context
    if frame is not None and len(frame.gating.states) == 1:
        return next(iter(frame.gating.states.values())).context
    raise ToolkitError(
        "no tool of a toolkit is running here, so there is no current state",
        hint="Call current_state() in a tool of a toolkit, or in one that the agent's `states:` names.",
    )


def state_in_run(machine: Machine) -> Transaction | ToolkitState | None:
    """A machine's state in the run that this code is part of: in the nearest call that has it, callers included."""
    open_ = [each for each in reversed(OPEN_TRANSACTIONS.get()) if each.gate.machine is machine]
    call = CURRENT_CALL.get(None)
    while call is not None:
        frame = call.frame
        for transaction in open_:
            if transaction.frame is frame:
                return transaction
        state = frame.gating.state_of(machine)
        if state is not None:
            return state
        call = call.parent
    return next(iter(open_), None)
