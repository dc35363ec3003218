"""The questions of durable runs in the store. The first answer to a question counts.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from llm_do.errors import UsageError
from llm_do.runtime.record.store.stored_questions import KeptAnswer, QuestionRow, in_flight_request
from llm_do.text.json_data import json_text
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.rows import not_before

__all__ = ["answer", "ask_about_in_flight", "of_run", "pending", "write_questions"]

_ALL = 'questions.id, run, key, number, kind, asked, request, answer, "by", answered'

OPEN = ("running", "stopped", "suspended")
"""The states of runs that an answer may still reach."""


def write_questions(db: Database, questions: Iterable[QuestionRow]) -> None:
    """Keep questions; of those that are kept already, an answer is written if they have none."""
    db.executemany(
        'INSERT INTO questions (id, run, key, number, kind, asked, request, answer, "by", answered)'
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, key) DO UPDATE SET answer = excluded.answer,"
        ' "by" = excluded."by", answered = CASE WHEN questions.asked > excluded.answered'
        " THEN questions.asked ELSE excluded.answered END"
        " WHERE questions.answer IS NULL",
        [(q.id, q.run_id, q.key, q.number, q.kind, q.asked, q.request, q.answer, q.by, q.answered) for q in questions],
    )


def of_run(db: Database, run_id: str) -> tuple[QuestionRow, ...]:
    """The questions of a run, in the order in which they were asked."""
    return _rows(db, "FROM questions WHERE run = ? ORDER BY number", (run_id,))


def pending(db: Database, run_id: str | None = None) -> tuple[QuestionRow, ...]:
    """The questions that wait for an answer: of runs that haven't ended, or of one of them."""
    states = ", ".join("?" * len(OPEN))
    where, values = f"answer IS NULL AND status IN ({states})", [*OPEN]
    if run_id is not None:
        where, values = f"{where} AND run = ?", [*values, run_id]
    return _rows(db, f"FROM questions JOIN runs ON runs.id = run WHERE {where} ORDER BY asked, run, number", values)


def answer(db: Database, question_id: str, text: str, by: str) -> KeptAnswer:
    """Answer a question, unless it has been answered; returns which answer counts.

    Raises:
        UsageError: There is no such question, or its run has ended.
    """
    row = db.execute(
        "SELECT run, status FROM questions LEFT JOIN runs ON runs.id = run WHERE questions.id = ?", (question_id,)
    ).fetchone()
    if row is None:
        raise UsageError(
            f"there is no question {question_id!r}", hint="`llm-do approvals pending` shows those that wait."
        )
    if row[1] not in OPEN:
        raise UsageError(
            f"question {question_id} is closed: its run has ended ({row[1]})",
            hint=f"See it with `llm-do runs show {row[0]}`.",
        )
    now = time.time()
    changed = db.execute(
        f'UPDATE questions SET answer = ?, "by" = ?, answered = {not_before("asked")} WHERE id = ? AND answer IS NULL',
        (text, by, now, now, question_id),
    )
    return KeptAnswer(_rows(db, "FROM questions WHERE id = ?", (question_id,))[0], changed.rowcount > 0)


def ask_about_in_flight(db: Database, run_id: str) -> None:
    """Ask what becomes of the calls that are running as a run stops: whether they had an effect isn't known."""
    found: Sequence[Any] = db.execute(
        "SELECT key, attempt, data FROM steps WHERE run = ? AND done = 0 AND kind IN ('tool', 'function') ORDER BY key",
        (run_id,),
    ).fetchall()
    number = db.execute("SELECT coalesce(max(number), 0) FROM questions WHERE run = ?", (run_id,)).fetchone()[0]
    known = {key for (key,) in db.execute("SELECT key FROM questions WHERE run = ?", (run_id,))}
    now = time.time()
    rows: list[QuestionRow] = []
    for step, attempt, data in found:
        key = f"{step}/in_flight/{attempt}"
        if key in known:
            continue
        number += 1
        request = json_text({**in_flight_request(json.loads(data)), "step": step})
        rows.append(QuestionRow(f"{run_id}.{number}", run_id, key, number, "in_flight", now, request))
    write_questions(db, rows)


def _rows(db: Database, query: str, values: Sequence[Any]) -> tuple[QuestionRow, ...]:
    return tuple(QuestionRow(*row) for row in db.execute(f"SELECT {_ALL} {query}", values).fetchall())
