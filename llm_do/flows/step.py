"""One step of a flow: a member called with what the step before it returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import let_through
from llm_do.errors import LlmDoError
from llm_do.flows.step_input import passed
from llm_do.project.registry import Registered
from llm_do.runtime.call.dispatch import call_found
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.session.entries import raised_by

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["run_step"]


async def run_step(
    ctx: CallContext,
    found: Registered,
    value: Any,
    position: str,
    history: Sequence[ModelMessage],
    messages: list[ModelMessage],
) -> Any:
    """Call a member of a flow.

    Args:
        ctx: The flow's context.
        found: The agent, function or flow.
        value: The flow's own input, or what the step before returned.
        position: Where in the flow the step stands, such as `2/`.
        history: The conversation so far, for one that continues it.
        messages: Where its history is put when it ends, however it ends.

    Returns:
        Its output.

    Raises:
        InputError: The value doesn't fit it.
        RunError: It ended early, or is a function that raised.
    """
    call_id = f"{ctx.call_id}.{position.replace('/', '.')}{found.name}"
    try:
        given = passed(found, value, ctx)
        return await call_found(ctx, found, given, call_id, position=position, history=history, messages=messages)
    except LlmDoError:
        raise
    except BaseException as error:
        let_through(error)
        failure = raised_by(found.name, error, ctx)
        failure.agent_path = f"{ctx.path}/{position}{found.name}"
        raise failure from error
