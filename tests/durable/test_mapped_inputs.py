"""`Runtime.map`: many inputs, each in a durable run, and batches that are continued, shared and retried."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from llm_do import BatchBudget, BudgetError, RunInterruptedError, RunResult, Runtime, tool
from llm_do.errors import InputError, UsageError
from llm_do.runtime.record.store.batches import BatchInput, BatchRecord
from llm_do.runtime.record.stored_records import RunFilter
from llm_do.threads import SqliteStore
from llm_do.threads.postgres.postgres_store import PostgresStore
from tests.durable.test_resumed_runs import store_path
from tests.support.runs import agent, project_of
from tests.support.scripted import Script, call, script

if TYPE_CHECKING:
    from llm_do.threads.sql.sql_store import SqlStore
    from tests.support.postgres import Server


Start = Callable[..., Runtime]


@dataclass(frozen=True)
class Place:
    """A project's folder, and the URL of its store if that isn't in it."""

    root: Path
    url: str | None

    def store(self) -> SqlStore:
        """Open the store."""
        return SqliteStore(store_path(self.root)) if self.url is None else PostgresStore(self.url)


def prompt_of(messages: Any) -> str:
    return str(messages[0].parts[-1].content)


def echo(messages: Any, info: Any) -> str:
    return f"re: {prompt_of(messages)}"


def runtime_with(root: Path, answers: Any, **options: Any) -> Runtime:
    tools = options.pop("tools", [])
    return Runtime(project_of([agent("main", answers, tools=tools)], root=root), **options)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the store is, and how sessions open it: every test runs on both kinds."""
    if request.param == "sqlite":
        return Place(tmp_path, None)
    server: Server = request.getfixturevalue("postgres")
    return Place(tmp_path, server.url())


@pytest.fixture
def start(place: Place) -> Start:
    """Start a session on the store, as a process of its own would."""
    return partial(runtime_with, place.root, **({"store": place.url} if place.url else {}))


async def mapped(runtime: Runtime, inputs: Any, **options: Any) -> list[RunResult]:
    try:
        return [result async for result in runtime.map(inputs, **options)]
    finally:
        await runtime.aclose()


def outputs(runtime: Runtime, inputs: Any, **options: Any) -> list[Any]:
    return [result.output for result in asyncio.run(mapped(runtime, inputs, **options))]


def test_results_come_in_the_order_of_the_inputs(start: Start) -> None:
    async def slow_first(messages: Any, info: Any) -> str:
        await asyncio.sleep(0.05 if prompt_of(messages) == "1" else 0)
        return echo(messages, info)

    inputs = ["1", {"input": "2"}, "3"]
    assert outputs(start(script(slow_first)), inputs) == ["re: 1", "re: 2", "re: 3"]


def test_the_same_batch_again_returns_what_was_recorded(start: Start) -> None:
    model = script(echo)
    first = asyncio.run(mapped(start(model), ["a", "b"], batch="letters"))
    again = asyncio.run(mapped(start(model), ["a", "b"], batch="letters"))
    assert [each.to_dict() for each in again] == [each.to_dict() for each in first]
    assert [each.run_id for each in again] == ["letters-1", "letters-2"]
    assert len(asked(model)) == 2


def test_a_secret_in_an_input_is_sealed_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-0123456789")
    runtime = runtime_with(tmp_path, script(echo))
    assert outputs(runtime, ["use sk-acme-0123456789", "b"]) == ["re: use sk-acme-0123456789", "re: b"]
    with closing(sqlite3.connect(store_path(tmp_path))) as db:
        kept = "\n".join(db.iterdump())
        (beginning,) = db.execute("SELECT beginning FROM runs WHERE beginning LIKE '%use %'").fetchone()
    assert "sk-acme-0123456789" not in kept
    assert "⟦secret ACME_API_KEY " in beginning


def asked(model: Any) -> list[Any]:
    scripted: Script = model.function.__self__
    return scripted.asked


def test_a_failed_input_is_a_result_and_is_run_again_if_that_is_asked_for(start: Start) -> None:
    broken = True

    def sometimes(messages: Any, info: Any) -> Any:
        return ValueError("no idea") if broken and prompt_of(messages) == "b" else echo(messages, info)

    inputs = ["a", "b", {"wrong": 1}]
    runtime = start(script(sometimes))
    found = asyncio.run(mapped(runtime, inputs, batch="x"))
    assert [each.status for each in found] == ["completed", "provider_failed", "invalid"]
    assert "input does not fit PromptInput" in str(found[2].error)
    assert [error.type for each in found for error in each.errors] == ["ProviderError", "InputError"]

    broken = False
    unchanged = asyncio.run(mapped(runtime, inputs, batch="x"))
    assert [each.status for each in unchanged] == ["completed", "provider_failed", "invalid"]
    assert [error.type for each in unchanged for error in each.errors] == ["ProviderError", "InputError"]
    retried = asyncio.run(mapped(runtime, inputs, batch="x", retry=True))
    assert [each.status for each in retried] == ["completed", "completed", "invalid"]
    assert [each.run_id for each in retried] == ["x-1", "x-2-again2", "x-3-again2"]
    again = asyncio.run(mapped(runtime, inputs, batch="x", retry=True))
    assert again[2].run_id == "x-3-again3"


def test_other_inputs_models_or_files_of_one_batch_are_refused(start: Start) -> None:
    model = script(echo)
    outputs(start(model), ["a", "b"], batch="x")
    with pytest.raises(UsageError, match=r"has? other inputs than batch x was begun with \(2 then, 3 now\)"):
        outputs(start(model), ["a", "b", "c"], batch="x")
    with pytest.raises(UsageError, match="other inputs than batch x"):
        outputs(start(model), ["a", "c"], batch="x")
    with pytest.raises(UsageError, match="has changed: model"):
        outputs(start(model, model="test"), ["a", "b"], batch="x")
    assert outputs(start(model, model="test"), ["a", "b"], batch="x", accept_changes=True) == [
        "re: a",
        "re: b",
    ]


@pytest.mark.parametrize(
    ("inputs", "options", "error", "text"),
    [
        (["a", 7], {}, InputError, "input 2 must be text, a mapping or an input model, not a value of type int"),
        (["a"], {"batch": "../x"}, UsageError, "can't be a batch's id"),
        (["a"], {"concurrency": 0}, UsageError, "concurrency must be 1 or more"),
        (["a"], {"concurrency": True}, UsageError, "a whole number, not True"),
        (["a"], {"budget": 5}, UsageError, "budget must be a BatchBudget, not 5"),
        (["a"], {"retry": "failed"}, UsageError, "retry must be True or False, not 'failed'"),
        (["a"], {"accept_changes": 1}, UsageError, "accept_changes must be True or False, not 1"),
        (["a"], {"entry": "nothing"}, UsageError, "has nothing named 'nothing'"),
    ],
)
def test_what_cannot_be_mapped_is_refused_before_anything_runs(
    inputs: Any, options: Any, error: type[Exception], text: str, start: Start
) -> None:
    model = script(echo)
    with pytest.raises(error, match=text):
        outputs(start(model), inputs, **options)
    assert not asked(model)


def test_a_budget_says_what_each_input_may_cost() -> None:
    with pytest.raises(UsageError, match="needs one for each"):
        BatchBudget(total_usd=5)
    with pytest.raises(UsageError, match="more than 0"):
        BatchBudget(each_usd=0)
    with pytest.raises(UsageError, match="each_usd must be a number, not '5'"):
        BatchBudget(each_usd="5")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one input may cost 2 US dollars, and all of them only 1"):
        BatchBudget(total_usd=1, each_usd=2)


def test_a_runtime_that_records_nothing_maps_nothing(start: Start) -> None:
    with pytest.raises(UsageError, match="nothing is recorded here"):
        outputs(start(script(echo), record=False), ["a"])


class Priced:
    """A model that says what it costs, and counts what runs at once."""

    def __init__(self, cost: float) -> None:
        self.cost, self.spent, self.running, self.most = cost, 0.0, 0, 0

    async def __call__(self, messages: Any, info: Any) -> ModelResponse:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        self.spent += self.cost
        usage = RequestUsage(input_tokens=1, output_tokens=1, cost=Decimal(str(self.cost)))
        return ModelResponse([TextPart(echo(messages, info))], usage=usage)


def test_inputs_start_only_while_the_budget_has_room_for_them(start: Start) -> None:
    model = Priced(0.01)
    inputs = [str(number) for number in range(12)]
    budget = BatchBudget(total_usd=0.1, each_usd=0.02)

    found: list[RunResult] = []

    async def some() -> None:
        runtime = start(script(model))
        try:
            async for result in runtime.map(inputs, batch="x", budget=budget):
                found.append(result)  # noqa: PERF401 (the error comes after some)
        finally:
            await runtime.aclose()

    with pytest.raises(BudgetError, match=r"0\.1 US dollars for batch x lets none of 3 inputs start"):
        asyncio.run(some())
    # What has been used and what runs may use is never more: nine cost 0.09, and a tenth could make it 0.11.
    assert [each.output for each in found] == [f"re: {number}" for number in range(9)]
    assert model.spent == pytest.approx(0.09)
    assert model.most <= 5
    more = outputs(start(script(model)), inputs, batch="x", budget=BatchBudget(total_usd=1, each_usd=0.02))
    assert len(more) == 12
    assert model.spent == pytest.approx(0.12)


def test_stopped_runs_are_continued_before_others_begin(start: Start) -> None:
    """A session is interrupted in the middle; another one ends the work, and no call is repeated."""
    done: list[str] = []
    runtime: Runtime

    @tool(approval="allow")
    async def work(item: str) -> str:
        """Work."""
        done.append(item)
        if len(done) == 5:
            runtime.interrupt()
        await asyncio.sleep(0)
        return item

    def ask(messages: Any, info: Any) -> Any:
        return call("work", {"item": prompt_of(messages)}, "w") if len(messages) == 1 else echo(messages, info)

    model = script(ask)
    inputs = [f"i{number}" for number in range(12)]

    runtime = start(model, tools=[work])
    with pytest.raises(RunInterruptedError, match="batch x was interrupted"):
        asyncio.run(mapped(runtime, inputs, batch="x", concurrency=4))
    assert len(done) < 12

    runtime = start(model, tools=[work])
    found = asyncio.run(mapped(runtime, inputs, batch="x"))
    waiting = [each for each in found if each.status == "suspended"]
    assert all([question.kind for question in each.questions] == ["in_flight"] for each in waiting)
    assert [each.output for each in found if each not in waiting] == [
        f"re: {text}" for text, each in zip(inputs, found, strict=True) if each not in waiting
    ]
    assert len(set(done)) == len(done)


def test_a_batch_that_is_continued_has_the_questions_that_nobody_has_answered(start: Start) -> None:
    @tool(approval="ask")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def ask(messages: Any, info: Any) -> Any:
        return call("pay", {"amount": 7}, "p") if len(messages) == 1 else echo(messages, info)

    first = asyncio.run(mapped(start(script(ask), tools=[pay]), ["a", "b"], batch="x"))
    assert [each.status for each in first] == ["suspended"] * 2

    async def answered() -> list[Any]:
        runtime = start(script(ask), tools=[pay])
        await runtime.answer(first[0].questions[0].id, "allow")
        return await mapped(runtime, ["a", "b"], batch="x")

    again = asyncio.run(answered())

    assert [each.status for each in again] == ["completed", "suspended"]
    assert [question.call for question in again[1].questions] == ["pay(amount=7)"]
    assert again[1].questions == first[1].questions
    assert [each.id for each in again[1].error.questions] == [each.id for each in first[1].questions]
    assert str(again[1].error) == str(first[1].error)


def test_two_sessions_share_a_batch(start: Start) -> None:
    model = script(echo)
    inputs = [f"i{number}" for number in range(20)]

    async def both() -> list[list[Any]]:
        one, other = (start(model) for _ in range(2))
        found = await asyncio.gather(
            *(mapped(each, inputs, batch="x", concurrency=3) for each in (one, other)),
        )
        return [[each.output for each in results] for results in found]

    assert asyncio.run(both()) == [[f"re: {text}" for text in inputs]] * 2
    assert len(asked(model)) == 20


# -- claims


async def claims(place: Place, **changes: Any) -> tuple[SqlStore, BatchRecord]:
    store = place.store()
    fields: dict[str, Any] = {"budget": None, "budget_each": None, **changes}
    batch = BatchRecord("b", "main", None, "digest", 6, "{}", "{}", created=1.0, **fields)
    assert await store.batches.begin(batch) == batch
    await store.batches.put("b", [BatchInput(number, f'"{number}"') for number in range(1, 7)])
    return store, batch


def test_an_input_is_claimed_once_and_may_be_given_back(place: Place) -> None:
    async def work() -> None:
        store, _ = await claims(place)
        batches = store.batches
        await batches.put("b", [BatchInput(1, '"changed"')])
        taken = await batches.take("b", 4)
        assert [(each.run_id, each.data) for each in taken.inputs] == [(f"b-{n}", f'"{n}"') for n in range(1, 5)]
        assert await batches.alive("b-1")
        assert not await batches.alive("b-6")
        # A recovery in this process leaves them to it.
        await store.recover()
        assert [each.ordinal for each in (await batches.take("b", 9)).inputs] == [5, 6]
        await batches.give_back(["b-2", "b-5"])
        assert [each.ordinal for each in (await batches.take("b", 9)).inputs] == [2, 5]
        assert await batches.running("b") == 6
        assert not await store.runs(filter=RunFilter(statuses=("queued",)))
        await batches.give_back([f"b-{number}" for number in range(1, 7)])
        await store.aclose()

    asyncio.run(work())


def test_claims_of_a_process_that_is_gone_are_queued_again(place: Place) -> None:
    async def work() -> None:
        store, _ = await claims(place)
        await store.batches.take("b", 4)
        await store._worker.write(lambda db: db.execute("UPDATE runs SET owner = 'gone' WHERE id <> 'b-2'"))
        assert not await store.batches.alive("b-1")
        assert (await store.batches.summary("b")).statuses == {"queued": 5, "running": 1}
        await store.batches.give_back(["b-2"])
        await store.aclose()

    asyncio.run(work())


def test_a_budget_counts_what_unfinished_runs_may_use(place: Place) -> None:
    async def work() -> None:
        store, batch = await claims(place, budget=0.3, budget_each=0.1)
        batches = store.batches
        assert len((await batches.take("b", 2)).inputs) == 2
        taken = await batches.take("b", 2)
        assert ([each.ordinal for each in taken.inputs], taken.over_budget) == ([3], False)
        assert await batches.take("b", 2) == type(taken)((), over_budget=True)
        await batches.end("b-1", "invalid", "{}")
        assert [each.ordinal for each in (await batches.take("b", 2)).inputs] == [4]
        assert await batches.batch("b") == batch
        await batches.give_back(["b-2", "b-3", "b-4"])
        await store.aclose()

    asyncio.run(work())


def test_queued_runs_are_not_among_those_that_are_listed(place: Place) -> None:
    async def work() -> None:
        store, _ = await claims(place)
        assert await store.runs() == []
        assert len(await store.runs(filter=RunFilter(statuses=("queued",)))) == 6
        assert len(await store.runs(filter=RunFilter(statuses=("queued",), batch="b"))) == 6
        assert not await store.runs(filter=RunFilter(statuses=("queued",), batch="other"))
        found = await store.run("b-3")
        assert found is not None
        assert (found.status, found.batch) == ("queued", "b")
        await store.aclose()

    asyncio.run(work())
