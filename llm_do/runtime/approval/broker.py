"""Questions to a person about tool calls: request, answer, and the broker that asks one at a time.

Whether a call needs approval is decided in `llm_do.policy.decision`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from llm_do._startup.frozen import frozen
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import UsageError
from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.text.exception_text import exception_text
from llm_do.text.words import did_you_mean

__all__ = [
    "ALL_ANSWERS",
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

Answer = Literal["once", "all", "session", "always", "deny", "abort", "unanswered"]
"""An answer: allow one call, the response's identical calls, such calls for the session or for good; deny; end the run;
or say that no one could be asked."""

ALL_ANSWERS: tuple[Answer, ...] = get_args(Answer)

_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)

_LASTING = ("session", "always")


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
        identical: How many identical calls of the response still wait, this one included; `once` is for one of them.
        answers: The answers that are accepted.
        defaults: The names of arguments that have their default value.
        in_diff: The names of arguments whose text the diff shows.
        number: Which of the questions that wait this is: 1 for the first.
        total: How many questions wait, those already answered meanwhile included.
        kept: Whether the run waits for the answer, in a process that may end meanwhile: `unanswered` denies nothing.
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
    identical: int = 1
    answers: tuple[Answer, ...] = ALL_ANSWERS
    defaults: tuple[str, ...] = ()
    in_diff: tuple[str, ...] = ()
    number: int = 1
    total: int = 1
    kept: bool = False


@frozen
class ApprovalDecision:
    """The answer to an `ApprovalRequest`.

    Args:
        answer: `once` for one execution, `all` for all identical calls of the response, `session`, `always`, `deny`,
            `abort`, or `unanswered` if no one could be asked.
        note: A note to the model with a denial.
        pattern: With `session` or `always`, the rule to allow; None allows exactly this call.

    Example:
        >>> ApprovalDecision("deny", note="use the staging server")
        ApprovalDecision(answer='deny', note='use the staging server', pattern=None)
    """

    answer: Answer
    note: str = ""
    pattern: str | None = None


ApprovalCallback: TypeAlias = Callable[[ApprovalRequest], Awaitable[ApprovalDecision] | ApprovalDecision]
"""Puts a question to a person; unless it is async, in a worker thread. If it raises, or returns anything but an
`ApprovalDecision`, the call is denied as one about which no one could be asked."""


@frozen
class RunApprovalPolicy:
    """Who answers questions about tool calls.

    Args:
        mode: `prompt` asks the callback; `approve_all` and `reject_all` answer by themselves.
        approval_callback: Asks a person; without one a question is a denial.
        return_permission_errors: Whether the model reads denials; False ends the run, None takes the project's setting.
        answers: The answers that are accepted from the callback; any other one denies the call.
        remember: Whether answers may last; False accepts neither `session` nor `always`, so that no answer of one
            person can hold for another.

    Raises:
        UsageError: There is no such mode, or `answers` contains something that isn't an answer.

    Example:
        >>> RunApprovalPolicy(answers=("once", "always", "deny"), remember=False).accepted
        ('once', 'deny')
    """

    mode: ApprovalMode = "prompt"
    approval_callback: ApprovalCallback | None = None
    return_permission_errors: bool | None = None
    answers: Collection[Answer] = ALL_ANSWERS
    remember: bool = True

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise UsageError(
                f"the mode of approvals must be {_one_of(_MODES)}, not {self.mode!r}", hint=_hint(self.mode, _MODES)
            )
        unknown = sorted(map(repr, set(self.answers) - set(ALL_ANSWERS)))
        if isinstance(self.answers, str) or unknown:
            shown = repr(self.answers) if isinstance(self.answers, str) else ", ".join(unknown)
            raise UsageError(
                f"answers are {', '.join(ALL_ANSWERS)}, not {shown}", hint="Pass a collection of some of these."
            )

    @property
    def accepted(self) -> tuple[Answer, ...]:
        """The answers that are accepted, in the order of `Answer`."""
        return tuple(each for each in ALL_ANSWERS if each in self.answers and (self.remember or each not in _LASTING))

    @classmethod
    def of(cls, approvals: ApprovalMode | ApprovalCallback | RunApprovalPolicy) -> RunApprovalPolicy:
        """The policy that `approvals=` stands for: a mode, a callback, or a policy.

        Raises:
            UsageError: It is none of these.
        """
        if isinstance(approvals, RunApprovalPolicy):
            return approvals
        if callable(approvals):
            return cls("prompt", approvals)
        if approvals in _MODES:
            return cls(approvals)
        raise UsageError(
            f"approvals must be {_one_of(_MODES)}, a callback or a RunApprovalPolicy, not {approvals!r}",
            hint=_hint(approvals, _MODES),
        )


def _one_of(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _hint(value: object, modes: Sequence[str]) -> str:
    near = did_you_mean(value, modes) if isinstance(value, str) else None
    return near or "In mode 'prompt' the callback is asked; without a callback, a call that needs approval is denied."


@frozen
class Question:
    """A question as it waits for its turn.

    Args:
        key: Run, agent path and digest of the call: questions with the same key are about the same call.
        known: What answers it without a person, None when nothing does; called when its turn comes.
        request: Makes what the person is shown; called when its turn comes.
        keep: Keeps an answer that holds for further calls, before the next question's turn comes.
        settle: Returns the answer that counts, if someone else may have given one meanwhile.
    """

    key: tuple[str, str, str]
    known: Callable[[], ApprovalDecision | Decision | None]
    request: Callable[[], Awaitable[ApprovalRequest]]
    keep: Callable[[ApprovalDecision], None]
    settle: Callable[[ApprovalDecision], Awaitable[ApprovalDecision]] | None = None


@dataclass(slots=True, eq=False)
class _Waiter:
    question: Question
    answer: asyncio.Future[ApprovalDecision | Decision]


@dataclass(slots=True, eq=False)
class _Line:
    """The callers that wait with the same question, first come first."""

    waiting: list[_Waiter] = field(default_factory=list[_Waiter])
    task: asyncio.Task[None] | None = None

    def pass_on(self, answer: ApprovalDecision | Decision) -> None:
        """Give an answer to the first in line; one that ends the run is for everybody."""
        everybody = isinstance(answer, ApprovalDecision) and answer.answer == "abort"
        for one in self.waiting[: None if everybody else 1]:
            self.waiting.remove(one)
            if not one.answer.done():
                one.answer.set_result(answer)

    def fail(self, error: BaseException) -> None:
        """Raise an error for everybody in line."""
        for one in self.waiting:
            if not one.answer.done():
                one.answer.set_exception(error)
        self.waiting.clear()


@dataclass(slots=True)
class Broker:
    """Puts questions to a person: first come, first served, one at a time.

    An answer is for one execution. Callers with the same question stand in one line: the second is asked about after
    the first has its answer, unless that answer holds for both. A question whose callers have all gone is taken down.

    Args:
        callback: Asks.
        ids: Numbers for the questions; brokers that share a callback share them.
        accepted: The answers that are accepted.
    """

    callback: ApprovalCallback
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    accepted: tuple[Answer, ...] = ALL_ANSWERS
    _lines: dict[tuple[str, str, str], _Line] = field(default_factory=dict[tuple[str, str, str], _Line], init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _answered: int = field(default=0, init=False)

    def next_id(self) -> str:
        """An id for a new question."""
        return f"q{next(self.ids)}"

    async def ask(self, question: Question) -> ApprovalDecision | Decision:
        """Ask, and wait for the answer."""
        one = _Waiter(question, asyncio.get_running_loop().create_future())
        line = self._lines.get(question.key)
        if not self._lines:
            self._answered = 0
        if line is None:
            line = self._lines[question.key] = _Line()
            line.task = asyncio.ensure_future(self._serve(question.key, line))
        line.waiting.append(one)
        try:
            return await one.answer
        finally:
            if one in line.waiting:
                line.waiting.remove(one)
            if not line.waiting and line.task is not None:
                if self._lines.get(question.key) is line:
                    del self._lines[question.key]
                line.task.cancel()

    async def _serve(self, key: tuple[str, str, str], line: _Line) -> None:
        try:
            while line.waiting:
                async with self._turn:
                    if line.waiting:
                        line.pass_on(await self._put(line.waiting[0].question))
                    while line.waiting and (known := line.waiting[0].question.known()) is not None:
                        line.pass_on(known)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (those who wait raise it, also a signal that ends the run)
            line.fail(error)
        finally:
            if self._lines.get(key) is line:
                del self._lines[key]

    async def _put(self, question: Question) -> ApprovalDecision | Decision:
        if (known := question.known()) is not None:
            return known
        request = await question.request()
        waiting = sum(len(line.waiting) for line in self._lines.values())
        request = replace(request, number=self._answered + 1, total=self._answered + max(waiting, 1))
        try:
            answer = await call_function(self.callback, request)
        except BaseException as error:  # noqa: BLE001 (a callback that fails allows nothing)
            reraise_if_cancelled(error)
            answer = ApprovalDecision("unanswered", note=f"asking failed, {exception_text(error)}")
        fault = self._fault(answer)
        if fault is not None or not isinstance(answer, ApprovalDecision):
            answer = ApprovalDecision("unanswered", note=f"the approval callback returned {fault}")
        self._answered += 1
        if question.settle is not None:
            answer = await question.settle(answer)
        question.keep(answer)
        return answer

    def _fault(self, answer: object) -> str | None:
        """What is wrong with an answer, as the end of a sentence; None for one that is accepted."""
        known = f"answers are {', '.join(self.accepted)}"
        if not isinstance(answer, ApprovalDecision):
            return f"a {type(answer).__name__}, not an ApprovalDecision"
        if answer.answer not in ALL_ANSWERS:
            return f"{answer!r}, which is not an answer; {known}"
        if not _is_text(answer.note) or not (answer.pattern is None or _is_text(answer.pattern)):
            return f"{answer!r}, whose note and pattern must be text"
        if answer.answer != "unanswered" and answer.answer not in self.accepted:
            return f"the answer {answer.answer!r}, which isn't accepted here; {known}"
        return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)
