"""Notes the calls whose effects `llm-do undo` can't undo, for it to list: commands, requests, the project's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.policy.values import CALLS
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.store.stored_questions import call_text
from llm_do.text.json_data import arguments_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["note_call"]


async def note_call(ctx: CallContext, call: ToolCallPart, traits: ToolTraits, args: Mapping[str, Any]) -> None:
    """Note a call that is about to run, or has run in an earlier attempt, unless it changes nothing else than files."""
    keeper, facts = ctx.run.keeper, traits.facts
    if keeper is None or traits.undoable or facts.repeatable or facts.kind in CALLS or facts.kind == "builtin":
        return
    written = call.args_as_dict()
    data = {name: value for name, value in arguments_data(args).items() if name in written}  # not the defaults
    text = redactor()(call_text({"tool_name": call.tool_name, "args": data}))
    if keeper.note_call(text, f"{ctx.call_id}/{call.tool_call_id}"):
        await run_in_worker(keeper.write_calls)
