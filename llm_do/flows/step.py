"""One step of a flow: calls a member with the output of the previous step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.errors import LlmDoError
from llm_do.flows.step_input import step_input
from llm_do.project.registry import Registered
from llm_do.runtime.call.call_scope import CallSite
from llm_do.runtime.call.invocation import invoke
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.call_frame import Turn
from llm_do.runtime.session.entries import entry_error

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
    """Call a member of a flow."""
    site, turn = CallSite.step(position, found.name), Turn(history, messages=messages)
    try:
        return await invoke(found, step_input(found, value, ctx), ctx, site, turn)
    except LlmDoError:
        raise
    except BaseException as error:
        reraise_if_cancelled(error)
        failure = entry_error(found.name, error, ctx)
        failure.agent_path = f"{ctx.path}/{position}{found.name}"
        raise failure from error
