"""Conformance tests of what a store remembers, which every kind of store passes."""

from __future__ import annotations

import itertools
import sqlite3
from typing import Any

import pytest

from llm_do.errors import RunTakenError
from llm_do.runtime.record.store.store_writes import Batch, RunEnd
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads import (
    Memory,
    MemoryFilter,
    MemoryOwner,
    MemoryStep,
    Recalled,
    Remembered,
    ThreadConfig,
    ThreadStore,
    memory_store,
)
from tests.threads.thread_support import done, talk

ANN, BOB = MemoryOwner("user", user="ann"), MemoryOwner("user", user="bob")
SHARED, OTHER = MemoryOwner("project"), MemoryOwner("project", project="other")
ON_T, ANNS_T = MemoryOwner("thread", thread="t"), MemoryOwner("thread", user="ann", thread="t")


CLOCK = itertools.count()


def remembered(store: ThreadStore, owner: MemoryOwner, *texts: str, most: int = 100) -> list[Remembered]:
    """Remember texts, each later than the one before."""
    memories = [
        Memory(owner, "", text, float(now), float(now), "main", "r") for text, now in zip(texts, CLOCK, strict=False)
    ]
    return [done(store.memories.remember(each, most)) for each in memories]


def texts(recalled: Recalled) -> list[str]:
    return [each.text for each in recalled.memories]


def test_what_is_remembered_is_recalled_by_its_owner_alone(store: ThreadStore) -> None:
    owners = [ANN, BOB, SHARED, OTHER, ON_T, ANNS_T]
    for owner in owners:
        remembered(store, owner, f"of {owner.key}", "the same")

    for owner in owners:
        assert texts(done(store.memories.recall([owner], None, 9))) == ["the same", f"of {owner.key}"]
        assert texts(done(store.memories.recall([owner], "of", 9))) == [f"of {owner.key}"]
    assert len(done(store.memories.recall([ANN, SHARED, ANNS_T], None, 9)).memories) == 6
    assert done(store.memories.recall([], None, 9)) == Recalled()
    assert [each.owner for each in done(store.memories.find(MemoryFilter(user_id="ann"))).memories] == [ANNS_T] * 2 + [
        ANN
    ] * 2


def test_a_text_that_is_remembered_again_is_one_memory_and_the_latest(store: ThreadStore) -> None:
    first, other, again = remembered(store, ANN, "one", "two", "one")

    assert (first.status, other.status, again.status) == ("new", "new", "known")
    assert (again.id, again.count) == (first.id, 2)
    memory, _ = done(store.memories.recall([ANN], None, 9)).memories
    assert (memory.text, memory.updated - memory.created, memory.agent, memory.run_id) == ("one", 2.0, "main", "r")


def test_a_full_memory_takes_nothing_new_until_something_is_forgotten(store: ThreadStore) -> None:
    one, _, three = remembered(store, ANN, "one", "two", "three", most=2)

    assert (three.status, three.count) == ("full", 2)
    assert remembered(store, ANN, "two", most=2)[0].status == "known"
    assert remembered(store, BOB, "three", most=2)[0].status == "new"
    assert not done(store.memories.forget(BOB, one.id))
    assert done(store.memories.forget(ANN, one.id))
    assert not done(store.memories.forget(ANN, one.id))
    assert remembered(store, ANN, "three", most=2)[0].status == "new"
    assert texts(done(store.memories.recall([ANN], None, 1))) == ["three"]
    assert done(store.memories.recall([ANN], None, 1)).left_off == 1


SEARCHES = {
    "chair": ["A chair, and one more CHAIR.", "Her chairs are red."],
    "CHAIRS red": ["Her chairs are red.", "A chair, and one more CHAIR."],
    "resume": ["Das Résumé fehlt."],
    "res": ["Das Résumé fehlt."],
    "椅子": ["椅子は赤い。"],
    "it's 100% 'off' & (free) | !now :* \\ \"x\" NEAR(ch x)": ["100 free"],
    "table": [],
    "?!": [],
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_finds_memories_with_one_of_its_words_and_those_that_fit_best_first(
    store: ThreadStore, search: str
) -> None:
    remembered(
        store,
        ANN,
        "A chair, and one more CHAIR.",
        "Her chairs are red.",
        "Das Résumé fehlt.",
        "椅子は赤い。",
        "100 free",
    )
    remembered(store, BOB, *(f"{each} of Bob" for each in SEARCHES))

    found = done(store.memories.recall([ANN], search, 9))

    assert texts(found) == SEARCHES[search]
    best = done(store.memories.recall([ANN], search, 1))
    assert texts(best) == SEARCHES[search][:1]
    assert best.left_off == max(len(SEARCHES[search]) - 1, 0)


def test_a_search_without_fts5_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        """SQLite as some systems build it."""

        def __init__(self, _: str) -> None: ...

        def execute(self, statement: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None: ...

    store = memory_store()
    remembered(store, ANN, "A chair, and one more CHAIR.", "Her chairs are red.", "Das Résumé fehlt.")
    monkeypatch.setattr("llm_do.threads.sqlite.sqlite_database.sqlite3.connect", Without)

    assert texts(done(store.memories.recall([ANN], "red chair", 9)))[0] == "Her chairs are red."
    assert texts(done(store.memories.recall([ANN], "resume", 9))) == ["Das Résumé fehlt."]
    assert texts(done(store.memories.recall([ANN], "table", 9))) == []


def test_deleting_a_thread_deletes_what_is_remembered_for_it(store: ThreadStore) -> None:
    done(talk(store, 1))
    done(talk(store, 1, user="ann"))
    for owner in (ON_T, ANNS_T, ANN, SHARED):
        remembered(store, owner, "text")

    done(store.delete_thread("t", "ann"))

    assert {each.owner for each in done(store.memories.find(MemoryFilter())).memories} == {ON_T, ANN, SHARED}


def test_memories_are_found_by_what_a_person_knows_of_them_and_deleted(store: ThreadStore) -> None:
    (one, _) = remembered(store, ANN, "one", "two")
    remembered(store, ANNS_T, "one")
    remembered(store, SHARED, "one")

    def found(**chosen: Any) -> list[tuple[str, str]]:
        memories = done(store.memories.find(MemoryFilter(**chosen))).memories
        return sorted((each.owner.scope, each.text) for each in memories)

    assert found(id=one.id[:6], user_id="ann") == [("thread", "one"), ("user", "one")]
    assert found(scope="user") == [("user", "one"), ("user", "two")]
    assert found(thread_id="t", search="one") == [("thread", "one")]
    assert found(id="%") == []
    chosen = done(store.memories.find(MemoryFilter(user_id="ann"))).memories
    assert done(store.memories.delete(chosen)) == 3
    assert done(store.memories.delete(chosen)) == 0
    assert found() == [("project", "one")]


def test_a_step_of_a_durable_run_changes_memories_once_and_only_in_the_latest_attempt(store: ThreadStore) -> None:
    memory = Memory(ANN, "", "one", 1.0, 1.0)

    async def attempts() -> None:
        await store.begin_run(RunRecord("r", "running", "main", "t", None, 1.0), ThreadConfig(), "{}")
        step, other = MemoryStep("r", "a", 1), MemoryStep("r", "b", 1)
        first = await store.memories.remember(memory, 9, step)
        assert first.status == "new"
        assert await store.memories.forget(ANN, first.id, other)
        await store.stop_run(Batch("r", attempt=1), "stopped")
        resumed = await store.resume_run("r")
        assert resumed.steps == ()
        again, other_again = MemoryStep("r", "a", 2), MemoryStep("r", "b", 2)
        assert await store.memories.remember(memory, 9, again) == first
        assert await store.memories.forget(ANN, first.id, other_again)
        assert await store.memories.recall([ANN], None, 9) == Recalled()
        for stale in (step, MemoryStep("r", "c", 1), MemoryStep("other", "a", 1)):
            with pytest.raises(RunTakenError):
                await store.memories.remember(memory, 9, stale)
        assert await store.memories.recall([ANN], None, 9) == Recalled()
        await store.finish_run(RunEnd(Batch("r", attempt=2), "completed", 2.0))

    done(attempts())
