"""`KeptQuestions`: the questions of durable runs, which the store keeps, whichever process asked them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llm_do.errors import UsageError
from llm_do.runtime.approval.broker import ApprovalDecision
from llm_do.runtime.approval.question_answers import answer_question
from llm_do.runtime.record.store.stored_questions import (
    WITHDRAWN,
    PendingQuestion,
    QuestionRow,
    as_question,
    given_answer,
)
from llm_do.web.questions import ANSWERS, AnsweredError, answer_text
from llm_do.web.requests import BadRequestError

if TYPE_CHECKING:
    from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["KeptQuestions"]

_SHOWN = ("tool_call_id", "reason", "rule", "description", "diff", "identical")
"""What a person is shown of an approval, besides the call."""


class KeptQuestions:
    """The questions in a store.

    Args:
        store: The store.
    """

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def pending(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """The questions that wait for an answer, of one run or of all, the oldest first, as JSON data."""
        return [_shown(row) for row in await self._store.questions(run_id)]

    async def answered(self, run_id: str) -> list[dict[str, Any]]:
        """Who has answered the questions of a run, and what."""
        rows = await self._store.questions(run_id, answered=True)
        found = [_given(row) for row in rows if "recorded" not in as_question(row).request]
        return [each for each in found if each is not None]

    async def answer(self, run_id: str, id: str, data: Mapping[str, Any], by: str) -> bool:
        """Answer a question; returns whether the run has one with this id.

        Raises:
            BadRequestError: It has been answered, shows something else than the digest is of, or doesn't accept this.
        """
        row = await self._row(run_id, id)
        if row is None:
            return False
        if row.answer is not None:
            raise _answered(row)
        shown, answer, note = _shown(row), data.get("answer"), data.get("note", "")
        if not isinstance(answer, str) or not isinstance(note, str):
            raise BadRequestError("`answer` has to be a text" if isinstance(note, str) else "`note` has to be a text")
        if shown["digest"] and data.get("digest") != shown["digest"]:
            raise BadRequestError("the digest isn't that of this question: read it again, and send its `digest`", 409)
        if shown["answers"] and answer not in shown["answers"]:
            raise BadRequestError(f"`answer` has to be one of {', '.join(shown['answers'])}")
        given = ApprovalDecision(answer, note=note) if row.kind == "approval" else answer  # pyright: ignore[reportArgumentType]
        try:
            await answer_question(self._store, row.id, given, by)
        except UsageError as error:
            now = await self._row(run_id, id)
            if now is not None and now.answer is not None:
                raise _answered(now) from error
            run = await self._store.run(run_id)
            has_ended = run is None or run.finished is not None
            raise BadRequestError(error.message, 409 if has_ended else 422, hint=error.hint) from error
        return True

    async def _row(self, run_id: str, id: str) -> QuestionRow | None:
        rows = await self._store.questions(run_id, answered=True)
        return next((row for row in rows if row.id == id and "recorded" not in as_question(row).request), None)


def _shown(row: QuestionRow) -> dict[str, Any]:
    """A question as JSON data, in the form that questions of other runs have."""
    question = as_question(row)
    request = question.request
    data: dict[str, Any] = {
        "id": row.id,
        "run_id": row.run_id,
        "kind": "question" if row.kind == "ask" else row.kind,
        "durable": True,
        "asked": row.asked,
        "digest": "",
        "agent": question.agent_path,
        "answers": [],
    }
    if row.kind == "ask":
        return {**data, "text": request["text"], "choices": list(request.get("choices") or ())}
    data |= {"tool": request["tool_name"], "args": request["args"], "reason": question.reason}
    if row.kind == "in_flight":
        content = hashlib.sha256(row.request.encode("utf-8", "surrogatepass")).hexdigest()
        return {**data, "digest": content, "answers": list(question.answers)}
    more = {name: request[name] for name in _SHOWN if name in request}
    return {**data, **more, "digest": request["digest"], "answers": _accepted(question)}


def _accepted(question: PendingQuestion) -> list[str]:
    """The answers that clients may give."""
    return [each for each in ANSWERS if each in question.answers]


def _given(row: QuestionRow) -> dict[str, Any] | None:
    """The answer to a question and who gave it; None if it waits, or is no longer asked."""
    given = given_answer(row)
    if given is None or given["answer"] == WITHDRAWN:
        return None
    question = as_question(row)
    return {
        "id": row.id,
        "tool": question.request.get("tool_name", ""),
        "agent": question.agent_path,
        "answer": given["text"] if given["answer"] == "text" else given["answer"],
        "by": row.by,
        "time": row.answered,
    }


def _answered(row: QuestionRow) -> AnsweredError:
    return AnsweredError(_given(row), answer_text(_given(row)))
