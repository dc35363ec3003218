"""Conformance tests that every kind of store passes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from llm_do import ThreadConflict, UsageError
from llm_do.runtime.record.store.store_writes import Batch, EventRow, MessageRow, RunEnd, StepRow
from llm_do.runtime.record.store.stored_questions import QuestionRow
from llm_do.runtime.record.stored_records import Filter, RunRecord
from llm_do.threads import ConversationManager, ThreadConfig, ThreadRecord, ThreadStore, memory_store
from tests.threads.thread_support import done, talk, user_text


def test_a_thread_that_was_never_saved_does_not_exist(store: ThreadStore) -> None:
    assert done(store.thread("t")) is None
    assert done(store.threads()) == []
    assert done(store.delete_thread("t")) is False


def test_saved_data_is_read_back(store: ThreadStore) -> None:
    record = ThreadRecord("t", config=ThreadConfig(model="test", history_limit=3), state={"a": [1, None, "ü"]})

    saved = done(store.save_thread(record, expected=None))

    assert done(store.thread("t")) == saved
    assert saved.config == record.config
    assert saved.state == record.state
    assert saved.revision
    assert saved.turn


def test_a_writer_with_an_old_revision_loses_and_changes_nothing(store: ThreadStore) -> None:
    first = done(store.save_thread(ThreadRecord("t", state={"n": 1}), expected=None))
    second = done(store.save_thread(replace(first, state={"n": 2}), expected=first.revision))

    with pytest.raises(ThreadConflict):
        done(store.save_thread(replace(first, state={"n": 3}), expected=first.revision, messages=[row("m")]))

    assert done(store.thread("t")) == second
    assert done(store.message("m")) is None


def test_a_new_thread_does_not_replace_an_existing_one(store: ThreadStore) -> None:
    done(store.save_thread(ThreadRecord("t", state=1), expected=None))

    with pytest.raises(ThreadConflict):
        done(store.save_thread(ThreadRecord("t", state=2), expected=None))


def test_only_history_state_and_toolkits_make_a_new_turn(store: ThreadStore) -> None:
    first = done(store.save_thread(ThreadRecord("t"), expected=None))
    configured = done(store.save_thread(replace(first, config=ThreadConfig(model="x")), expected=first.revision))
    changed = done(store.save_thread(replace(configured, state={"n": 1}), expected=configured.revision))

    assert configured.turn == first.turn
    assert configured.revision != first.revision
    assert changed.turn != first.turn


def test_another_users_thread_is_invisible(store: ThreadStore) -> None:
    done(talk(store, 2, user="ann"))
    done(talk(store, 1, user="bob"))

    assert done(store.thread("t")) is None
    assert done(store.thread("t", "eve")) is None
    assert (done(store.thread("t", "ann")) or pytest.fail("it is gone")).length == 4
    assert (done(store.thread("t", "bob")) or pytest.fail("it is gone")).length == 2
    assert [record.user_id for record in done(store.threads("ann"))] == ["ann"]
    assert {record.user_id for record in done(store.threads(every_user=True))} == {"ann", "bob"}
    assert done(store.delete_thread("t", "eve")) is False
    assert len(done(ConversationManager(store, "bob").get_messages("t"))) == 2
    assert done(ConversationManager(store, "eve").get_messages("t")) == []


def test_deleting_a_thread_deletes_its_own_messages_and_keeps_shared_ones(store: ThreadStore) -> None:
    ids = done(talk(store, 2))
    original = done(store.thread("t")) or pytest.fail("it is gone")
    done(store.save_thread(replace(original, id="fork", head=ids[1], revision=""), expected=None))

    assert done(store.delete_thread("t"))

    assert done(store.thread("t")) is None
    assert [each.id for each in done(store.history(ids[1]))] == ids[:2]
    assert done(store.message(ids[3])) is None


def test_an_unknown_head_is_refused(store: ThreadStore) -> None:
    with pytest.raises(ThreadConflict):
        done(store.save_thread(ThreadRecord("t", head="nowhere"), expected=None))


# -- users


def test_a_users_state_has_its_own_revision(store: ThreadStore) -> None:
    assert done(store.user_state("ann")) == ({}, None)
    revision = done(store.save_user_state("ann", {"lang": "de"}, expected=None))

    with pytest.raises(ThreadConflict):
        done(store.save_user_state("ann", {"lang": "fr"}, expected=None))

    assert done(store.user_state("ann")) == ({"lang": "de"}, revision)
    assert done(store.user_state("bob")) == ({}, None)


# -- runs


def row(message_id: str, parent: str | None = None, depth: int = 0) -> MessageRow:
    from llm_do.threads.store.codec import message_text

    return MessageRow(message_id, parent, depth, 1.0, message_text(user_text(message_id)))


def event(seq: int, type: str = "warning", time: float = 1.0) -> EventRow:
    return EventRow(seq, time, type, f'{{"seq": {seq}, "type": "{type}"}}')


def run(run_id: str, thread: str | None = "t", user: str | None = None) -> RunRecord:
    return RunRecord(run_id, "running", "main", thread, user, 1.0)


def test_of_two_runs_on_one_thread_the_second_to_end_is_kept_as_a_branch(store: ThreadStore) -> None:
    async def race() -> None:
        one = await store.begin_run(run("r1"), ThreadConfig())
        two = await store.begin_run(run("r2"), ThreadConfig())
        assert one.thread is not None
        assert two.thread is not None
        await store.finish_run(
            RunEnd(
                Batch("r1", [event(0)], [row("m1")]), "completed", 2.0, turn=one.thread.turn, head="m1", state='{"n":1}'
            )
        )
        with pytest.raises(ThreadConflict):
            await store.finish_run(
                RunEnd(Batch("r2", [event(0)], [row("m2")]), "completed", 2.0, turn=two.thread.turn, head="m2")
            )
        await store.finish_run(RunEnd(Batch("r2", [event(1, "run_failed")]), "failed", 3.0))
        thread = await store.thread("t")
        assert thread is not None
        assert (thread.head, thread.state, thread.branches) == ("m1", {"n": 1}, ("m2",))
        assert await store.message("m2") is not None
        assert {each.id: each.status for each in await store.runs()} == {"r1": "completed", "r2": "failed"}

    done(race())


def test_a_losing_run_that_restarts_leaves_nothing(store: ThreadStore) -> None:
    async def race() -> None:
        one = await store.begin_run(run("r1"), ThreadConfig())
        two = await store.begin_run(run("r2"), ThreadConfig())
        await store.finish_run(RunEnd(Batch("r1", (), [row("m1")]), "completed", 2.0, turn=one.thread.turn, head="m1"))  # type: ignore[union-attr]
        await store.write(Batch("r2", [event(0)], [row("m2")]))
        with pytest.raises(ThreadConflict):
            await store.finish_run(RunEnd(Batch("r2"), "completed", 2.0, turn=two.thread.turn, head="m2", keep=False))  # type: ignore[union-attr]
        again = await store.begin_run(run("r2"), ThreadConfig())
        assert again.thread is not None
        assert again.thread.branches == ()
        assert again.thread.head == "m1"
        assert await store.message("m2") is None

    done(race())


@pytest.mark.parametrize("status", ["running", "completed"])
def test_a_runs_id_is_used_once(store: ThreadStore, status: str) -> None:
    async def twice() -> None:
        await store.begin_run(run("r1"), ThreadConfig())
        await store.write(Batch("r1", [event(0)]))
        if status == "completed":
            await store.finish_run(RunEnd(Batch("r1"), "completed", 2.0))
        with pytest.raises(UsageError, match=r"run 'r1' (is still running|has already ended)"):
            await store.begin_run(run("r1", "another"), ThreadConfig())
        if status == "running":
            await store.finish_run(RunEnd(Batch("r1", [event(1)]), "completed", 2.0))

    done(twice())

    (found,) = done(store.runs())
    assert (found.id, found.thread_id, found.status) == ("r1", "t", "completed")
    assert [each.seq for each in done(store.observations(Filter(run_id="r1")))] == (
        [0, 1] if status == "running" else [0]
    )


def test_a_run_is_found_by_the_beginning_of_its_id(store: ThreadStore) -> None:
    async def several() -> list[str | None]:
        for run_id in ("aa%", "aab", "ab", "ü1"):
            await store.begin_run(run(run_id, None), ThreadConfig())
        found = [await store.run(prefix) for prefix in ("aa", "aab", "aa%", "a_", "ab", "ü", "", "b")]
        return [each.id if each is not None else None for each in found]

    assert done(several()) == [None, "aab", "aa%", None, "ab", "ü1", None, None]


def test_a_question_is_answered_once_while_its_run_has_not_ended(store: ThreadStore) -> None:
    def question(key: str, number: int) -> QuestionRow:
        return QuestionRow(f"r.{number}", "r", key, number, "approval", 1.0, '{"agent_path": "main"}')

    async def ask() -> None:
        await store.begin_run(run("r", thread=None), ThreadConfig(), "{}")
        await store.write(Batch("r", attempt=1, questions=[question("a", 1), question("b", 2)]))
        await store.write(Batch("r", attempt=1, questions=[question("a", 1)]))
        assert [each.id for each in await store.questions()] == ["r.1", "r.2"]
        first = await store.answer_question("r.1", '{"answer": "once"}', "ann")
        second = await store.answer_question("r.1", '{"answer": "deny"}', "ben")
        again = await store.answer_question("r.1", '{"answer": "once"}', "ann")
        assert (first.counts, second.counts, again.counts) == (True, False, False)  # also if both are alike
        assert (first.row.answer, second.row.answer, second.row.by) == ('{"answer": "once"}',) * 2 + ("ann",)
        assert [each.id for each in await store.questions("r")] == ["r.2"]
        assert [each.id for each in await store.questions("r", answered=True)] == ["r.1", "r.2"]
        with pytest.raises(UsageError, match="there is no question"):
            await store.answer_question("r.9", "{}", "ann")
        data = '{"tool_name": "pay", "tool_call_id": "t", "args": {}, "path": "main"}'
        step = StepRow("r.1/r1/t", "tool", done=False, data=data)
        await store.write(Batch("r", attempt=1, steps=[step]))
        await store.stop_run(Batch("r", attempt=1), "suspended")
        assert [(each.id, each.kind) for each in await store.questions()] == [("r.2", "approval"), ("r.3", "in_flight")]
        assert [each.id for each in (await store.resume_run("r")).questions] == ["r.1", "r.2", "r.3"]
        await store.stop_run(Batch("r", attempt=2), "stopped")
        assert len(await store.questions()) == 2
        await store.drop_run("r")
        assert await store.questions() == ()
        with pytest.raises(UsageError, match="its run has ended"):
            await store.answer_question("r.2", "{}", "ann")

    asyncio.run(ask())


def test_two_runs_can_change_different_keys_of_a_users_state(store: ThreadStore) -> None:
    async def race() -> Any:
        await store.save_user_state("ann", {"a": 1, "b": 1}, expected=None)
        text = (await store.begin_run(run("r1", None, "ann"), ThreadConfig())).user_text
        await store.begin_run(run("r2", None, "ann"), ThreadConfig())
        await store.begin_run(run("r3", None, "ann"), ThreadConfig())
        await store.finish_run(RunEnd(Batch("r1"), "completed", 1.0, user_text=text, user_state='{"a":2,"b":1}'))
        await store.finish_run(RunEnd(Batch("r2"), "completed", 1.0, user_text=text, user_state='{"a":1,"b":1,"c":3}'))
        with pytest.raises(ThreadConflict):
            await store.finish_run(RunEnd(Batch("r3"), "completed", 1.0, user_text=text, user_state='{"a":9,"b":1}'))
        return (await store.user_state("ann"))[0]

    assert done(race()) == {"a": 2, "b": 1, "c": 3}


def test_the_journal_is_queried_by_thread_run_type_and_time(store: ThreadStore) -> None:
    async def write() -> None:
        for run_id, thread in (("r1", "t"), ("r2", "u")):
            await store.begin_run(run(run_id, thread), ThreadConfig())
            await store.write(Batch(run_id, [event(0, "tool_call", 1.0), event(1, "tool_result", 2.0)]))
            await store.write(Batch(run_id, [event(1, "tool_result", 9.0), event(2, "warning", 3.0)]))

    def found(**query: Any) -> list[tuple[str, int]]:
        return [(each.run_id, each.seq) for each in done(store.observations(Filter(**query)))]

    done(write())

    assert found(thread_id="t") == [("r1", 0), ("r1", 1), ("r1", 2)]
    assert found(run_id="r2", types=("warning", "tool_call")) == [("r2", 0), ("r2", 2)]
    assert found(run_id="r1", since=2.0) == [("r1", 1), ("r1", 2)]
    assert found(run_id="r1", since=2.0, until=3.0) == [("r1", 1)]
    assert found(user_id="ann") == []
    assert [each.seq for each in done(store.observations(Filter(run_id="r1"), limit=2))] == [1, 2]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(["add", "fork", "state", "delete"]), st.integers(0, 3)), max_size=12))
def test_a_store_behaves_like_a_dictionary(steps: list[tuple[str, int]]) -> None:
    """Compare random steps on four threads with a model of lists."""

    async def both() -> None:
        store, known = memory_store(), dict[str, tuple[list[str], Any]]()
        for number, (what, which) in enumerate(steps):
            name = f"t{which}"
            there = await store.thread(name)
            assert (there is not None) == (name in known)
            messages, state = known.get(name, ([], {}))
            if what == "add":
                known[name] = (
                    [*messages, *await ConversationManager(store).add_messages(name, [user_text(str(number))])],
                    state,
                )
            elif what == "state" and there is not None:
                await store.save_thread(replace(there, state=number), expected=there.revision)
                known[name] = messages, number
            elif what == "fork" and there is not None and f"f{number}" not in known:
                await store.save_thread(replace(there, id=f"f{number}"), expected=None)
                known[f"f{number}"] = messages, state
            elif what == "delete" and there is not None:
                await store.delete_thread(name)
                del known[name]
            for each, (ids, value) in known.items():
                record = await store.thread(each) or pytest.fail(each)
                assert [message.id for message in await store.history(record.head)] == ids
                assert (record.state, record.length) == (value, len(ids))

    asyncio.run(both())
