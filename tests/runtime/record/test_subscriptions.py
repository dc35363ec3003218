"""Subscribers of a run's events: filters, failures, unsubscribing, and text that must be streamed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from llm_do import UsageError
from tests.support.nested import three_deep
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import script


def test_a_subscriber_receives_only_events_that_match_its_filter() -> None:
    runtime = three_deep()
    finished, of_scout, of_thread, of_other = (
        heard(runtime, "run_finished"),
        heard(runtime, agent="scout"),
        heard(runtime, thread="t1"),
        heard(runtime, thread="t2"),
    )
    both = heard(runtime, "tool_call", agent="digger", thread="t1")

    asyncio.run(runtime.run("go", thread_id="t1"))
    asyncio.run(runtime.run("go"))

    assert finished.types == ["run_finished"] * 2
    assert {event.agent_name for event in of_scout.events} == {"scout"}
    assert len({event.run_id for event in of_thread.events}) == 1
    assert of_other.events == []
    assert [event.tool_name for event in both.events] == ["add", "add"]


@pytest.mark.parametrize("error", [RuntimeError("subscriber"), SystemExit(3)], ids=repr)
def test_a_subscriber_that_raises_affects_no_other(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    undisturbed = three_deep()
    alone = heard(undisturbed)
    carry_out(undisturbed)
    runtime = three_deep()

    def broken(event: Any) -> None:
        raise error

    runtime.on(None, broken)
    ear = heard(runtime)
    with caplog.at_level(logging.CRITICAL + 1, logger="llm_do.events"):
        result = carry_out(runtime)

    assert result.status == "completed"
    assert len(alone.outline) > 40
    assert sorted(ear.outline) == sorted(alone.outline)


def test_unsubscribing_takes_effect_immediately_even_within_a_run() -> None:
    runtime = three_deep()
    seen: list[Any] = []

    def first_only(event: Any) -> None:
        seen.append(event)
        stop()

    stop = runtime.on(None, first_only)
    carry_out(runtime)
    stop()

    assert [event.type for event in seen] == ["run_started"]


def test_a_model_streams_only_if_a_subscriber_receives_text() -> None:
    asked: list[str] = []

    class Recording(type(script("x"))):  # type: ignore[misc]
        async def request(self, *args: Any) -> Any:
            asked.append("whole")
            return await super().request(*args)

        def request_stream(self, *args: Any, **kwargs: Any) -> Any:
            asked.append("stream")
            return super().request_stream(*args, **kwargs)

    runtime = runtime_of([agent("main", Recording(script("hello").script))])
    heard(runtime, "text_done")
    carry_out(runtime)
    stop = runtime.on("text", lambda event: None)
    carry_out(runtime)
    stop()
    carry_out(runtime)

    assert asked == ["whole", "stream", "whole"]


def test_an_async_callback_that_would_never_be_awaited_is_rejected() -> None:
    async def hear(event: Any) -> None: ...

    with pytest.raises(UsageError, match="can't be async"):
        three_deep().on(None, hear)
