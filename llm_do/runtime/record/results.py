"""What a run returns: `RunResult` and its parts, also as JSON data.

The state of an active run is in `llm_do.runtime.context.run_state`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.errors import EXIT_CODES, LlmDoError, RunError, Status
from llm_do.project.faults import find_fault
from llm_do.text.large_data.conversion import large_json_data

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.runtime.record.store.stored_questions import PendingQuestion

__all__ = [
    "ApprovalRecord",
    "CallRecord",
    "ErrorRecord",
    "ExecutionContext",
    "RunResult",
    "Usage",
    "WarningRecord",
    "messages_data",
]


@frozen
class Usage:
    """Usage: counts, and US dollars if every price is known.

    Args:
        requests: Model requests.
        tool_calls: Tool calls that ran.
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        cost_usd: US dollars; None if a price isn't known. A sum is None if any tokens have no price.
        total_tokens: Tokens sent and received; by default the sum of the two.

    Example:
        >>> priced = Usage(requests=1, input_tokens=10, cost_usd=0.25)
        >>> (priced + Usage(requests=1, input_tokens=1)).cost_usd is None
        True
        >>> (priced + priced + Usage(tool_calls=1)).cost_usd
        0.5
    """

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    total_tokens: int = -1

    def __post_init__(self) -> None:
        if self.total_tokens < 0:
            object.__setattr__(self, "total_tokens", self.input_tokens + self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        known = [part.cost_usd for part in (self, other) if part.cost_usd is not None]
        unpriced = any(part.cost_usd is None and part.total_tokens for part in (self, other))
        return Usage(
            self.requests + other.requests,
            self.tool_calls + other.tool_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(known) if known and not unpriced else None,
            self.total_tokens + other.total_tokens,
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts as JSON data, `total_tokens` included."""
        return {
            "requests": self.requests,
            "tool_calls": self.tool_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "cost_usd": self.cost_usd,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        """Return the usage that `to_dict` wrote."""
        return cls(**data)


@frozen
class ErrorRecord:
    """One failure, including nested ones that the run survived.

    Args:
        type: Name of the exception's class.
        message: What failed and why, as a sentence.
        agent_path: Call path of the agent concerned, such as `main/analyst`.
        file: The file that contains the fault; omitted if unknown.
        line: The line in that file, from 1; omitted if unknown.
        hint: What to do about it; omitted if unknown.
        block: Lines to show as they are, such as a diff; omitted if there are none.
        exception: The exception itself, with its traceback; not part of the JSON data.
    """

    type: str
    message: str
    agent_path: str | None = None
    file: str | None = None
    line: int | None = None
    hint: str | None = None
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    block: str | None = None

    @classmethod
    def of(
        cls,
        error: BaseException,
        agent_path: str | None = None,
        *,
        root: Path | None = None,
        raised_by: str | None = None,
    ) -> ErrorRecord:
        """Return the record of an exception.

        Args:
            error: The exception.
            agent_path: The call path of the agent concerned, unless the exception has its own.
            root: The project's folder, for the place of an exception of the project's own code.
            raised_by: The name of the function that raised such an exception, for the message.
        """
        if isinstance(error, LlmDoError):
            path = error.agent_path or agent_path
            place = (error.file, error.line)
            return cls(type(error).__name__, error.message, path, *place, error.hint, error, error.block)
        fault = find_fault(error, root)
        message = fault.message or fault.type if raised_by is None else fault.after(f"{raised_by} raised")
        hint = fault.limit.hint if fault.limit is not None else None
        return cls(fault.type, message, agent_path, fault.file, fault.line, hint, error)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON data; file, line, hint and block only if there are any."""
        data: dict[str, Any] = {"type": self.type, "message": self.message, "agent_path": self.agent_path}
        known = {"file": self.file, "line": self.line, "hint": self.hint, "block": self.block}
        return data | {name: value for name, value in known.items() if value is not None}


@frozen
class WarningRecord:
    """A warning that didn't end the run, such as about a missing server.

    Args:
        message: A sentence.
        agent_path: Call path of the agent concerned, such as `main/analyst`.
    """

    message: str
    agent_path: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON data."""
        return {"message": self.message, "agent_path": self.agent_path}


@frozen
class ApprovalRecord:
    """One tool call that was approved or denied.

    Args:
        call_id: The tool call's id.
        agent_path: Call path of the agent whose model requested the call, such as `main/analyst`.
        tool: The tool's name for that model.
        args: The arguments.
        reason: The reason for the decision, as a sentence.
        rule: The rule that decided; None if none did.
        needed: The entry of `llm-do.lock` that would have allowed a call that no one could be asked about.
    """

    call_id: str
    agent_path: str
    tool: str
    args: Any
    reason: str
    rule: str | None
    needed: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON data."""
        return dataclasses.asdict(self)


@frozen
class CallRecord:
    """One nested call of an agent, a function or a flow.

    Args:
        call_id: Its id, derived from its caller's.
        path: Call path, such as `main/analyst`.
        status: How it ended, as in `RunResult.status`.
        usage: Its own usage, without that of the calls it made.
        steps: Model responses it got itself.
        messages: Its own history; empty for a function.
        error: The error that ended it early.
    """

    call_id: str
    path: str
    status: Status
    usage: Usage
    steps: int
    messages: list[ModelMessage] = field(repr=False)
    error: ErrorRecord | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON data."""
        return {
            "call_id": self.call_id,
            "path": self.path,
            "status": self.status,
            "usage": self.usage.to_dict(),
            "steps": self.steps,
            "messages": messages_data(self.messages),
            "error": self.error.to_dict() if self.error else None,
        }


@frozen
class ExecutionContext:
    """The context that the next run can continue from; continuing never changes it.

    Args:
        messages: The conversation.
        active_agent: The agent that got control through a handoff; None for the entry.
        toolkits: Context and states of every toolkit of the entry agent, and of its own `states:` under its name.
    """

    messages: tuple[ModelMessage, ...] = field(default=(), repr=False)
    active_agent: str | None = None
    toolkits: Mapping[str, ToolkitState] = field(default_factory=dict[str, "ToolkitState"])

    def to_dict(self) -> dict[str, Any]:
        """The context as JSON data."""
        return {
            "messages": messages_data(self.messages),
            "active_agent": self.active_agent,
            "toolkits": {name: state.to_dict() for name, state in self.toolkits.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ExecutionContext:
        """Return the context that `to_dict` wrote, to continue from in another process.

        Args:
            data: The JSON data.

        Example:
            >>> ExecutionContext.from_dict(ExecutionContext(active_agent="writer").to_dict()).active_agent
            'writer'
        """
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        from llm_do.runtime.record.recording import toolkit_states

        messages = ModelMessagesTypeAdapter.validate_python(data.get("messages") or [])
        return cls(tuple(messages), data.get("active_agent"), toolkit_states(data.get("toolkits") or {}))


@frozen
class RunResult:
    """How a run ended and what it did.

    Args:
        status: How it ended; one per exit code.
        output: The entry's result; partial text when it ended early, else None.
        run_id: The run's id.
        thread_id: The id of its thread.
        messages: The entry agent's own history, valid to continue from; empty for a function entry.
        calls: One record per nested call.
        usage: The usage of the whole tree of calls.
        steps: Model responses over the whole tree; a retried request counts once.
        errors: Failures, nested ones included.
        denials: Tool calls that were denied.
        approvals: Tool calls that were approved.
        execution_context: The context that the next run can continue from.
        error: The exception that ended the run early.
        warnings: The run's warnings, each once.
        questions: What a person has to answer before a durable run that was suspended or stopped can end.
    """

    status: Status
    output: Any
    run_id: str
    thread_id: str | None = None
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"], repr=False)
    calls: list[CallRecord] = field(default_factory=list[CallRecord], repr=False)
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    errors: list[ErrorRecord] = field(default_factory=list[ErrorRecord])
    denials: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    approvals: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    execution_context: ExecutionContext = field(default_factory=ExecutionContext, repr=False)
    error: BaseException | None = field(default=None, repr=False)
    warnings: list[WarningRecord] = field(default_factory=list[WarningRecord])
    questions: list[PendingQuestion] = field(default_factory=list["PendingQuestion"])

    def __post_init__(self) -> None:
        if isinstance(self.error, LlmDoError) and not self.errors:  # a run that never began has recorded none
            self.errors.append(ErrorRecord.of(self.error))

    @property
    def toolkits(self) -> Mapping[str, ToolkitState]:
        """The states of the entry agent's toolkits at the end, by their prefix or name."""
        return self.execution_context.toolkits

    @property
    def exit_code(self) -> int:
        """The command line's exit code for this result."""
        if isinstance(self.error, LlmDoError) and not isinstance(self.error, RunError):
            return self.error.exit_code
        return EXIT_CODES[self.status]

    def raise_for_status(self) -> RunResult:
        """Return the result, or raise the run's error if it ended early."""
        if self.error is not None:
            raise self.error
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--format json` prints."""
        return {
            "status": self.status,
            "output": large_json_data(self.output),
            "messages": messages_data(self.messages),
            "calls": [call.to_dict() for call in self.calls],
            "usage": self.usage.to_dict(),
            "steps": self.steps,
            "run_id": self.run_id,
            "thread_id": self.thread_id,
            "errors": [error.to_dict() for error in self.errors],
            "denials": [record.to_dict() for record in self.denials],
            "approvals": [record.to_dict() for record in self.approvals],
            "warnings": [record.to_dict() for record in self.warnings],
            "questions": [question.to_dict() for question in self.questions],
            "execution_context": self.execution_context.to_dict(),
        }


_SLICE = 100
"""Messages converted in one go."""


def messages_data(messages: list[ModelMessage] | tuple[ModelMessage, ...]) -> list[Any]:
    """Return a history as JSON data that PydanticAI reads back."""
    if not messages:
        return []
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    # In slices: one call would hold up all other threads until it ends.
    found: list[Any] = []
    for start in range(0, len(messages), _SLICE):
        found += ModelMessagesTypeAdapter.dump_python(list(messages[start : start + _SLICE]), mode="json")
    return found
