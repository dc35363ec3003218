"""What a model reads of a call that failed: the tool's own words, or what went wrong."""

from __future__ import annotations

import asyncio

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed

from llm_do.errors import LlmDoError, RunError, ToolError
from llm_do.project.faults import find_fault
from llm_do.runtime.tools.approval_requirement import DEFERRED_REASON

__all__ = ["failure_text", "intended_text"]


def intended_text(error: BaseException) -> str | None:
    """What a tool that fails on purpose tells the model; None for any other failure."""
    for one in (error, error.__cause__):
        if isinstance(one, ModelRetry | ToolFailed):
            return one.message
        if isinstance(one, ToolError):
            return f"{one.message}. {one.hint}" if one.hint else one.message
    return None


def failure_text(error: BaseException) -> str:
    """What a model reads of a tool's failure."""
    if isinstance(error, LlmDoError):
        if isinstance(error, RunError) and error.agent_path:
            return f"agent {error.agent_path} failed: {error.message}"
        return f"{error.message}. {error.hint}" if error.hint else error.message
    if isinstance(error, asyncio.CancelledError):
        return "what the tool waited for was cancelled"
    if isinstance(error, CallDeferred):
        return DEFERRED_REASON
    if isinstance(error, ApprovalRequired):
        return "the tool raised ApprovalRequired though the call was approved, as `ctx.tool_call_approved` says"
    return find_fault(error).text
