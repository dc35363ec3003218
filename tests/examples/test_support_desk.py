"""The support desk: one thread per customer, its memory and its permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pydantic_ai.messages import ToolReturnPart

from llm_do import Project, RunResult, Runtime
from llm_do.threads import StateManager, open_store
from llm_do.threads.compaction import CLEARED
from tests.support.history import results_of, strict

Load = Callable[[str], Project]
QUESTIONS = ("Where is order A-1001?", "Please speak German.", "It came damaged: 50 euros back?")


def turn(project: Project, text: str, user: str = "ann") -> RunResult:
    """Run one turn in a separate session."""

    async def once() -> RunResult:
        runtime = Runtime(project)
        try:
            return await runtime.run(text, thread_id="desk-7", user_id=user)
        finally:
            await runtime.aclose()

    return asyncio.run(once())


def test_the_agent_remembers_and_refunds_only_where_that_is_enabled(example: Load) -> None:
    project = example("support_desk")
    store = open_store(project)

    answers = [turn(project, question).output for question in QUESTIONS]
    assert answers[2] == "I may not refund on this desk."

    tools = ["find_order", "remember_preference", "refund"]
    asyncio.run(StateManager(store, "ann").set_thread_config("desk-7", {"enabled_tools": tools}))
    last = turn(project, "Try again.")

    assert last.output == "Done: refunded 50.00 euros of order A-1001."
    thread = asyncio.run(store.thread("desk-7", "ann"))
    assert thread is not None
    assert thread.state == {"order": "A-1001", "refunds": [{"number": "A-1001", "amount": 50.0}]}
    assert asyncio.run(store.user_state("ann"))[0] == {"preferences": {"language": "German"}}
    assert asyncio.run(store.thread("desk-7")) is None


def test_preferences_are_in_the_instructions_and_old_results_are_sent_cleared_but_kept(example: Load) -> None:
    project = example("support_desk")
    for question in QUESTIONS:
        last = turn(project, question)

    instructions = last.messages[-2].instructions or ""  # type: ignore[union-attr]
    assert "The customer prefers: language German" in instructions
    assert "Berlin" in instructions
    strict(last.messages)
    kept = [part for message in last.messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert "seen in depot" in kept[0].model_response_str()
    assert CLEARED not in str(results_of(last.messages))
    # The request is smaller than the one stored result.
    sent = last.messages[-1].usage.input_tokens  # type: ignore[union-attr]
    assert sent < len(kept[0].model_response_str()) // 4
