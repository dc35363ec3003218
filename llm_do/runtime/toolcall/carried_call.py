"""A tool call that a session's transport carries: to record its result, or to answer it without running the tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import RunEndSignal
from llm_do.errors import CassetteMissError, UsageError
from llm_do.runtime.record.transport import ToolPlace
from llm_do.runtime.tools.iterated_results import collect_items
from llm_do.tools import Update

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.policy.values import ToolKind
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["carried"]

NESTED = ("agent", "flow")
"""Tools that are calls of the project: what is recorded of them are their own requests."""


def carried(
    ctx: CallContext, call: ToolCallPart, kind: ToolKind, handler: Callable[[dict[str, Any]], Awaitable[Any]]
) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    """What runs a tool: its handler, or the session's transport around it."""
    transport = ctx.runtime.config.transport
    if transport is None or kind in NESTED or not transport.carries(call.tool_name):
        return handler
    place = ToolPlace(ctx.run_id, ctx.call_id, ctx.path, call.tool_name, call.tool_call_id)
    limit = ctx.runtime.config.settings.max_result_bytes

    async def run(args: dict[str, Any]) -> Any:
        value = await collect_items(await handler(args), limit)
        if isinstance(value, Update):
            raise UsageError(
                f"the result of {call.tool_name} can't be recorded: it changes the context of its toolkit",
                hint="Leave the tool out of `cassette.tools`: it runs in replays, too.",
                agent_path=ctx.path,
            )
        return value

    async def carry(args: dict[str, Any]) -> Any:
        try:
            return await transport.call_tool(place, args, partial(run, args))
        except (CassetteMissError, UsageError) as error:
            ctx.run.end_signal = RunEndSignal(error)
            raise ctx.run.end_signal from error

    return carry
