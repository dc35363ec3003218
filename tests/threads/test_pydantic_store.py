"""Threads as a PydanticAI `ConversationStore`: plain agents can continue our conversations."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict

from llm_do.threads import Conversations, StateManager
from tests.support.runs import agent, runtime_of
from tests.support.scripted import script
from tests.threads.thread_support import model_text, on_thread, record_of, stored_messages, user_text


def test_a_bare_agent_continues_a_thread_and_back(store: Any) -> None:
    on_thread(runtime_of([agent("main", script("ours"))], options={"store": store}), "one")
    asyncio.run(StateManager(store).set_thread_config("t", {"history_limit": 8}))

    async def bare() -> None:
        conversations = Conversations(store)
        conversation = await conversations.load("t")
        assert conversation is not None
        result = await Agent(script("theirs")).run("two", conversation=conversation)
        await conversations.save(result)

    asyncio.run(bare())
    model = script("ours again")
    result = on_thread(runtime_of([agent("main", model)], options={"store": store}), "three")[0]

    assert [message.kind for message in stored_messages(store)] == ["request", "response"] * 3
    assert result.status == "completed"
    assert len(model.asked[0].messages) == 5
    assert record_of(store).config.history_limit == 8


def test_a_save_over_another_one_is_a_conflict(store: Any) -> None:
    async def race() -> None:
        conversations = Conversations(store)
        await conversations.save(Conversation(conversation_id="t", messages=[user_text("a")]))
        one, two = await conversations.load("t"), await conversations.load("t")
        assert one is not None
        assert two is not None
        one.messages.append(model_text("b"))
        two.messages.append(model_text("c"))
        await conversations.save(one)
        with pytest.raises(ConversationConflict):
            await conversations.save(two)

    asyncio.run(race())
    assert len(stored_messages(store)) == 2


def test_scopes_are_users(store: Any) -> None:
    async def both() -> None:
        await Conversations(store, "ann").save(Conversation(conversation_id="t", messages=[user_text("a")]))
        assert await Conversations(store, "bob").load("t") is None
        assert await Conversations(store, "ann").load("t", scope="bob") is None
        assert [each.scope for each in await Conversations(store, "ann").list_conversations()] == ["ann"]
        await Conversations(store, "bob").delete("t")
        assert await Conversations(store, "ann").load("t") is not None
        await Conversations(store, "ann").delete("t")
        assert await Conversations(store, "ann").load("t") is None

    asyncio.run(both())


def test_forks_share_their_history_and_branches_round_trip(store: Any) -> None:
    async def walk() -> None:
        conversations = Conversations(store)
        await conversations.save(
            Conversation(conversation_id="t", messages=[user_text("a"), model_text("b"), user_text("c")])
        )
        fork = await conversations.fork("t", at=2, new_conversation_id="f")
        assert len(fork.messages) == 2
        loaded = await conversations.load("t")
        assert loaded is not None
        back = await conversations.branch("t", at=1, expected_revision=loaded.revision)
        assert len(back.messages) == 1
        record = await conversations.read_record("t")
        assert record is not None
        again = await conversations.branch("t", from_entry=record.branches[0], expected_revision=record.revision)
        assert len(again.messages) == 3
        await conversations.delete("t")
        kept = await conversations.load("f")
        assert kept is not None
        assert len(kept.messages) == 2

    asyncio.run(walk())
