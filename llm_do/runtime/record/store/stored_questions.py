"""The questions of durable runs that a person answers: as the store keeps them, and as a person sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.store.unreadable_data import object_of, reading
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import format_arguments

__all__ = [
    "WITHDRAWN",
    "KeptAnswer",
    "PendingQuestion",
    "QuestionKind",
    "QuestionRow",
    "as_question",
    "call_text",
    "given_answer",
    "in_flight_request",
    "short_id",
]

QuestionKind: TypeAlias = Literal["approval", "ask", "in_flight"]
"""May this call be made; a question of an agent; what becomes of a call that was running when the run stopped."""

WITHDRAWN = "withdrawn"
"""The answer of a question that is no longer asked."""

LONGEST = 100
"""Characters of the arguments that are shown."""

_SEALED = re.compile(r"⟦secret ([A-Za-z0-9_]+) [0-9a-f]{16}:[0-9a-f]{16}⟧")


@frozen
class QuestionRow:
    """One question, as the store keeps it.

    Args:
        id: The run's id and the question's number.
        run_id: The run.
        key: The step and what was shown: the same question has the same key in every attempt.
        number: Its number in the run, from 1.
        kind: What is asked.
        asked: When, in seconds since the epoch.
        request: What is shown, as JSON text with its secrets sealed.
        answer: The answer as JSON text; None until there is one.
        by: Who answered.
        answered: When, in seconds since the epoch.
    """

    id: str
    run_id: str
    key: str
    number: int
    kind: QuestionKind
    asked: float
    request: str
    answer: str | None = None
    by: str | None = None
    answered: float | None = None


@frozen
class KeptAnswer:
    """What became of an answer to a question.

    Args:
        row: The question, with the answer that counts.
        counts: Whether that is the one just given. The texts can't tell, because two people may answer alike.
    """

    row: QuestionRow
    counts: bool


@frozen
class PendingQuestion:
    """A question of a durable run that a person answers.

    Args:
        id: Its id, which `Runtime.answer` and `llm-do approvals answer` take.
        run_id: The run.
        kind: `approval` of a call, `ask` for a question of an agent, `in_flight` for a call that was running when the
            run stopped.
        agent_path: The call path of the agent concerned.
        call: The call in one line.
        reason: Why it is asked: what made policy ask, or the question itself.
        answers: The answers that are accepted; empty for any text.
        asked: When it was asked, in seconds since the epoch.
        request: Everything that the person is shown, as JSON data.
    """

    id: str
    run_id: str
    kind: QuestionKind
    agent_path: str
    call: str
    reason: str
    answers: tuple[str, ...] = ()
    asked: float = 0.0
    request: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--format json` prints."""
        return {
            "id": self.id,
            "run_id": self.run_id,
            "kind": self.kind,
            "agent_path": self.agent_path,
            "call": self.call,
            "reason": self.reason,
            "answers": list(self.answers),
            "asked": self.asked,
            "request": dict(self.request),
        }


def as_question(row: QuestionRow) -> PendingQuestion:
    """The question of a row; instead of secrets it has the names of their variables."""
    with reading(f"question {row.id}"):
        request: dict[str, Any] = object_of(_SEALED.sub(r"[\1]", row.request))
        return PendingQuestion(
            row.id,
            row.run_id,
            row.kind,
            str(request["agent_path"]),
            call_text(request),
            _REASONS.get(row.kind, str(request.get("reason", ""))),
            tuple(request.get("answers", ())),
            row.asked,
            request,
        )


def given_answer(row: QuestionRow) -> dict[str, Any] | None:
    """The answer to a question as it is kept, with what was answered as `answer`; None if it waits for one."""
    if row.answer is None:
        return None
    with reading(f"the answer to question {row.id}"):
        given = object_of(row.answer)
        return {**given, "answer": str(given["answer"])}


def in_flight_request(step: Mapping[str, Any]) -> dict[str, Any]:
    """What a person is asked about a step that was running.

    A model can be told that a call was carried out. Code that called a function needs what it returned, so that is only
    an answer where the function returns nothing.
    """
    answers = ["repeat", "fail"] if step.get("has_result", "tool_call_id" not in step) else ["repeat", "done", "fail"]
    return {"agent_path": step["path"], "tool_name": step["tool_name"], "args": step["args"], "answers": answers}


def short_id(question: QuestionRow | PendingQuestion) -> str:
    """A question's id with the run's as `runs list` shows it; commands take it, too.

    Example:
        >>> short_id(PendingQuestion("letters-7.2", "letters-7", "ask", "main", "ask_user()", "Which?"))
        'letters-7.2'
    """
    return f"{short_run_id(question.run_id)}{question.id.removeprefix(question.run_id)}"


_REASONS = {"in_flight": "it was running when the process stopped; whether it had an effect is unknown"}


def call_text(data: Mapping[str, Any]) -> str:
    """A call in one line, such as `pay(amount=7)`.

    Example:
        >>> call_text({"tool_name": "pay", "args": {"amount": 7}})
        'pay(amount=7)'
    """
    args = ", ".join(f"{name}={value}" for name, value in format_arguments(data["args"], lines=False))
    return f"{data['tool_name']}({args if len(args) <= LONGEST else f'{args[:LONGEST]}…'})"
