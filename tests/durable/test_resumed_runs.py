"""Durable runs that are stopped and resumed: they end as if nothing had happened, and nothing is done twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse

from llm_do import RunResult
from llm_do.errors import SuspendedError
from llm_do.runtime.record.results import ExecutionContext, messages_data
from llm_do.runtime.record.store.store_writes import Batch
from llm_do.runtime.record.store.stored_questions import KeptAnswer
from llm_do.runtime.record.stored_records import Filter
from llm_do.runtime.session import execution
from llm_do.runtime.steps.stored_results import result_from_text, result_text
from llm_do.threads import SqliteStore
from tests.durable.scenarios import SCENARIOS, effects_of, runtime_for
from tests.support.history import results_of
from tests.support.runs import agent, heard, runtime_of
from tests.support.scripted import script

FAILING = ("budget", "cancelled")
"""Scenarios that end with an error; what was in flight then depends on the time."""

FAILING_ONCE = ("retries", "rate_limit")
"""Scenarios whose requests fail once, which may have been lost."""


class StoppingStore(SqliteStore):
    """A store that interrupts a run at one of its batches, and loses all that follows, as a kill does."""

    def __init__(self, path: Path, number: int, *, after: bool) -> None:
        super().__init__(path)
        self.number, self.after = number, after
        self.written = 0
        self.lost = False
        self.stop: Any = None

    async def write(self, batch: Batch) -> None:
        self.written += 1
        if self.written == self.number and not self.after:
            self.lost = True
        if not self.lost:
            await super().write(batch)
        if self.written == self.number:
            self.stop()
            self.lost = True
            for _ in range(5):  # until it has stopped: nothing follows from what is lost
                await asyncio.sleep(0)

    async def answer_question(self, question_id: str, answer: str, by: str) -> KeptAnswer:
        if self.lost:
            await asyncio.Event().wait()
        return await super().answer_question(question_id, answer, by)

    async def stop_run(self, batch: Batch, status: str) -> None:
        await super().stop_run(Batch(batch.run_id, attempt=batch.attempt) if self.lost else batch, status)


def store_path(root: Path) -> Path:
    (root / ".llm-do").mkdir(exist_ok=True)
    return root / ".llm-do" / "state.db"


async def run_until(name: str, root: Path, number: int, *, after: bool, **options: Any) -> RunResult:
    """Run a scenario until a batch, and stop there."""
    store = StoppingStore(store_path(root), number, after=after)
    runtime = runtime_for(name, root, store=store)
    store.stop = runtime.interrupt
    try:
        return await runtime.execute("go", run_id="r", **options)
    finally:
        await runtime.aclose()
        await store.aclose()


async def resumed(name: str, root: Path, **options: Any) -> tuple[RunResult, list[Any]]:
    """Continue a scenario's run, with the events that were heard."""
    store = SqliteStore(store_path(root))
    runtime = runtime_for(name, root, store=store)
    ear = heard(runtime)
    try:
        return await runtime.execute_again("r", in_flight="repeat", **options), ear.events
    finally:
        await runtime.aclose()
        await store.aclose()


async def journal(root: Path) -> list[Any]:
    """The kept events of the run."""
    store = SqliteStore(store_path(root))
    try:
        return [each.data for each in await store.observations(Filter(run_id="r"))]
    finally:
        await store.aclose()


async def thread_of(root: Path) -> Any:
    """The thread's history and state, if the run has one."""
    store = SqliteStore(store_path(root))
    try:
        thread = await store.thread("t")
        if thread is None:
            return None
        history = messages_data([each.message for each in await store.history(thread.head)])
        return without_times([history, thread.state, dict(thread.toolkits)])
    finally:
        await store.aclose()


def facts(result: RunResult) -> dict[str, Any]:
    """What a result says, without times; the failure of `retries` happens once, and may have been lost."""
    data = json.loads(json.dumps(result.to_dict()))
    for records in ("calls", "approvals"):
        data[records] = sorted(data[records], key=lambda each: each["call_id"])
    return without_times(data)


def without_times(data: Any) -> Any:
    if isinstance(data, dict):
        # An exception that is raised again has no traceback, and so no place in the code.
        skipped = (
            "file",
            "line",
            "timestamp",
            "duration",
            "waited",
            "time",
            "seq",
            "attempt",
            "conversation_id",
            "run_id",
        )
        return {name: without_times(value) for name, value in data.items() if name not in skipped}
    return [without_times(each) for each in data] if isinstance(data, list) else data


def kinds(events: list[Any]) -> Counter[tuple[str, str]]:
    return Counter((each["type"], each["path"]) for each in events if each["type"] != "run_resumed")


async def whole(name: str, root: Path, budget: Any = None, **options: Any) -> tuple[RunResult, list[Any], int]:
    """A run that isn't stopped, its journal, and the number of its batches."""
    store = StoppingStore(store_path(root), 0, after=True)
    runtime = runtime_for(name, root, store=store, budget=budget)
    try:
        result = await runtime.execute("go", run_id="r", **options)
    finally:
        await runtime.aclose()
        await store.aclose()
    return result, await journal(root), store.written


async def check_stops(name: str, root: Path, *, everywhere: bool, **options: Any) -> None:
    """Stop at each batch, or at one in the middle, resume, and compare with a run that isn't stopped."""
    first = root / "whole"
    first.mkdir()
    expected, told, batches = await whole(name, first, **options)
    assert (expected.error is None) == (name not in FAILING), expected.error
    stops = 0
    for number in range(1, batches + 1) if everywhere else [(batches + 1) // 2]:
        for after in (False, True):
            place = root / f"{number}-{after}"
            place.mkdir()
            stopped = await run_until(name, place, number, after=after, **options)
            if stopped.status != "interrupted":
                assert stopped.status == expected.status, stopped.error
                continue
            stops += 1
            result, _ = await resumed(name, place)
            where = f"{name}, batch {number}, after={after}"
            assert type(result.error) is type(expected.error), f"{where}: {result.error}"
            same = facts(expected) | ({"usage": result.usage.to_dict()} if name in FAILING_ONCE else {})
            assert name in FAILING or facts(result) == same, where
            missing = set(effects_of(first)) - set(effects_of(place))
            assert not missing or name == "budget", where  # what was in flight counts against its budget
            assert set(effects_of(place)) <= set(effects_of(first)), where
            kept = await journal(place)
            assert [each["seq"] for each in kept] == list(range(len(kept))), where
            assert name in (*FAILING_ONCE, *FAILING) or kinds(kept) == kinds(told), where
            assert name == "budget" or await thread_of(place) == await thread_of(first), where
    assert stops


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    asyncio.run(check_stops(name, tmp_path, everywhere=False))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("thread", [None, "t"])
def test_a_run_may_be_stopped_at_every_batch(name: str, thread: str | None, tmp_path: Path) -> None:
    asyncio.run(check_stops(name, tmp_path, everywhere=True, thread_id=thread))


def test_a_run_that_has_ended_returns_its_result_again(tmp_path: Path) -> None:
    async def twice() -> tuple[RunResult, RunResult, list[Any]]:
        expected, _, _ = await whole("nested", tmp_path)
        store = SqliteStore(store_path(tmp_path))
        runtime = runtime_for("nested", tmp_path, store=store)
        ear = heard(runtime)
        again = await runtime.execute("other input", run_id="r")
        await store.aclose()
        return expected, again, ear.events

    expected, again, events = asyncio.run(twice())
    assert facts(again) == facts(expected)
    assert again.execution_context == expected.execution_context
    assert list(again.execution_context.messages) == again.messages
    assert events == []
    assert effects_of(tmp_path).count("m1") == 1


def test_a_result_is_kept_with_each_of_its_messages_once(tmp_path: Path) -> None:
    result, _, _ = asyncio.run(whole("nested", tmp_path))
    histories = [result.messages, *(call.messages for call in result.calls)]

    text = result_text(result)

    assert result.messages
    assert text.count('"kind": "response"') == sum(
        isinstance(each, ModelResponse) for some in histories for each in some
    )


@pytest.mark.parametrize("kept", [0, 1])
def test_a_result_whose_conversation_goes_on_otherwise_is_kept_with_both(kept: int, tmp_path: Path) -> None:
    result, _, _ = asyncio.run(whole("nested", tmp_path))
    context = ExecutionContext(tuple(result.messages[:kept]), active_agent="other")

    again = result_from_text(result_text(replace(result, execution_context=context)))

    assert again.execution_context == context
    assert messages_data(again.messages) == messages_data(result.messages)


def test_events_are_heard_once_they_are_kept_and_each_once(tmp_path: Path) -> None:
    async def stop_and_resume() -> list[Any]:
        await run_until("nested", tmp_path, 4, after=True)
        return (await resumed("nested", tmp_path))[1]

    events = asyncio.run(stop_and_resume())
    assert events[0].type == "run_resumed"
    assert (events[0].attempt, events[-1].type) == (2, "run_finished")
    assert len({event.seq for event in events}) == len(events)


class Reader:
    """Someone who reads streamed text: what is incomplete when a run is resumed doesn't count."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[str]] = {}
        self.texts: list[tuple[str, str]] = []
        self.resumed = self.kept = 0

    def hear(self, event: Any) -> None:
        if event.type == "text":
            assert event.seq <= self.kept
            self.pieces.setdefault(event.call_id, []).append(event.text)
            return
        assert event.seq == self.kept + 1 or (event.seq, self.kept) == (0, 0), event
        self.kept = event.seq
        if event.type == "run_resumed":
            self.pieces.clear()
            self.resumed += 1
        elif event.type == "text_done":
            streamed = self.pieces.pop(event.call_id, None)
            assert streamed is None or "".join(streamed) == event.text
            self.texts.append((event.path, event.text))


async def read_stopped(root: Path, number: int, *, after: bool) -> Reader:
    """Read a run that is stopped at a batch and resumed."""
    reader = Reader()
    store = StoppingStore(store_path(root), number, after=after)
    runtime = runtime_for("nested", root, store=store)
    store.stop = runtime.interrupt
    runtime.on(None, lambda event: None if store.lost else reader.hear(event))
    result = await runtime.execute("go", run_id="r")
    await runtime.aclose()
    await store.aclose()
    if result.status == "completed":
        return reader
    store = SqliteStore(store_path(root))
    # What this reader hasn't heard is in the journal.
    reader.kept = len(await store.observations(Filter(run_id="r"))) - 1
    runtime = runtime_for("nested", root, store=store)
    runtime.on(None, reader.hear)
    assert (await runtime.execute_again("r", in_flight="repeat")).status == "completed"
    await runtime.aclose()
    await store.aclose()
    return reader


@pytest.mark.parametrize(
    ("number", "after"),
    [pytest.param(n, a, marks=() if n == 9 else pytest.mark.slow) for n in range(2, 17) for a in (False, True)],
)
def test_streamed_text_is_void_once_the_run_is_resumed(number: int, after: bool, tmp_path: Path) -> None:
    reader = asyncio.run(read_stopped(tmp_path, number, after=after))
    assert reader.resumed <= 1
    assert reader.pieces == {}
    told = [(each["path"], each["text"]) for each in asyncio.run(journal(tmp_path)) if each["type"] == "text_done"]
    assert sorted(told) == [("main", "answer"), ("main/helper", "helped"), ("main/other", "helped too")]
    assert set(reader.texts) <= set(told)


def test_a_call_that_was_running_is_not_repeated_unless_a_person_says_so(tmp_path: Path) -> None:
    for number in range(2, 20):
        folder = tmp_path / str(number)
        folder.mkdir()

        async def at(number: int = number, folder: Path = folder) -> RunResult | None:
            await run_until("gates", folder, number, after=True)
            store = SqliteStore(store_path(folder))
            runtime = runtime_for("gates", folder, store=store)
            result = await runtime.execute_again("r")
            if result.status != "suspended":
                await store.aclose()
                return None
            before = effects_of(folder)
            assert isinstance(result.error, SuspendedError)
            assert [each.kind for each in result.error.questions] == ["in_flight"]
            ended = await runtime.execute_again("r", in_flight="fail")
            await store.aclose()
            assert effects_of(folder)[: len(before)] == before
            return ended

        ended = asyncio.run(at())
        if ended is not None:
            assert ended.error is None
            texts = [text for _, _, text in results_of(ended.messages)]
            assert any("whether it had an effect isn't known" in text for text in texts), texts
            return
    raise AssertionError("no tool was running at any of these places")


def test_a_cancellation_while_a_large_result_is_written_is_raised_once_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled() -> list[str]:
        loop = asyncio.get_running_loop()

        def cancel_meanwhile(result: RunResult) -> str:
            loop.call_soon_threadsafe(task.cancel)
            time.sleep(0.05)
            return result_text(result)

        monkeypatch.setattr(execution, "result_text", cancel_meanwhile)
        task = asyncio.ensure_future(runtime.execute("go"))
        with pytest.raises(asyncio.CancelledError):
            await task
        await runtime.aclose()
        return [run.status for run in await SqliteStore(store_path(tmp_path)).runs()]

    runtime = runtime_of([agent("main", script("x" * 2_000_000))], root=tmp_path, options={"durable": True})
    ear = heard(runtime)
    assert asyncio.run(cancelled()) == ["completed"]
    assert ear.types[-1] == "run_finished"


def test_a_run_that_continues_after_the_clock_was_set_back_makes_no_event_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(run_until("nested", tmp_path, 4, after=True))
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now - 86_400)
    asyncio.run(resumed("nested", tmp_path))
    times = [each["time"] for each in asyncio.run(journal(tmp_path))]
    assert times == sorted(times)
