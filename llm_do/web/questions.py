"""`Questions`: what the runs of a server wait for, each answered once, by whoever answers first."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.web.requests import BadRequestError

__all__ = ["ANSWERS", "Questions"]

ANSWERS: tuple[Answer, ...] = ("once", "all", "deny", "abort")
"""The answers that clients may give. None of them lasts: a client must not decide for the next one."""

MOST_ANSWERED = 1000
"""Answered questions that are remembered, so that a second answer differs from one to an unknown question."""


@dataclass(eq=False, slots=True)
class _Waiting:
    run_id: str
    data: dict[str, Any]
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Questions:
    """The questions that wait, by their ids."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._answered: deque[str] = deque(maxlen=MOST_ANSWERED)

    def of_run(self, run_id: str) -> list[dict[str, Any]]:
        """The questions of a run as JSON data, first come first."""
        return [each.data for each in self._waiting.values() if each.run_id == run_id]

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
        }
        return await self._wait(question.run_id, data)

    async def _wait(self, run_id: str, data: dict[str, Any]) -> Any:
        id = secrets.token_urlsafe(12)
        waiting = self._waiting[id] = _Waiting(run_id, {"id": id, **data})
        try:
            return await waiting.answer
        finally:
            del self._waiting[id]
            self._answered.append(id)

    def answer(self, run_id: str, id: str, data: dict[str, Any]) -> bool:
        """Answer a question; returns whether there is or was one with this id.

        Raises:
            BadRequestError: It has been answered, shows something else than the digest is of, or doesn't accept this.
        """
        waiting = self._waiting.get(id)
        if waiting is None or waiting.run_id != run_id or waiting.answer.done():
            if id in self._answered or (waiting is not None and waiting.answer.done()):
                raise BadRequestError("the question has been answered already", 409)
            return False
        answer: Any = data.get("answer")
        if waiting.data["kind"] == "question":
            if not isinstance(answer, str):
                raise BadRequestError("`answer` has to be a text")
            waiting.answer.set_result(answer)
            return True
        if data.get("digest") != waiting.data["digest"]:
            raise BadRequestError("the question shows something else now: read it again, and send its `digest`", 409)
        if answer not in waiting.data["answers"]:
            raise BadRequestError(f"`answer` has to be one of {', '.join(waiting.data['answers'])}")
        note = data.get("note", "")
        if not isinstance(note, str):
            raise BadRequestError("`note` has to be a text")
        waiting.answer.set_result(ApprovalDecision(answer, note=note))
        return True
