"""Answers to the questions of durable runs, from whichever process: found by id, checked, and kept once."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llm_do.errors import UsageError
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.runtime.approval.broker import ALL_ANSWERS, ApprovalDecision
from llm_do.runtime.approval.kept_approval import answer_data, covers_identical
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.run_names import named_run, run_by_name
from llm_do.runtime.record.store.stored_questions import (
    PendingQuestion,
    QuestionRow,
    as_question,
    given_answer,
    short_id,
)
from llm_do.runtime.steps.run_questions import process_user
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.text.generated_ids import short_run_id
from llm_do.text.json_data import json_text

if TYPE_CHECKING:
    from llm_do.runtime.record.thread_store import ThreadStore

__all__ = ["answer_question", "find_question", "pending_questions"]


async def pending_questions(store: ThreadStore, run_id: str | None = None) -> list[PendingQuestion]:
    """The questions of durable runs that wait for an answer, the oldest first.

    Args:
        store: The store.
        run_id: Only this run's; a prefix that no other run's id has is enough.

    Raises:
        UsageError: There is no such run, or there are several.
    """
    await store.recover()
    if run_id is not None:
        run_id = (await named_run(store, run_id)).id
    return [as_question(row) for row in await store.questions(run_id)]


async def find_question(store: ThreadStore, question_id: str) -> QuestionRow:
    """A question by its id, in which the run's may be shortened; it may have been answered.

    Raises:
        UsageError: There is none, or several runs have ids that begin like that.
    """
    await store.recover()
    prefix, _, number = question_id.rpartition(".")
    run = await run_by_name(store, prefix) if prefix else None
    rows = await store.questions(run.id, answered=True) if run is not None else ()
    for row in rows:
        if str(row.number) == number:
            return row
    raise UsageError(
        f"there is no question {question_id!r} in {store.name}",
        hint="`llm-do approvals pending` shows those that wait for an answer.",
    )


async def answer_question(
    store: ThreadStore, question_id: str, answer: ApprovalDecision | str, by: str | None = None
) -> PendingQuestion:
    """Answer a question; the first answer counts.

    Args:
        store: The store.
        question_id: Its id.
        answer: A decision about a call, or its `answer`, where `allow` is `once`; text for a question of an agent,
            where the number of a choice stands for it; `repeat`, `done` or `fail` for a call that was running when its
            run stopped.
        by: Who answers; None for the user of this process.

    Returns:
        The question.

    Raises:
        UsageError: There is no such question, it can't be answered like this, it has been answered, or its run has
            ended.
    """
    row = await find_question(store, question_id)
    question = as_question(row)
    if row.answer is not None:
        raise _answered(row)
    data = _checked(question, answer)
    text = Seal(redactor().secrets).close(json_text(data))
    who = by or process_user()
    kept = await store.answer_question(row.id, text, who)
    if not kept.counts:
        raise _answered(kept.row)
    if row.kind == "approval" and covers_identical(question.request, data):
        await _answer_identical(store, question, data["answer"], who)
    return question


async def _answer_identical(store: ThreadStore, question: PendingQuestion, answer: str, by: str) -> None:
    """Answer the questions about the same call of the same response, which an answer covers."""
    text = json.dumps({"answer": "deny" if answer == "deny" else "once", "note": "", "pattern": None})
    for row in await store.questions(question.run_id):
        request = as_question(row).request
        same = all(request.get(name) == question.request[name] for name in ("response", "digest"))
        if row.kind == "approval" and same:
            await store.answer_question(row.id, text, by)


def _checked(question: PendingQuestion, answer: ApprovalDecision | str) -> dict[str, Any]:
    """An answer as data, if it is one that the question accepts."""
    if question.kind == "approval":
        if isinstance(answer, str):
            word = "once" if answer == "allow" else answer
            answer = next((ApprovalDecision(each) for each in ALL_ANSWERS if each == word), answer)
        if isinstance(answer, ApprovalDecision) and answer.answer in question.answers:
            if answer.pattern is not None:
                try:
                    parse_pattern(answer.pattern)
                except PatternError as error:
                    raise UsageError(f"{answer.pattern!r} is no rule: {error.message}", hint=error.hint) from error
            return answer_data(answer)
        shown = answer.answer if isinstance(answer, ApprovalDecision) else answer
        raise _unfit(question, shown, question.answers)
    if not isinstance(answer, str):
        raise _unfit(question, answer.answer, question.answers)
    if question.kind == "in_flight":
        if answer not in question.answers:
            raise _unfit(question, answer, question.answers)
        return {"answer": answer}
    text = answer.strip()
    if not text:
        raise _unfit(question, answer, question.answers)
    return {"answer": "text", "text": chosen(text, question.request.get("choices") or ())}


def chosen(text: str, choices: Sequence[str]) -> str:
    """The text of an answer: a number stands for the choice that has it.

    Example:
        >>> chosen("2", ["red", "green"]), chosen("3", ["red", "green"])
        ('green', '3')
    """
    return choices[int(text) - 1] if text.isdecimal() and 0 < int(text) <= len(choices) else text


def _unfit(question: PendingQuestion, answer: str, accepted: Sequence[str]) -> UsageError:
    what = {"approval": "may this call be made", "ask": "a text is needed", "in_flight": "what becomes of this call"}
    known = f" ({', '.join('allow' if each == 'once' else each for each in accepted)})" if accepted else ""
    return UsageError(
        f"question {short_id(question)} can't be answered with {answer!r}: {what[question.kind]}{known}",
        hint=f"See it with `llm-do approvals show {short_id(question)}`.",
    )


def _answered(row: QuestionRow) -> UsageError:
    """The error of a second answer."""
    given = given_answer(row) or {"answer": ""}
    if given["answer"] == "withdrawn":
        return UsageError(
            f"question {short_id(row)} is no longer asked: its call has ended, or is about something else now",
            hint="`llm-do approvals pending` shows the questions that wait.",
        )
    word = {"once": "allow", "text": repr(given.get("text"))}.get(given["answer"], given["answer"])
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.answered or 0))
    return UsageError(
        f"question {short_id(row)} has been answered already: {word}, by {row.by or 'a person'} at {when}",
        hint=f"The first answer counts. `llm-do resume {short_run_id(row.run_id)}` continues the run.",
    )
