"""Questions to a person about tool calls: request, answer, and the broker that asks one at a time.

Whether a call needs approval is decided in `llm_do.policy.decision`.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

from llm_do._startup.frozen import frozen
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.errors import error_text
from llm_do.policy.values import Decision, ToolCallInfo

__all__ = [
    "Answer",
    "ApprovalCallback",
    "ApprovalDecision",
    "ApprovalMode",
    "ApprovalRequest",
    "Broker",
    "Question",
    "RunApprovalPolicy",
]

ApprovalMode = Literal["prompt", "approve_all", "reject_all"]

Answer = Literal["once", "session", "always", "deny", "abort"]
"""A person's answer: allow this call, allow it for the session or for good, deny it, or end the run."""


@frozen
class ApprovalRequest:
    """One question: may this call be made?

    Args:
        id: The question's own id.
        run_id: The id of the waiting run.
        call_id: The agent call that waits.
        tool_call_id: The tool call.
        agent: Name of the agent whose model asks.
        agent_path: Its call path.
        tool_name: The tool.
        args: The validated arguments, JSON data.
        reason: What made policy ask.
        rule: The rule that did, if one did.
        description: The sentence the toolset gives for the call.
        diff: A unified diff of what it would change.
        digest: What the answer is bound to: a digest of tool and arguments.
        call: The call as rules see it.
        person_only: Only a person may answer: an answer for the session or for good is one for this call.
    """

    id: str
    run_id: str
    call_id: str
    tool_call_id: str
    agent: str
    agent_path: str
    tool_name: str
    args: Mapping[str, Any]
    reason: str = ""
    rule: str | None = None
    description: str = ""
    diff: str | None = None
    digest: str = ""
    call: ToolCallInfo | None = field(default=None, repr=False)
    person_only: bool = False


@frozen
class ApprovalDecision:
    """The answer to an `ApprovalRequest`.

    Args:
        answer: `once`, `session`, `always`, `deny` or `abort`.
        note: A note to the model with a denial.
        pattern: With `session` or `always`, the rule to allow; None allows exactly this call.

    Example:
        >>> ApprovalDecision("deny", note="use the staging server")
        ApprovalDecision(answer='deny', note='use the staging server', pattern=None)
    """

    answer: Answer
    note: str = ""
    pattern: str | None = None


ApprovalCallback: TypeAlias = Callable[[ApprovalRequest], Awaitable[ApprovalDecision]]
"""Puts a question to a person. Anything but an `ApprovalDecision` from it means deny."""


@frozen
class RunApprovalPolicy:
    """Who answers questions about tool calls.

    Args:
        mode: `prompt` asks the callback; `approve_all` and `reject_all` answer by themselves.
        approval_callback: Asks a person; without one a question is a denial.
        return_permission_errors: Whether the model reads denials; False ends the run, None takes the project's setting.
    """

    mode: ApprovalMode = "prompt"
    approval_callback: ApprovalCallback | None = None
    return_permission_errors: bool | None = None

    @classmethod
    def of(cls, approvals: ApprovalMode | ApprovalCallback | RunApprovalPolicy) -> RunApprovalPolicy:
        """The policy that `approvals=` stands for: a mode, a callback, or a policy.

        Raises:
            ValueError: It is none of these.
        """
        if isinstance(approvals, RunApprovalPolicy):
            return approvals
        if callable(approvals):
            return cls("prompt", approvals)
        if approvals in ("prompt", "approve_all", "reject_all"):
            return cls(approvals)
        raise ValueError(f"approvals must be 'prompt', 'approve_all', 'reject_all' or a callback, not {approvals!r}")


@frozen
class Question:
    """A question as it waits for its turn.

    Args:
        key: Run, agent path and digest of the call: questions with the same key are one.
        known: What answers it without a person, None when nothing does; called when its turn comes.
        request: Makes what the person is shown; called when its turn comes.
        keep: Keeps an answer that lasts, before the next question's turn comes.
    """

    key: tuple[str, str, str]
    known: Callable[[], Decision | None]
    request: Callable[[], Awaitable[ApprovalRequest]]
    keep: Callable[[ApprovalDecision], None]


@dataclass(slots=True, eq=False)
class _Open:
    task: asyncio.Task[ApprovalDecision | Decision]
    waiters: int = 0


@dataclass(slots=True)
class Broker:
    """Puts questions to a person: first come, first served, one at a time, identical ones once.

    Everyone who asks the same question gets the one answer. A question whose callers have all gone is taken down.

    Args:
        callback: Asks.
        ids: Numbers for the questions; brokers that share a callback share them.
    """

    callback: ApprovalCallback
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _open: dict[tuple[str, str, str], _Open] = field(default_factory=dict[tuple[str, str, str], _Open], init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def next_id(self) -> str:
        """An id for a new question."""
        return f"q{next(self.ids)}"

    async def ask(self, question: Question) -> ApprovalDecision | Decision:
        """Ask, or wait for the answer to the same question of the same agent in the same run."""
        key = question.key
        waiting = self._open.get(key)
        if waiting is None:
            waiting = self._open[key] = _Open(asyncio.ensure_future(self._put(question)))
        waiting.waiters += 1
        try:
            return await asyncio.shield(waiting.task)
        finally:
            waiting.waiters -= 1
            if waiting.waiters == 0:
                if self._open.get(key) is waiting:
                    del self._open[key]
                waiting.task.cancel()

    async def _put(self, question: Question) -> ApprovalDecision | Decision:
        async with self._turn:
            if (known := question.known()) is not None:
                return known
            request = await question.request()
            try:
                answer = await _call(self.callback, request)
            except BaseException as error:  # noqa: BLE001 (a callback that fails allows nothing)
                reraise_if_cancelled(error)
                return ApprovalDecision("deny", note=f"asking failed: {error_text(error)}")
            if _is_answer(answer):
                question.keep(answer)
                return answer
        shown = repr(answer) if isinstance(answer, ApprovalDecision) else f"a {type(answer).__name__}"
        return ApprovalDecision("deny", note=f"{shown} is not an answer; answers are {', '.join(get_args(Answer))}")


def _is_answer(answer: object) -> TypeGuard[ApprovalDecision]:
    if not isinstance(answer, ApprovalDecision):
        return False
    return (
        answer.answer in get_args(Answer)
        and _is_text(answer.note)
        and (answer.pattern is None or _is_text(answer.pattern))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


async def _call(callback: Callable[..., object], request: ApprovalRequest) -> object:
    """What a callback returns; it is a project's code, so it may be anything."""
    answer = callback(request)
    return await answer if inspect.isawaitable(answer) else answer
