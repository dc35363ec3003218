"""The result of a durable run that has ended, as text that is kept with it and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import Any

from pydantic_ai.messages import ModelMessagesTypeAdapter

from llm_do import errors
from llm_do.project.faults import restored_error
from llm_do.runtime.record.canonical_messages import is_large_history
from llm_do.runtime.record.results import (
    ApprovalRecord,
    CallRecord,
    ErrorRecord,
    ExecutionContext,
    RunResult,
    Usage,
    WarningRecord,
)
from llm_do.runtime.record.store.unreadable_data import reading
from llm_do.text.json_data import json_text
from llm_do.text.large_data.conversion import is_large, json_parts

__all__ = ["call_record", "failure", "is_large_result", "result_from_text", "result_text"]


def is_large_result(result: RunResult) -> bool:
    """Whether a result takes so long to write that a worker thread does it."""
    return is_large(result.output) or any(map(is_large_history, (result.messages, *(c.messages for c in result.calls))))


def result_text(result: RunResult) -> str:
    """A result as JSON text, made in parts if it is large.

    The history is mostly the conversation to continue from as well, and then it is written once.
    """
    error = ErrorRecord.of(result.error).to_dict() if result.error is not None else None
    context = result.execution_context
    same = len(context.messages) == len(result.messages) and all(map(is_, context.messages, result.messages))
    written = replace(result, execution_context=replace(context, messages=())) if same else result
    data: dict[str, Any] = {**written.to_dict(), "error": error}
    if same:
        data["execution_context"]["messages"] = None
    return "".join(json_parts(data)) if is_large_result(result) else json_text(data)


def result_from_text(text: str) -> RunResult:
    """The result that `result_text` wrote; its output is JSON data, and its error has no traceback."""
    with reading("the result of the run"):
        data: Any = json.loads(text)
        messages = ModelMessagesTypeAdapter.validate_python(data["messages"])
        context = ExecutionContext.from_dict(data["execution_context"])
        if data["execution_context"]["messages"] is None:
            context = replace(context, messages=tuple(messages))
        return RunResult(
            status=data["status"],
            output=data["output"],
            run_id=data["run_id"],
            thread_id=data["thread_id"],
            messages=messages,
            calls=[call_record(call) for call in data["calls"]],
            usage=Usage.from_dict(data["usage"]),
            steps=data["steps"],
            errors=[ErrorRecord(**error) for error in data["errors"]],
            denials=[ApprovalRecord(**record) for record in data["denials"]],
            approvals=[ApprovalRecord(**record) for record in data["approvals"]],
            execution_context=context,
            error=_error(data["error"], data["status"]) if data["error"] is not None else None,
            warnings=[WarningRecord(**record) for record in data["warnings"]],
        )


def call_record(data: Mapping[str, Any]) -> CallRecord:
    """The record of a call that `CallRecord.to_dict` wrote."""
    error = data["error"]
    return CallRecord(
        data["call_id"],
        data["path"],
        data["status"],
        Usage.from_dict(data["usage"]),
        data["steps"],
        ModelMessagesTypeAdapter.validate_python(data["messages"]),
        ErrorRecord(**error) if error is not None else None,
    )


def failure(type: str, message: str, *, hint: str | None = None, **place: Any) -> errors.LlmDoError:
    """An error that was kept: of its own class if that is one of llm-do's, else a `RunError`."""
    return restored_error(type, message, hint=hint, **place) or errors.RunError(message, hint=hint, **place)


def _error(data: Mapping[str, Any], status: errors.Status) -> errors.LlmDoError:
    place = {name: data.get(name) for name in ("file", "line", "agent_path")}
    error = failure(data["type"], data["message"], hint=data.get("hint"), **place)
    error.status = status
    return error
