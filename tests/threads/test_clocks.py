"""No record ends before it began, although the clock is set back between the two."""

from __future__ import annotations

import time
from dataclasses import replace

from llm_do.runtime.record.store.batches import BatchInput, BatchRecord
from llm_do.runtime.record.store.store_writes import Batch, MessageRow, RunEnd
from llm_do.runtime.record.store.stored_questions import QuestionRow
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads import Memory, MemoryOwner, ThreadConfig, ThreadRecord
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.threads.store.codec import message_text
from tests.support.tables import each_row
from tests.threads.thread_support import done, user_text

BEFORE = time.time()
LATER = BEFORE + 86_400


async def saved_thread(store: SqlStore) -> tuple[float, float | None]:
    first = await store.save_thread(ThreadRecord("t", created=LATER), expected=None)
    assert first.updated >= first.created
    saved = await store.save_thread(replace(first, state={"n": 1}), expected=first.revision)
    return saved.created, saved.updated


async def thread_of_a_run(store: SqlStore) -> tuple[float, float | None]:
    await store.save_thread(ThreadRecord("u", created=LATER), expected=None)
    opened = await store.begin_run(RunRecord("s", "running", "main", "u", None, BEFORE), ThreadConfig())
    assert opened.thread is not None
    row = MessageRow("m", None, 0, BEFORE, message_text(user_text("x")))
    await store.finish_run(
        RunEnd(Batch("s", (), [row]), "completed", BEFORE, turn=opened.thread.turn, head="m", state='{"n":1}')
    )
    found = await store.thread("u")
    assert found is not None
    assert found.head == "m"
    return found.created, found.updated


async def input_of_a_batch(store: SqlStore) -> tuple[float, float | None]:
    batch = BatchRecord("b", "main", None, "digest", 1, "{}", "{}", None, None, 1, BEFORE)
    await store.batches.begin(batch)
    await store.batches.put("b", [BatchInput(1, '"one"')])
    await store.batches.take("b", 1)
    await store.begin_run(RunRecord("b-1", "running", "main", None, None, LATER), ThreadConfig(), "{}")
    await store.stop_run(Batch("b-1", attempt=1), "suspended")
    await store.batches.end("b-1", "failed", "{}")
    run = await store.run("b-1")
    assert run is not None
    assert run.status == "failed"
    return run.started, run.finished


async def answered_question(store: SqlStore) -> tuple[float, float | None]:
    question = QuestionRow("r.1", "r", "a", 1, "approval", LATER, '{"agent_path": "main"}')
    await store.begin_run(RunRecord("r", "running", "main", None, None, LATER), ThreadConfig(), "{}")
    await store.write(Batch("r", attempt=1, questions=[question]))
    row = (await store.answer_question("r.1", '{"answer": "once"}', "ann")).row
    return row.asked, row.answered


async def withdrawn_question(store: SqlStore) -> tuple[float, float | None]:
    question = QuestionRow("w.1", "w", "a", 1, "approval", LATER, '{"agent_path": "main"}')
    await store.begin_run(RunRecord("w", "running", "main", None, None, LATER), ThreadConfig(), "{}")
    await store.write(Batch("w", attempt=1, questions=[question]))
    withdrawn = replace(question, answer='{"answer": "withdrawn"}', by="the run", answered=BEFORE)
    await store.write(Batch("w", attempt=1, questions=[withdrawn]))
    (row,) = await store.questions("w", answered=True)
    return row.asked, row.answered


async def repeated_memory(store: SqlStore) -> tuple[float, float | None]:
    for now in (LATER, BEFORE):
        await store.memories.remember(Memory(MemoryOwner("user", user="ann"), "", "one", now, now), 9)
    found = (await store.memories.recall([MemoryOwner("user", user="ann")], None, 9)).memories[0]
    return found.created, found.updated


RECORDS = {
    "a thread": saved_thread,
    "the thread of a run": thread_of_a_run,
    "an input of a batch": input_of_a_batch,
    "an answered question": answered_question,
    "a question that the run withdraws": withdrawn_question,
    "a memory": repeated_memory,
}


@each_row("kind", RECORDS)
def test_no_record_ends_before_it_began(kind: str, store: SqlStore) -> None:
    began, ended = done(RECORDS[kind](store))

    assert (began, ended) == (LATER, LATER)
