"""The questions of durable runs as lines: what is needed, and the question in full."""

from __future__ import annotations

from collections.abc import Sequence

from llm_do.project.store_location import without_password
from llm_do.runtime.record.store.stored_questions import PendingQuestion, short_id
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import sanitize, shell_word
from llm_do.ui.terminal.text_width import shorten_middle, text_width

__all__ = ["answer_word", "how_to_answer", "question_rows", "same_project", "suspension_lines"]

CALL_CHARACTERS = 60
REASON_CHARACTERS = 100


def question_rows(questions: Sequence[PendingQuestion]) -> list[str]:
    """Questions as lines: id, agent, call and why it is asked."""
    rows = [
        (
            sanitize(short_id(each)),
            sanitize(each.agent_path),
            _cut(each.call if each.kind != "ask" else "ask_user"),
        )
        for each in questions
    ]
    widths = [max((text_width(row[column]) for row in rows), default=0) for column in range(3)]
    lines: list[str] = []
    for each, row in zip(questions, rows, strict=True):
        cells = [cell + " " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append(f"{'  '.join(cells)}   {shorten_middle(each.reason, REASON_CHARACTERS)}".rstrip())
    return lines


def _cut(call: str) -> str:
    return call if len(call) <= CALL_CHARACTERS else f"{call[: CALL_CHARACTERS - 2]}…)"


def answer_word(question: PendingQuestion) -> str:
    """What an answer to a question looks like on a command line."""
    if question.kind == "approval":
        return "allow"
    return "repeat" if question.kind == "in_flight" else "TEXT"


def same_project(project: str | None, store: str | None, env_file: str | None) -> str:
    """The options with which another command, in the same folder, finds the same project and store.

    A password that is written out in a store's URL isn't shown.

    Example:
        >>> same_project("desk", None, "prod keys.env"), same_project(".", None, None)
        (" -p desk --env-file 'prod keys.env'", '')
    """
    named = {
        "-p": project if project != "." else None,
        "--store": without_password(store or ""),
        "--env-file": env_file,
    }
    return "".join(f" {option} {shell_word(value)}" for option, value in named.items() if value)


def how_to_answer(questions: Sequence[PendingQuestion], same: str) -> str:
    """The commands that answer the first of these questions, and continue its run; `same` are options of both."""
    first = questions[0]
    answer = f"llm-do approvals answer{same} {shell_word(short_id(first))} {answer_word(first)}"
    if first.kind == "in_flight":  # to repeat a call is one way, and not always the right one
        answer += "".join(f", or {each}" for each in first.answers if each != "repeat")
    return f"Answer: {answer}    Then: llm-do resume{same} {shell_word(short_run_id(first.run_id))}"


def suspension_lines(questions: Sequence[PendingQuestion], same: str) -> list[str]:
    """What a run that waits for a person needs; `same` are the options with which commands find its project."""
    needed = "1 answer is" if len(questions) == 1 else f"{len(questions)} answers are"
    rows = [f"  {line}" for line in question_rows(questions)]
    return [f"{needed} needed; nothing is running now.", *rows, how_to_answer(questions, same)]
