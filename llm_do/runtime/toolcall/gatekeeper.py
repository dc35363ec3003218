"""The gates of one agent's call: which tools its model is shown, which calls may run, what a call changes.

What a gate is, is in `llm_do.machines.tool_gate`; in which order calls come to it, in
`llm_do.runtime.tools.call_order`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.errors import ToolError
from llm_do.runtime.record.outcomes import StateChange, ToolOutput
from llm_do.runtime.tools.artifacts import save_artifact
from llm_do.runtime.tools.iterated_results import collect_items
from llm_do.runtime.tools.tool_output import limit_result
from llm_do.runtime.tools.traits import traits_of
from llm_do.text.json_data import to_json_data
from llm_do.tools import Update

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import ModelRequestParameters

    from llm_do.machines.tool_gate import ToolGate
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.tools.call_gates import CallGates

__all__ = ["run_in_transaction", "show_available_tools", "wait_for_gates"]


def show_available_tools(gating: CallGates, parameters: ModelRequestParameters) -> ModelRequestParameters:
    """A request with the tools that are available now, and with their schemas as they are now.

    Hiding here, and not where tools are listed, keeps a hidden tool callable for later calls of the same response, and
    adds nothing to the history.
    """
    tools: list[ToolDefinition] = []
    changed = False
    for definition in parameters.function_tools:
        traits = traits_of(definition.metadata)
        shown: ToolDefinition | None = definition
        for gate in gating.gates(definition.name, traits.gate if traits is not None else None):
            shown = gate.shown(gating.state(gate), shown)
            if shown is None:
                break
        changed = changed or shown is not definition
        if shown is not None:
            tools.append(shown)
    return replace(parameters, function_tools=tools) if changed else parameters


async def wait_for_gates(gating: CallGates, call: ToolCallPart, gates: Sequence[ToolGate]) -> str | None:
    """Wait for a call's turn, then give the reason why it may not run, None when it may."""
    stopper = await gating.order.turn(call.tool_call_id)
    if stopper is not None:
        return f"not run: {stopper}, called before it in the same response, did not succeed"
    checks = (gate.check(gating.state(gate), call.tool_name, call.args) for gate in gates)
    return next((reason for reason in checks if reason is not None), None)


async def run_in_transaction(
    ctx: CallContext,
    call: ToolCallPart,
    gates: Sequence[ToolGate],
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
    succeeded: Callable[[Any], bool] | None,
) -> tuple[Any, ToolOutput, tuple[StateChange, ...]]:
    """Run a tool and, once it has succeeded, change the states of its machines: all of them or none."""
    limit = ctx.runtime.config.settings.max_result_bytes
    keep = partial(save_artifact, ctx.project, f"{call.tool_name}-{call.tool_call_id}")
    if not gates:
        value = _result_without_context(await collect_items(await handler(args), limit))
        return value, await limit_result(value, limit, keep), ()
    gating = ctx.frame.gating
    with ExitStack() as stack:
        # The toolkit's own transaction is the innermost: its context is the one that the tool's code means.
        transactions = [
            stack.enter_context(gate.transaction(gating.state(gate), ctx.frame)) for gate in reversed(gates)
        ]
        value = await collect_items(await handler(args), limit)
        if succeeded is not None and not succeeded(value):
            gating.order.leave(call.tool_call_id, call.tool_name, succeeded=False)
            return value, await limit_result(value, limit, keep), ()
        transactions.reverse()
        for transaction in transactions:
            value = transaction.gate.settle(transaction, value)
    # A result or an update that has no JSON form is a failure too, so both are converted before anything changes.
    output = await limit_result(value, limit, keep)
    changes = tuple(
        StateChange(each.gate.key, to_json_data(each.updates) if ctx.run.has_listeners() else {}, each.after)
        for each in transactions
        if each.after is not gating.states[each.gate.key]
    )
    for change in changes:
        gating.states[change.toolkit] = change.state
    return value, output, changes


def _result_without_context(value: Any) -> Any:
    """The result of a tool that has no context: an `Update` may carry one, and nothing else."""
    if not isinstance(value, Update):
        return value
    if value.failure is not None:
        raise ToolError(value.failure)
    if value.updates:
        raise ToolError("it ran, but has no context to update: put it into a toolkit, or name it in `states:`")
    return value.result
