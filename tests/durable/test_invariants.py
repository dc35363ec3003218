"""The invariants of durable runs that no other test is about, and the list of those that have one."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.function import FunctionModel

from llm_do import RunResult, Runtime
from llm_do.errors import RunInterruptedError, RunTakenError, StoreError, UsageError
from llm_do.runtime.record.store.store_writes import Batch, RunEnd
from llm_do.runtime.session.entries import FunctionEntry
from llm_do.threads import SqliteStore, batch_writer
from tests.durable.scenarios import effects_of, runtime_for
from tests.durable.test_resumed_runs import StoppingStore, journal, resumed, store_path
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script

PAGE = Path(__file__).parents[2] / "docs" / "design" / "durable-runs.md"

ENDINGS = {"call_finished", "run_finished", "run_failed", "run_cancelled"}


def test_each_invariant_has_a_test() -> None:
    section = PAGE.read_text().partition("## Invariants")[2].partition("\n## ")[0]
    invariants = re.findall(r"^\d+\. .*(?:\n   .*)*", section, re.MULTILINE)
    assert len(invariants) == 11
    known = {
        name
        for file in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    for invariant in invariants:
        named = set(re.findall(r"`(test_\w+)`", invariant))
        assert named, f"no test of {invariant}"
        assert named <= known, named - known


class WatchedStore(SqliteStore):
    """A store that remembers its transactions, and which events and steps are on disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.watched: list[Batch] = []

    async def write(self, batch: Batch) -> None:
        await super().write(batch)
        self.watched.append(batch)

    async def finish_run(self, ending: RunEnd) -> None:
        await super().finish_run(ending)
        self.watched.append(ending.batch)

    @property
    def last_seq(self) -> int:
        return max((event.seq for batch in self.watched for event in batch.events), default=-1)


def _tool_steps(batches: list[Batch]) -> set[tuple[str, str]]:
    """The calls of tools that have ended in these transactions: the call that made them, and their own id."""
    ended = [step.key.split("/") for batch in batches for step in batch.steps if step.done and step.kind == "tool"]
    return {(call_id, tool_call_id) for call_id, _, tool_call_id in ended}


@pytest.mark.parametrize("name", ["nested", "gates"])
def test_what_a_step_came_to_is_kept_with_its_events_and_states_before_anyone_hears_of_it(
    name: str, tmp_path: Path
) -> None:
    heard: list[str] = []

    async def go() -> list[Batch]:
        store = WatchedStore(store_path(tmp_path))
        runtime = runtime_for(name, tmp_path, store=store)

        def hear(event: Any) -> None:
            heard.append(event.type)
            assert event.type == "text" or event.seq <= store.last_seq, event

        runtime.on(None, hear)
        try:
            assert (await runtime.execute("go", run_id="r", thread_id="t")).status == "completed"
        finally:
            await runtime.aclose()
            await store.aclose()
        return store.watched

    batches = asyncio.run(go())
    assert "tool_result" in heard
    steps = _tool_steps(batches)
    done = 0
    for batch in batches:
        events = [{"type": event.type, **json.loads(event.data)} for event in batch.events]
        for step in batch.steps:
            if not step.done or step.kind not in ("tool", "request"):
                continue
            done += 1
            call_id, _, rest = step.key.partition("/")
            kind = "tool_result" if step.kind == "tool" else "usage"
            own = [event for event in events if event["type"] == kind and event["call_id"] == call_id]
            assert own, (step.key, events)
            if step.kind == "tool":
                assert rest.partition("/")[2] in {event["tool_call_id"] for event in own}
        for event in events:  # and nothing of a step without the step
            if event["type"] == "tool_result" and (event["call_id"], event["tool_call_id"]) in steps:
                assert (event["call_id"], event["tool_call_id"]) in _tool_steps([batch]), event
            if event["type"] == "state_changed":
                changed = [
                    json.loads(step.data)["outcome"]["changes"]
                    for step in batch.steps
                    if step.done and step.kind == "tool"
                ]
                assert any(changed), event
    assert done >= 5


def test_a_suspended_attempt_has_nothing_in_flight_and_asks_what_it_waits_for(tmp_path: Path) -> None:
    async def go() -> None:
        store = SqliteStore(store_path(tmp_path))
        runtime = runtime_for("approvals", tmp_path, store=store, approvals="prompt", ask_user=None)
        assert (await runtime.execute("go", run_id="r")).status == "suspended"
        asked = await runtime.pending("r")
        await runtime.aclose()
        with closing(sqlite3.connect(store_path(tmp_path))) as db:
            assert db.execute("SELECT count(*) FROM steps WHERE NOT done").fetchone() == (0,)
            assert db.execute("SELECT status FROM runs").fetchone() == ("suspended",)
        await store.aclose()
        # Calls that are made side by side.
        assert sorted(question.call for question in asked) == ["clerk(input=x)", "pay(item=m1)"]

    asyncio.run(go())
    assert effects_of(tmp_path) == []
    told = asyncio.run(journal(tmp_path))
    assert not ENDINGS & {event["type"] for event in told if event["path"] == "main"}
    assert not [event for event in told if event["type"] == "tool_result"]


class FailingStore(StoppingStore):
    """A store that can't be written from one of its batches on."""

    async def write(self, batch: Batch) -> None:
        self.written += 1
        if self.written >= self.number:
            raise StoreError("the disk is full")
        await SqliteStore.write(self, batch)


class TakenStore(StoppingStore):
    """A store in which another process takes the run over after one of its batches."""

    async def write(self, batch: Batch) -> None:
        await SqliteStore.write(self, batch)
        self.written += 1
        if self.written == self.number:
            assert self.path is not None
            with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
                db.execute("UPDATE runs SET attempt = attempt + 1")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param(StoppingStore, RunInterruptedError, id="a signal"),
        pytest.param(FailingStore, StoreError, id="a failed commit"),
        pytest.param(TakenStore, RunTakenError, id="a lost fence"),
    ],
)
def test_an_attempt_that_stops_writes_no_ending(
    kind: type[StoppingStore], error: type[Exception], tmp_path: Path
) -> None:
    for number in (2, 4, 6):
        root = tmp_path / str(number)
        root.mkdir()

        async def go(root: Path = root, number: int = number) -> None:
            store = kind(store_path(root), number, after=True)
            runtime = runtime_for("nested", root, store=store)
            store.stop = runtime.interrupt
            result = await runtime.execute("go", run_id="r")
            assert type(result.error) is error, result.error
            await runtime.aclose()
            await store.aclose()

        asyncio.run(go())
        told = asyncio.run(journal(root))
        assert not [event for event in told if event["type"] in ENDINGS and event["path"] == "main"]
        with closing(sqlite3.connect(store_path(root), isolation_level=None)) as db:
            assert db.execute("SELECT status FROM runs").fetchone()[0] in ("running", "stopped")
            db.execute("UPDATE runs SET status = 'stopped'")  # whoever took the attempt over has stopped, too
        result, _ = asyncio.run(resumed("nested", root))
        assert result.status == "completed", result.error
        assert asyncio.run(journal(root))[-1]["type"] == "run_finished"


@pytest.mark.parametrize("returns", [None, dict[str, str]])
def test_a_function_that_was_running_is_asked_about(returns: Any, tmp_path: Path) -> None:
    file = tmp_path / "effects"
    runtimes: list[Runtime] = []

    async def pay(item: str, amount: int) -> Any:
        with file.open("a") as stream:
            stream.write(f"{item}\n")
        if file.read_text().count(item) == 1:
            asyncio.get_running_loop().call_soon(runtimes[-1].interrupt)
            await asyncio.sleep(30)
        return None if returns is None else {"paid": item}

    pay.__annotations__["return"] = returns

    async def main(input: str, ctx: Any) -> str:
        return repr(await ctx.call("pay", {"item": input, "amount": 7}))

    async def go(item: str, answer: str) -> Any:
        store = SqliteStore(store_path(tmp_path))
        project = project_of([], main, root=tmp_path, tools={"pay": pay})

        def runtime() -> Runtime:
            runtimes.append(Runtime(project, durable=True, store=store))
            return runtimes[-1]

        assert (await runtime().execute(item, run_id=item)).status == "interrupted"
        (question,) = await runtime().pending(item)
        assert (question.kind, question.call) == ("in_flight", f"pay(item={item}, amount=7)")
        # What a function returned can't be made up; one that returns nothing may have been carried out.
        assert question.answers == (("repeat", "done", "fail") if returns is None else ("repeat", "fail"))
        if answer == "lost":
            return await runtime().execute_again(item, in_flight="done")
        await runtime().answer(question.id, answer)
        ended = await runtime().execute_again(item)
        assert (await runtime().execute_again(item)).output == ended.output
        return ended

    assert asyncio.run(go("a", "repeat")).output == ("None" if returns is None else "{'paid': 'a'}")
    assert "whether it had an effect isn't known" in str(asyncio.run(go("b", "fail")).error)
    if returns is None:
        assert asyncio.run(go("c", "done")).output == "None"
    else:
        with pytest.raises(UsageError, match=r"can't be answered with 'done'.*\(repeat, fail\)"):
            asyncio.run(go("c", "done"))
        assert "what it returned is lost" in str(asyncio.run(go("d", "lost")).error)
    assert file.read_text().split() == ["a", "a", "b", "c", *(["d"] if returns else [])]


class SlowStore(SqliteStore):
    """A store on a slow disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes = asyncio.Event()

    async def write(self, batch: Batch) -> None:
        self.writes.set()
        await asyncio.sleep(0.05)
        await super().write(batch)


def test_a_call_that_outlives_the_code_that_made_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    calls: list[asyncio.Task[Any]] = []

    async def go() -> None:
        store = SlowStore(store_path(tmp_path))

        async def main(input: str, ctx: Any) -> str:
            calls.append(asyncio.create_task(ctx.call("helper", "one")))
            await store.writes.wait()
            calls.append(asyncio.create_task(ctx.call("helper", "two")))
            for _ in range(100):  # until it waits for the batch after the one that is being written
                await asyncio.sleep(0)
            return "done"

        project = project_of([agent("main", "test"), agent("helper", script("hi"))], root=tmp_path)
        runtime = Runtime(project, store=store, durable=True)
        result = await runtime.execute("go", entry=FunctionEntry(main, "main"))
        assert (result.status, result.output) == ("completed", "done")
        assert [each.status for each in result.calls] == ["interrupted", "interrupted"]
        assert all(call.cancelled() for call in calls)
        await runtime.aclose()
        await store.aclose()

    asyncio.run(go())


def test_what_happens_in_a_row_is_written_together(tmp_path: Path) -> None:
    async def go() -> list[Batch]:
        store = WatchedStore(store_path(tmp_path))
        runtime = Runtime(project_of([agent("main", script("hi"))], root=tmp_path), durable=True, store=store)
        await runtime.run("go")
        await runtime.aclose()
        await store.aclose()
        return store.watched

    before, after = asyncio.run(go())
    assert [event.type for event in before.events] == ["run_started", "call_started"]
    assert [event.type for event in after.events] == [
        "model_request",
        "usage",
        "text_done",
        "call_finished",
        "run_finished",
    ]


def test_events_are_heard_though_nothing_follows_them_and_text_after_what_led_to_it(tmp_path: Path) -> None:
    heard: list[str] = []
    told = asyncio.Event()

    async def answer(messages: list[Any], info: Any) -> AsyncIterator[str]:
        for word in ("some ", "more ", "text"):
            yield word
            await asyncio.sleep(0.06)

    async def main(input: str, ctx: Any) -> str:
        await asyncio.wait_for(told.wait(), 10)
        return await ctx.call("helper", input)

    async def go() -> None:
        store = SlowStore(store_path(tmp_path))
        project = project_of([agent("helper", FunctionModel(stream_function=answer))], main, root=tmp_path)
        runtime = Runtime(project, durable=True, store=store)
        async for event in runtime.stream("go"):
            heard.append(event.type)
            if event.type == "call_started":
                told.set()
        await runtime.aclose()
        await store.aclose()

    asyncio.run(go())
    assert heard[:6] == ["run_started", "call_started", "call_started", "model_request", "text", "text"], heard
    assert heard[-1] == "run_finished"


def test_what_a_tool_has_done_is_not_put_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_writer, "PROMPTLY", 3600)
    kept = asyncio.Event()

    class TellingStore(SqliteStore):
        async def write(self, batch: Batch) -> None:
            await super().write(batch)
            if any(step.done and step.kind == "tool" for step in batch.steps):
                kept.set()

    async def quick() -> str:
        """Be quick."""
        return "quick"

    async def slow() -> str:
        """Wait for the result of the other."""
        await asyncio.wait_for(kept.wait(), 10)
        return "slow"

    async def go() -> RunResult:
        store = TellingStore(store_path(tmp_path))
        main = agent("main", script([call("quick"), call("slow")], "done"), tools=["quick", "slow"])
        project = project_of([main], root=tmp_path, tools={"quick": quick, "slow": slow})
        runtime = Runtime(project, approvals="approve_all", durable=True, store=store)
        result = await runtime.execute("go")
        await runtime.aclose()
        await store.aclose()
        return result

    result = asyncio.run(go())
    assert (result.status, result.errors) == ("completed", [])
