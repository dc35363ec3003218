"""Compaction: what stays, what is removed, and that a call is never separated from its result."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart

from llm_do import tool
from llm_do.models.token_estimates import estimate_tokens
from llm_do.threads import memory_store
from llm_do.threads.compaction import CLEARED, SUMMARY, clear_results, slide
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import on_thread, prompts, stored_messages

LONG = "word " * 400


@tool(approval="allow")
def look(n: int) -> str:
    """Look."""
    return f"{n} {LONG}"


def history_of(shape: list[int]) -> list[ModelMessage]:
    """Build turns with this many parallel calls each; 0 for a plain answer."""
    made: list[ModelMessage] = []
    for turn, calls in enumerate(shape):
        made.append(ModelRequest([UserPromptPart(f"prompt {turn}")]))
        if calls:
            parts = [call("look", {"n": n}, f"{turn}-{n}") for n in range(calls)]
            made.append(ModelResponse(parts))
            made.append(ModelRequest([ToolReturnPart("look", LONG, tool_call_id=part.tool_call_id) for part in parts]))
        made.append(ModelResponse([TextPart(f"answer {turn}")]))
    return made


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(0, 14), st.integers(1, 4000), st.integers(0, 3))
def test_the_history_stays_valid_whatever_is_left_out(shape: list[int], recent: int, limit: int, cut: int) -> None:
    history = history_of(shape)
    history = history[: len(history) - cut] or history
    if history[-1].kind == "response" and history[-1].tool_calls:  # type: ignore[union-attr]
        history.pop()

    for shortened in (
        clear_results(history, recent),
        slide(history, limit, recent),
        slide(clear_results(history, recent), limit, recent),
    ):
        strict(shortened)
        assert shortened[0] == history[0]
        kept = max(recent, 1)
        assert shortened[-kept:] == history[-kept:] or len(shortened) < kept
        assert estimate_tokens(shortened) <= estimate_tokens(history)
        said = texts(shortened)
        last = max(turn for turn in range(len(shape)) if f"prompt {turn}" in texts(history))
        assert f"prompt {last}" in said
        assert last == 0 or {f"prompt {last - 1}", f"answer {last - 1}"} <= set(said)
        # A turn is there with its prompt, or not at all.
        assert all(f"prompt {text.removeprefix('answer ')}" in said for text in said if text.startswith("answer"))


def texts(history: list[ModelMessage]) -> list[str]:
    """List the prompts and answers of a history."""
    kinds = (UserPromptPart, TextPart)
    return [str(part.content) for message in history for part in message.parts if isinstance(part, kinds)]


def test_a_long_turn_loses_its_older_calls_but_never_its_prompt() -> None:
    history = history_of([0, 0, 1])[:-1]
    for _ in range(9):
        history += history_of([1])[1:-1]

    shortened = slide(history, 10, 2)

    assert texts(shortened) == ["prompt 0", "prompt 1", "answer 1", "prompt 2"]
    assert len(shortened) == 6
    strict(shortened)


def test_clearing_keeps_every_call_with_its_cleared_result() -> None:
    history = history_of([2, 1, 0])

    cleared = clear_results(history, 3)

    assert [text for _, _, text in results_of(cleared)] == [CLEARED, CLEARED, CLEARED]
    assert len(cleared) == len(history)
    assert results_of(history)[0][2] == LONG


def test_a_window_drops_the_oldest_messages_first_and_no_more_than_necessary() -> None:
    history = history_of([0, 1, 0, 0])

    shortened = slide(history, estimate_tokens(history) - 1, 2)

    assert shortened == [history[0], *history[2:]]


def compacting(model: Any, store: Any = None, **compaction: Any) -> Any:
    options = {"store": store} if store is not None else {}
    return runtime_of([agent("main", model, tools=[look], compaction=compaction)], options=options)


def test_strategies_are_tried_in_order_until_it_fits() -> None:
    model = script(call("look", n=1), call("look", n=2), call("look", n=3), "done")

    result = carry_out(
        compacting(model, max_tokens=1500, strategies=["tool_result_clearing", "sliding_window"], preserve_recent=2)
    )

    sent = model.asked[-1].messages
    strict(sent)
    assert [text == CLEARED for _, _, text in results_of(sent)] == [True, True, False]
    assert all(LONG in text for _, _, text in results_of(result.messages))


def test_a_history_that_fits_is_sent_as_it_is() -> None:
    model = script(call("look", n=1), "done")

    carry_out(compacting(model, max_tokens=100_000, strategies=["tool_result_clearing"], preserve_recent=1))

    assert LONG in results_of(model.asked[-1].messages)[0][2]


def test_a_summary_replaces_older_messages_and_is_made_once() -> None:
    from llm_do import register_model_factory

    summariser = script("They looked twice.")
    register_model_factory("summariser", lambda _: summariser)
    answers = iter([*(call("look", n=n) for n in range(4)), "done"])
    model = script(lambda messages, info: next(answers))
    runtime = compacting(
        model, max_tokens=1800, strategies=["summarization"], preserve_recent=2, summary_model="summariser:x"
    )

    result = carry_out(runtime, "the task")

    assert result.status == "completed"
    sent = model.asked[-1].messages
    strict(sent)
    prompts = [part.content for message in sent for part in message.parts if isinstance(part, UserPromptPart)]
    assert prompts == ["the task", f"{SUMMARY}\nThey looked twice."]
    assert "0 word" in str(summariser.asked[0].prompt)
    assert 1 <= len(summariser.asked) <= 2
    assert result.usage.requests == 5 + len(summariser.asked)
    assert len(results_of(result.messages)) == 4


def test_a_summarising_script_is_found_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "summary.yaml").write_text("- text: They looked.", encoding="utf-8")
    model = script(*(call("look", n=n) for n in range(3)), "done")
    compaction = {"max_tokens": 900, "strategies": ["summarization"], "preserve_recent": 2}
    spec = agent("main", model, tools=[look], compaction={**compaction, "summary_model": "script:summary.yaml"})

    carry_out(runtime_of([spec], root=tmp_path))

    assert f"{SUMMARY}\nThey looked." in prompts(model.asked[-1].messages)


def test_a_failed_summary_falls_back_to_clearing_and_never_ends_the_run() -> None:
    from llm_do import register_model_factory

    register_model_factory("brokensummary", lambda _: script(ValueError("no")))
    model = script(*(call("look", n=n) for n in range(3)), "done")
    runtime = compacting(
        model, max_tokens=900, strategies=["summarization"], preserve_recent=2, summary_model="brokensummary:x"
    )
    ear = heard(runtime, "warning")

    result = carry_out(runtime)

    assert result.status == "completed"
    assert [text == CLEARED for _, _, text in results_of(model.asked[-1].messages)] == [True, True, False]
    assert "could not be summarised" in ear.events[0].message


def test_the_store_keeps_what_is_not_sent() -> None:
    store = memory_store()
    model = script(call("look", n=1), "done")

    on_thread(compacting(model, store, max_tokens=100, strategies=["sliding_window"], preserve_recent=1), *"abc")

    assert len(stored_messages(store)) == 12
    assert all(LONG in text for _, _, text in results_of(stored_messages(store)))
    # The first prompt, the last turn without its calls, and the current one.
    assert texts(model.asked[-1].messages) == ["a", "b", "done", "c"]
    assert len(model.asked[-1].messages) == 6


@pytest.mark.parametrize("strategies", [["tool_result_clearing"], ["sliding_window"], []])
def test_a_thread_can_configure_its_compaction(strategies: list[str]) -> None:
    from llm_do.threads import StateManager

    store = memory_store()
    asyncio.run(
        StateManager(store).set_thread_config(
            "t", {"compaction": {"max_tokens": 60, "strategies": strategies, "preserve_recent": 1}}
        )
    )
    model = script(call("look", n=1), "done")

    on_thread(runtime_of([agent("main", model, tools=[look])], options={"store": store}), *"ab")

    assert estimate_tokens(model.asked[-2].messages) < 200
