"""`Questions`: what the runs of a server wait for, each answered once, by whoever answers first.

Those of durable runs are in the store, and `KeptQuestions` reads and answers them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.web.requests import BadRequestError

__all__ = ["ANSWERS", "AnsweredError", "Questions", "answer_text"]

ANSWERS: tuple[Answer, ...] = ("once", "all", "session", "deny", "abort")
"""The answers that clients may give. None of them outlasts the run: a client must not decide for the next one."""

MOST_ANSWERED = 1000
"""Answered questions that are remembered, so that whoever answers a second time is told what the first answer was."""


class AnsweredError(BadRequestError):
    """A question has been answered by someone else, or is no longer asked.

    Args:
        given: The answer, and who gave it; None if it is no longer asked.
        text: The same, in a sentence.
    """

    def __init__(self, given: Mapping[str, Any] | None, text: str) -> None:
        super().__init__(text, 409, more={"answered": None if given is None else dict(given)})


def answer_text(given: Mapping[str, Any] | None) -> str:
    """Say who has answered a question, and what.

    Example:
        >>> answer_text({"answer": "once", "by": "ann", "time": 0.0}).partition(" at ")[0]
        'the question has been answered already: allow, by ann'
    """
    if given is None:
        return "the question is no longer asked: its call has ended, or is about something else now"
    word = "allow" if given["answer"] == "once" else given["answer"]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(given["time"] or 0))
    return f"the question has been answered already: {word}, by {given['by'] or 'a person'} at {when}"


@dataclass(eq=False, slots=True)
class _Waiting:
    run_id: str
    data: dict[str, Any]
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True)
class _Answered:
    run_id: str
    given: dict[str, Any] | None


class Questions:
    """The questions that wait, by their ids."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._answered: dict[str, _Answered] = {}

    def pending(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """The questions of a run, or of all runs, as JSON data, first come first."""
        waiting = [each for each in self._waiting.values() if not each.answer.done()]
        return [each.data for each in waiting if run_id is None or each.run_id == run_id]

    def answered(self, run_id: str) -> list[dict[str, Any]]:
        """Who has answered the questions of a run, and what."""
        return [each.given for each in self._answered.values() if each.run_id == run_id and each.given is not None]

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        """Wait for the answer to an approval question."""
        data = {
            "kind": "approval",
            "digest": request.digest,
            "tool_call_id": request.tool_call_id,
            "agent": request.agent_path,
            "tool": request.tool_name,
            "args": dict(request.args),
            "reason": request.reason,
            "rule": request.rule,
            "description": request.description,
            "diff": request.diff,
            "identical": request.identical,
            "answers": list(request.answers),
        }
        return await self._wait(request.run_id, data)

    async def ask_user(self, question: UserQuestion) -> str:
        """Wait for the answer to an agent's own question."""
        data = {
            "kind": "question",
            "digest": "",
            "agent": question.agent_path,
            "text": question.text,
            "choices": list(question.choices),
            "answers": [],
        }
        return await self._wait(question.run_id, data)

    async def _wait(self, run_id: str, data: dict[str, Any]) -> Any:
        id = secrets.token_urlsafe(12)
        more = {"id": id, "run_id": run_id, "durable": False, "asked": time.time()}
        waiting = self._waiting[id] = _Waiting(run_id, {**more, **data})
        try:
            return await waiting.answer
        finally:
            del self._waiting[id]
            self._remember(id, run_id, None)

    def _remember(self, id: str, run_id: str, given: dict[str, Any] | None) -> None:
        if id not in self._answered:
            self._answered[id] = _Answered(run_id, given)
        while len(self._answered) > MOST_ANSWERED:
            del self._answered[next(iter(self._answered))]

    def answer(self, run_id: str, id: str, data: Mapping[str, Any], by: str) -> bool:
        """Answer a question; returns whether there is or was one with this id.

        Raises:
            BadRequestError: It has been answered, shows something else than the digest is of, or doesn't accept this.
        """
        answered = self._answered.get(id)
        if answered is not None and answered.run_id == run_id:
            raise AnsweredError(answered.given, answer_text(answered.given))
        waiting = self._waiting.get(id)
        if waiting is None or waiting.run_id != run_id:
            return False
        shown, note = waiting.data, data.get("note", "")
        answer: Any = data.get("answer")
        if shown["kind"] == "question":
            if not isinstance(answer, str):
                raise BadRequestError("`answer` has to be a text")
            waiting.answer.set_result(answer)
        else:
            if data.get("digest") != shown["digest"]:
                raise BadRequestError(
                    "the digest isn't that of this question: read it again, and send its `digest`", 409
                )
            if answer not in shown["answers"]:
                raise BadRequestError(f"`answer` has to be one of {', '.join(shown['answers'])}")
            if not isinstance(note, str):
                raise BadRequestError("`note` has to be a text")
            waiting.answer.set_result(ApprovalDecision(answer, note=note))
        named = {"id": id, "tool": shown.get("tool", "ask_user"), "agent": shown["agent"]}
        self._remember(id, run_id, {**named, "answer": answer, "by": by, "time": time.time()})
        return True
