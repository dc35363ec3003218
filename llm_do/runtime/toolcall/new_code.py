"""Notices the code that an MCP server's tool makes in the project, and tells the model and whoever watches the run.

A shell notices that of its commands itself. The project's own functions are its author's code, and aren't watched.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.outcomes import ToolOutput

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.policy.values import ToolKind
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["notice_new_code", "with_notices"]


@asynccontextmanager
async def notice_new_code(ctx: CallContext, call: ToolCallPart, kind: ToolKind) -> AsyncGenerator[list[str]]:
    """Watch a call that no person was asked about; afterwards the list has a sentence if there is new code."""
    notices: list[str] = []
    if kind != "mcp" or call.tool_call_id in ctx.frame.approvals.by_person:
        yield notices
        return
    from llm_do.files.paths import display_path
    from llm_do.runtime.tools.watched_projects import watch_of

    watch = watch_of(ctx.project)
    await run_in_worker(watch.begin)
    try:
        yield notices
    finally:
        found = watch.end(call.tool_name)  # not awaited: it must not be left out when the call is cancelled
        if found:
            named = ", ".join(display_path(path, 80) for path in found[:10])
            ctx.warn(f"{call.tool_name} made new code, which isn't loaded before `llm-do approvals accept`: {named}")
            notices.append(f"New code: {named}. The project doesn't load it before a person has agreed to it.")


def with_notices(output: ToolOutput, notices: Sequence[str]) -> ToolOutput:
    """Add notices to what the model reads of a result."""
    for notice in notices:
        text: object = output.for_model
        if isinstance(text, str):
            output = replace(output, for_model=f"{text}\n{notice}")
        elif isinstance(text, dict | list):
            output = replace(output, for_model=[cast("object", text), notice])
    return output
