"""Empty ids are refused for threads and users."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest

from llm_do import UsageError
from llm_do.runtime.record.stored_records import ThreadRecord
from llm_do.threads import ConversationManager, Conversations, SqliteStore, StateManager
from llm_do.threads.managers.transfer import export_thread, import_lines
from tests.support.runs import agent, runtime_of
from tests.support.scripted import script
from tests.threads.thread_support import done, runtime_on

NO_IDS: list[Any] = ["", " ", "\n", 5]


@pytest.mark.sample(12)
@pytest.mark.parametrize("what", ["thread", "user"])
@pytest.mark.parametrize("bad", NO_IDS, ids=repr)
@pytest.mark.parametrize("way", ["run", "run_sync", "stream"])
def test_no_run_starts_with_an_empty_id(store: SqliteStore, way: str, bad: Any, what: str) -> None:
    model = script("done")
    runtime = runtime_on(store, agent("main", model))
    ids: Any = {f"{what}_id": bad}

    async def streamed() -> None:
        async for _ in runtime.stream("x", **ids):
            pass

    ways = {
        "run": lambda: asyncio.run(runtime.run("x", **ids)),
        "run_sync": lambda: runtime.run_sync("x", **ids),
        "stream": lambda: asyncio.run(streamed()),
    }
    with pytest.raises(UsageError, match=rf"the {what}'s id (is empty|must be a string)") as raised:
        ways[way]()
    assert raised.value.hint
    assert model.asked == []
    assert done(store.threads(every_user=True)) == []


def test_an_unrecorded_run_rejects_an_empty_id_too() -> None:
    with pytest.raises(UsageError, match="the user's id is empty"):
        runtime_of([agent("main", "test")]).run_sync("x", user_id="")


@pytest.mark.parametrize("bad", NO_IDS, ids=repr)
def test_no_manager_creates_a_thread_with_an_empty_id(store: SqliteStore, bad: Any) -> None:
    for work in (
        StateManager(store).set_thread_config(bad, {"model": "test"}),
        StateManager(store).load_thread_context(bad),
        ConversationManager(store).add_messages(bad, [ModelRequest.user_text_prompt("x")]),
        StateManager(store, bad).set_thread_config("t", {"model": "test"}),
        ConversationManager(store, bad).add_messages("t", [ModelRequest.user_text_prompt("x")]),
    ):
        with pytest.raises(UsageError, match=r"id (is empty|must be a string)"):
            done(work)
    assert done(store.threads(every_user=True)) == []


def test_an_existing_thread_with_an_empty_id_can_be_read_and_deleted(store: SqliteStore) -> None:
    async def work() -> tuple[Any, bool]:
        await store.save_thread(ThreadRecord("", state={"n": 1}), expected=None)
        context = await StateManager(store).load_thread_context("")
        return context.state, await store.delete_thread("")

    assert done(work()) == ({"n": 1}, True)


def test_no_thread_is_forked_to_a_blank_id(store: SqliteStore) -> None:
    async def work() -> None:
        await ConversationManager(store).add_messages("t", [ModelRequest.user_text_prompt("x")])
        await Conversations(store).fork("t", new_conversation_id=" ")

    with pytest.raises(UsageError, match="the thread's id is empty"):
        done(work())
    assert [each.id for each in done(store.threads())] == ["t"]


@pytest.mark.parametrize("bad", ["", " "], ids=repr)
def test_no_thread_is_imported_with_an_empty_id(store: SqliteStore, bad: str) -> None:
    async def lines() -> list[str]:
        return await export_thread(store, ThreadRecord("t"))

    exported = done(lines())
    head = json.loads(exported[0])
    for given, name in ((exported, bad), ([json.dumps({**head, "id": bad})], None)):
        with pytest.raises(UsageError, match="the thread has no id"):
            done(import_lines(store, given, None, name=name, source="t.jsonl"))
    with pytest.raises(UsageError, match="the user's id is empty"):
        done(import_lines(store, exported, bad, name=None, source="t.jsonl"))
    assert done(store.threads(every_user=True)) == []
