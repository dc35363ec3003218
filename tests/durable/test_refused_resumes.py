"""What can't be resumed is refused before anything happens, and says what to do."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from llm_do import RunResult, Runtime
from llm_do.errors import ReplayError, RunTakenError, StoreError, UsageError
from llm_do.project.project import Budget
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.store.store_writes import Batch
from llm_do.runtime.steps import step_log
from llm_do.threads import SqliteStore
from tests.durable.scenarios import effects_of, runtime_for
from tests.durable.test_resumed_runs import StoppingStore, journal, resumed, run_until, store_path, whole
from tests.runtime.request.counting import add
from tests.runtime.request.test_cost_budgets import Priced
from tests.support.runs import agent, project_of, runtime_of
from tests.support.scripted import call, script


def stopped(root: Path, **options: Any) -> RunResult:
    return asyncio.run(run_until("nested", root, 4, after=True, **options))


@pytest.mark.parametrize(
    ("run_id", "why"),
    [("nobody", "there is no run 'nobody'"), ("plain", "run plain isn't durable")],
)
def test_an_id_that_no_durable_run_has(run_id: str, why: str, tmp_path: Path) -> None:
    async def begin() -> None:
        runtime = runtime_for("nested", tmp_path, durable=False, record=True, store=SqliteStore(store_path(tmp_path)))
        await runtime.execute("go", run_id="plain")
        with pytest.raises(UsageError, match=why):
            await runtime.resume(run_id)

    asyncio.run(begin())


def test_a_run_that_is_running_is_not_resumed(tmp_path: Path) -> None:
    async def both() -> None:
        runtime = runtime_for("nested", tmp_path, store=SqliteStore(store_path(tmp_path)))
        refused: list[UsageError] = []

        async def again() -> None:
            with pytest.raises(UsageError) as caught:
                await runtime.resume("r")
            refused.append(caught.value)

        tasks: list[asyncio.Task[None]] = []
        runtime.on("tool_call", lambda event: tasks.append(asyncio.ensure_future(again())))
        result = await runtime.execute("go", run_id="r")
        await asyncio.gather(*tasks, return_exceptions=True)
        assert result.status == "completed"
        assert "is running" in str(refused[0])

    asyncio.run(both())


@pytest.mark.slow
def test_another_run_on_its_thread_is_refused_until_it_is_dropped(tmp_path: Path) -> None:
    assert stopped(tmp_path, thread_id="t").status == "interrupted"

    async def next_turn() -> RunResult:
        store = SqliteStore(store_path(tmp_path))
        runtime = runtime_for("nested", tmp_path, store=store, durable=False)
        with pytest.raises(UsageError, match=r"run r on thread 't' waits to be resumed") as caught:
            await runtime.execute("next", thread_id="t")
        assert "llm-do runs drop r" in str(caught.value.hint)
        await store.drop_run("r")
        result = await runtime.execute("next", thread_id="t")
        assert (await store.run("r")).status == "interrupted"  # type: ignore[union-attr]
        with pytest.raises(UsageError, match="has ended"):
            await store.drop_run("r")
        await store.aclose()
        return result

    assert asyncio.run(next_turn()).status == "completed"


def test_requests_that_are_not_what_was_sent(tmp_path: Path) -> None:
    assert stopped(tmp_path).status == "interrupted"
    before = effects_of(tmp_path)

    async def changed() -> RunResult:
        main = agent("main", script("other"), description="Changed.")
        project = project_of([main], root=tmp_path)
        runtime = Runtime(project, approvals="approve_all", durable=True, store=SqliteStore(store_path(tmp_path)))
        return await runtime.execute_again("r", in_flight="repeat", accept_changes=True)

    result = asyncio.run(changed())
    assert isinstance(result.error, ReplayError)
    assert "request 1 of main isn't what was sent before: its tools changed" in str(result.error)
    assert (result.exit_code, effects_of(tmp_path)) == (2, before)
    # It wrote no end, so that the run can be resumed once the change is undone.
    result, _ = asyncio.run(resumed("nested", tmp_path))
    assert result.status == "completed"


def test_code_that_is_not_the_same_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_log, "PATIENCE", 0.05)
    numbers = itertools.count()
    helper = agent("helper", script("helped"))

    async def main(input: str, ctx: Any) -> str:
        await ctx.call("helper", f"clock {next(numbers)}")
        return await ctx.call("helper", "then")

    async def go() -> RunResult:
        store = StoppingStore(store_path(tmp_path), 2, after=True)
        runtime = Runtime(project_of([helper], main, root=tmp_path), durable=True, store=store)
        store.stop = runtime.interrupt
        await runtime.execute("x", run_id="r")
        runtime = Runtime(project_of([helper], main, root=tmp_path), durable=True, store=SqliteStore(store.path))
        return await runtime.execute_again("r")

    result = asyncio.run(go())
    assert isinstance(result.error, ReplayError)
    assert "it no longer comes to a step that was finished: request 1 of main/helper" in str(result.error)
    assert "`ctx.step`" in str(result.error.hint)


def test_an_attempt_that_is_no_longer_the_runs_stops_without_an_end(tmp_path: Path) -> None:
    async def taken() -> RunResult:
        store = SqliteStore(store_path(tmp_path))
        runtime = runtime_for("nested", tmp_path, store=store)

        def take(event: Any) -> None:
            with closing(sqlite3.connect(store_path(tmp_path), isolation_level=None)) as db:
                db.execute("UPDATE runs SET attempt = attempt + 1")

        unsubscribe = runtime.on("tool_call", lambda event: (unsubscribe(), take(event)))
        return await runtime.execute("go", run_id="r")

    result = asyncio.run(taken())
    assert isinstance(result.error, RunTakenError)
    kept = asyncio.run(journal(tmp_path))
    assert not [event for event in kept if event["type"] in ("run_failed", "run_finished", "call_finished")]


class FullStore(SqliteStore):
    """A store on a full disk from the first tool call on."""

    full = False

    async def write(self, batch: Batch) -> None:
        self.full = self.full or any(step.kind == "tool" and not step.done for step in batch.steps)
        if self.full:
            raise StoreError("no space left on the disk")
        await super().write(batch)

    async def stop_run(self, batch: Batch, status: str) -> None:
        await super().stop_run(Batch(batch.run_id, attempt=batch.attempt), status)


def test_a_tool_whose_call_cannot_be_kept_does_not_run(tmp_path: Path) -> None:
    async def fill() -> RunResult:
        return await runtime_for("nested", tmp_path, store=FullStore(store_path(tmp_path))).execute("go", run_id="r")

    result = asyncio.run(fill())
    assert isinstance(result.error, StoreError)
    assert effects_of(tmp_path) == []
    again, _ = asyncio.run(resumed("nested", tmp_path))
    assert again.status == "completed"


class ClosedStore(SqliteStore):
    """A store in which no run can begin."""

    async def begin_run(self, *args: Any, **options: Any) -> Any:
        raise StoreError("no space left on the disk")


def test_a_run_is_called_durable_once_the_store_has_it(tmp_path: Path) -> None:
    spec, told = agent("main", script("hello")), list[int]()

    def carry_out_in(store: SqliteStore) -> RunResult:
        def look() -> None:
            with closing(sqlite3.connect(tmp_path / "state.db")) as other:
                told.append(other.execute("SELECT count(*) FROM runs WHERE id = 'r'").fetchone()[0])

        runtime = runtime_of([spec], root=tmp_path, options={"durable": True, "store": store})
        return asyncio.run(runtime.execute("go", run_id="r", subscription=Subscription(print, on_durable=look)))

    assert isinstance(carry_out_in(ClosedStore(tmp_path / "state.db")).error, StoreError)
    assert told == []
    assert carry_out_in(SqliteStore(tmp_path / "state.db")).status == "completed"
    assert told == [1]
    assert carry_out_in(SqliteStore(tmp_path / "state.db")).status == "completed"  # and doesn't begin again
    assert told == [1]


def test_a_run_that_is_not_recorded_cannot_be_durable(tmp_path: Path) -> None:
    runtime = runtime_of([agent("main", script("hello"))], root=tmp_path, options={"durable": True, "record": False})
    with pytest.raises(UsageError, match="a durable run is kept on disk"):
        asyncio.run(runtime.execute("hi"))


def test_secrets_are_sealed_on_disk_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-0123456789")
    seen: list[str] = []

    def tell(messages: Any, info: Any) -> str:
        seen.append(str(messages[-1]))
        return "answer"

    def runtime(store: SqliteStore) -> Runtime:
        def look() -> str:
            """Look."""
            return "the key is sk-acme-0123456789"

        main = agent("main", script(call("look", {}, "l1"), tell), tools=["look"])
        return Runtime(
            project_of([main], root=tmp_path, tools={"look": look}), approvals="approve_all", durable=True, store=store
        )

    async def stop_and_resume() -> RunResult:
        store = StoppingStore(store_path(tmp_path), 0, after=True)
        first = runtime(store)
        store.stop = first.interrupt
        first.on("tool_result", lambda event: first.interrupt())
        assert (await first.execute("hi", run_id="r")).status == "interrupted"
        return await runtime(SqliteStore(store.path)).execute_again("r", in_flight="repeat")

    result = asyncio.run(stop_and_resume())
    assert result.error is None
    assert "sk-acme-0123456789" in seen[-1]
    with closing(sqlite3.connect(store_path(tmp_path))) as db:
        kept = "\n".join(db.iterdump())
    assert "sk-acme-0123456789" not in kept
    assert "⟦secret ACME_API_KEY " in kept
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-9999999999")
    again = asyncio.run(whole_again(tmp_path))
    assert isinstance(again, ReplayError)


async def whole_again(root: Path) -> object:
    """The error of reading what was sealed with another value."""
    store = SqliteStore(store_path(root))
    try:
        with closing(sqlite3.connect(store_path(root), isolation_level=None)) as db:
            db.execute("UPDATE runs SET status = 'stopped', owner = ''")
        main = agent("main", script(call("look", {}, "l1"), "answer"), tools=["look"])

        def look() -> str:
            """Look."""
            return "?"

        project = project_of([main], root=root, tools={"look": look})
        runtime = Runtime(project, approvals="approve_all", durable=True, store=store)
        try:
            return (await runtime.execute_again("r", in_flight="repeat")).error
        except ReplayError as error:
            return error
    finally:
        await store.aclose()


@pytest.mark.slow
def test_a_budget_counts_the_requests_that_were_in_flight(tmp_path: Path) -> None:
    async def go() -> tuple[RunResult, int]:
        expected, _, _ = await whole("nested", tmp_path / "whole", budget=Budget(requests=50))
        requests = expected.usage.requests
        store = StoppingStore(store_path(tmp_path), 3, after=True)
        runtime = runtime_for("nested", tmp_path, store=store, budget=Budget(requests=50))
        store.stop = runtime.interrupt
        await runtime.execute("go", run_id="r")
        again = runtime_for("nested", tmp_path, store=SqliteStore(store.path), budget=Budget(requests=50))
        return await again.execute_again("r", in_flight="repeat"), requests

    (tmp_path / "whole").mkdir()
    result, requests = asyncio.run(go())
    assert result.error is None
    assert result.usage.requests in (requests, requests + 1)


def test_a_budget_in_dollars_is_held_by_what_was_in_flight_and_not_by_what_is_replayed(tmp_path: Path) -> None:
    """What a replayed request held wouldn't fit beside what was in flight; what it used does."""

    async def go() -> tuple[RunResult, Priced, Priced]:
        store = SqliteStore(store_path(tmp_path))
        first, second = (Priced(answers=2, most=1_000, sent=12_500) for _ in range(2))

        def runtime(model: Priced) -> Runtime:
            project = project_of([agent("main", model, tools=[add])], root=tmp_path, budget={"cost_usd": 0.3})
            return Runtime(project, durable=True, store=store, approvals="approve_all")

        one = runtime(first)

        async def stop(messages: Any, info: Any) -> Any:
            if len(first.allowed) == 1:
                one.interrupt()
                await asyncio.Event().wait()
            return await first.turn(messages, info)

        first.function = stop
        await one.execute("x" * 50_000, run_id="r")
        result = await runtime(second).execute_again("r", in_flight="repeat")
        await store.aclose()
        return result, first, second

    result, first, second = asyncio.run(go())
    assert (result.status, first.allowed) == ("completed", [16_384])
    (allowed,) = second.allowed
    # What was in flight may have been paid for: 0.2 of the budget, so that little more than 2,000 tokens are left.
    assert 1_000 < (allowed or 0) < 3_000
    assert first.spent + second.spent + 0.2 < 0.3


def test_a_store_error_of_the_projects_own_code_is_a_failure_like_any_other(tmp_path: Path) -> None:
    def read(item: str) -> str:
        raise StoreError(f"no {item}")

    async def main(input: str, ctx: Any) -> str:
        try:
            return await ctx.call("read", {"item": "shelf"})
        except StoreError as error:
            return f"caught: {error}"

    project = project_of([agent("main", script("unused"))], main, root=tmp_path, tools={"read": read})
    runtime = Runtime(project, durable=True, store=SqliteStore(store_path(tmp_path)))
    result = asyncio.run(runtime.execute("x", run_id="r"))

    assert (result.status, result.output) == ("completed", "caught: no shelf")
