"""What `llm-do approvals pending`, `show` and `answer` do with the questions of durable runs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from llm_do.cli.actions.project_store import print_from_store
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.runtime.approval.broker import ApprovalDecision, ApprovalRequest
from llm_do.runtime.approval.question_answers import answer_question, find_question, pending_questions
from llm_do.runtime.record.store.stored_questions import PendingQuestion, as_question, given_answer, short_id
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import with_count
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.question import question_of
from llm_do.ui.reports.open_questions import how_to_answer, question_rows, same_project
from llm_do.ui.terminal.screen import draws_lines

if TYPE_CHECKING:
    from llm_do.cli.arguments.store_options import StoreOptions
    from llm_do.runtime.session.run_options import RuntimeOptions
    from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["answer", "list_pending", "show"]

WORDS = {"allow": "once", "yes": "once", "no": "deny"}
"""Words for answers, as people write them."""

_PLAIN = ("agent", "agent_path", "tool_name", "args", "reason", "rule", "description", "diff", "digest", "identical")


def list_pending(where: StoreOptions, run: str | None, form: Literal["text", "json"]) -> int:
    """Print the questions that wait for an answer."""

    found: list[PendingQuestion] = []

    async def lines_of(store: SqlStore) -> Sequence[str]:
        found.extend(await pending_questions(store, run))
        if form == "json":
            return [json.dumps([each.to_dict() for each in found], ensure_ascii=False)]
        return question_rows(found) or ["no questions"]

    code = print_from_store(where, lines_of, verbatim=form == "json", title=form == "text")
    if found and form == "text":
        warn(how_to_answer(found, same_project(where.named or where.project, where.store, where.env_file)))
    return code


def show(where: StoreOptions, question_id: str, form: Literal["text", "json"]) -> int:
    """Print one question in full."""

    async def lines_of(store: SqlStore) -> Sequence[str]:
        row = await find_question(store, question_id)
        question = as_question(row)
        given = given_answer(row)
        if form == "json":
            answered = None if given is None else {**given, "by": row.by, "at": row.answered}
            return [json.dumps({**question.to_dict(), "answered": answered}, ensure_ascii=False)]
        lines = _question_lines(question)
        if given is not None:
            text = given.get("text") or given["answer"]
            return [*lines, f"answered: {sanitize(str(text))}, by {sanitize(row.by or 'a person')}"]
        return [*lines, f"answers: {_accepted(question)}"]

    return print_from_store(where, lines_of, verbatim=form == "json")


def answer(where: StoreOptions, question_id: str, words: Sequence[str], note: str, *, resume: bool) -> int:
    """Answer a question, and continue its run if that is asked for."""
    found: list[PendingQuestion] = []

    async def lines_of(store: SqlStore) -> Sequence[str]:
        row = await find_question(store, question_id)
        given = _parsed(as_question(row), words, note)
        found.append(await answer_question(store, row.id, given))
        run = await store.run(row.run_id)
        waits = run is not None and run.status != "running"
        left = await pending_questions(store, row.run_id)
        word = given.answer if isinstance(given, ApprovalDecision) else given
        which = f"{sanitize(found[0].agent_path)}: {found[0].call}"
        lines = [f"answered {sanitize(short_id(found[0]))}: {_word(word)}  ({which})"]
        if not waits:
            found.clear()
            return [*lines, "its run is waiting for the answer in another process, and continues there"]
        if left:
            lines.append(f"{_count(left)} of its run left: {', '.join(sanitize(short_id(each)) for each in left)}")
        elif not resume:
            same = same_project(where.named or where.project, where.store, where.env_file)
            lines.append(f"continue the run with: llm-do resume{same} {short_run_id(row.run_id)}")
        return lines

    code = print_from_store(where, lines_of)
    if resume and found:
        from llm_do.cli.actions.durable.resume_action import ResumeOptions, start
        from llm_do.cli.arguments.run_options import InputOptions, OutputOptions, SessionOptions

        shared: RuntimeOptions = {} if where.env_file is None else {"env_file": where.env_file}
        session = SessionOptions(shared, store=where.store)
        target = InputOptions(named=where.named or where.project)
        return start(ResumeOptions(found[0].run_id), target, session, OutputOptions())
    return code


def _parsed(question: PendingQuestion, words: Sequence[str], note: str) -> ApprovalDecision | str:
    """The answer that the command line gives."""
    text = " ".join(words)
    if question.kind != "approval":
        if note:
            raise UsageError("--note goes with an answer to an approval", hint="Leave it out.")
        return text
    word = WORDS.get(text.lower(), text.lower())
    if word not in question.answers:
        raise UsageError(
            f"question {short_id(question)} can't be answered with {text!r}", hint=f"It takes {_accepted(question)}."
        )
    if note and word != "deny":
        raise UsageError("--note is for the model, with `deny`", hint="Leave it out.")
    return ApprovalDecision(word, note=note)  # pyright: ignore[reportArgumentType]


def _accepted(question: PendingQuestion) -> str:
    if question.kind == "ask":
        choices: Sequence[str] = question.request.get("choices") or ()
        listed = " ".join(f"{number} {sanitize(choice)}" for number, choice in enumerate(choices, 1))
        return f"any text{f', or the number of a choice: {listed}' if listed else ''}"
    return ", ".join(map(_word, question.answers))


def _word(answer: str) -> str:
    return "allow" if answer == "once" else sanitize(answer)


def _count(questions: Sequence[PendingQuestion]) -> str:
    return with_count(len(questions), "question")


def _question_lines(question: PendingQuestion) -> list[str]:
    frame = Frame(lines=draws_lines(os.environ))
    request = question.request
    if question.kind == "approval":
        shown = {name: request[name] for name in _PLAIN if name in request}
        asked = ApprovalRequest(id=question.id, run_id=question.run_id, call_id="", tool_call_id="", **shown)
        lines, _ = question_of(asked, frame, complete=True).fit(1_000_000)
        return lines
    *callers, agent = sanitize(question.agent_path).split("/")
    what = f"{agent} asks" if question.kind == "ask" else f"{agent} called {sanitize(str(request['tool_name']))}"
    lines = frame.top(what)
    lines += frame.prose(f"called by {' > '.join(callers)}", "quiet") if callers else []
    for line in sanitize(question.call if question.kind == "in_flight" else question.reason, lines=True).split("\n"):
        lines += frame.row("", " ", line)
    return [*lines, *frame.bottom(question.reason if question.kind == "in_flight" else "any text answers it")]
