"""Runs are found by how they ended, by entry, time and cost, and what they have used is summed up."""

from __future__ import annotations

from typing import Any

import pytest

from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.store.store_writes import Batch, RunEnd, RunTotals, SpentRow
from llm_do.runtime.record.stored_records import RunFilter, RunRecord
from llm_do.threads import ThreadConfig, ThreadStore
from tests.support.runs import agent, carry_out
from tests.support.scripted import call, script
from tests.threads.thread_support import add, done, runtime_on

CHEAP = Usage(1, 0, 100, 10, 0.01)
COSTLY = Usage(2, 0, 1000, 500, 0.75)
UNPRICED = Usage(1, 0, 40, 2)
DAY = 86_400.0
NOON = 1_795_867_200.0


async def add_run(store: ThreadStore, id: str, entry: str, started: float, status: str, *spent: SpentRow) -> None:
    await store.begin_run(RunRecord(id, "running", entry, None, None, started), ThreadConfig())
    usage = sum((row.usage for row in spent), Usage())
    totals = RunTotals(usage, list(dict.fromkeys(row.model for row in spent)))
    await store.finish_run(RunEnd(Batch(id, spent=spent, totals=totals), status, started + 1))


@pytest.fixture
def filled(store: ThreadStore) -> ThreadStore:
    async def fill() -> None:
        row = SpentRow
        await add_run(store, "a", "main", NOON, "completed", row("main", "small", CHEAP), row("main", "small", CHEAP))
        await add_run(
            store, "b", "main", NOON + DAY, "failed", row("main", "big", COSTLY), row("helper", "small", CHEAP)
        )
        await add_run(store, "c", "other", NOON + DAY, "denied", row("helper", "local", UNPRICED))

    done(fill())
    return store


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        (RunFilter(), "cba"),
        (RunFilter(statuses=("failed",)), "b"),
        (RunFilter(statuses=("failed", "denied")), "cb"),
        (RunFilter(statuses=("running",)), ""),
        (RunFilter(entry="main"), "ba"),
        (RunFilter(since=NOON + 1), "cb"),
        (RunFilter(cost_above=0.02), "b"),
        (RunFilter(cost_above=0.0, entry="main"), "ba"),
        (RunFilter(entry="main", since=NOON + 1, statuses=("completed",)), ""),
    ],
)
def test_runs_are_found_by_what_they_are(filled: ThreadStore, filter: RunFilter, ids: str) -> None:
    assert "".join(run.id for run in done(filled.runs(filter=filter))) == ids


def test_a_run_has_its_models_and_usage(filled: ThreadStore) -> None:
    runs = done(filled.runs())

    assert [(run.models, run.usage) for run in runs] == [
        (("local",), UNPRICED),
        (("big", "small"), COSTLY + CHEAP),
        (("small",), CHEAP + CHEAP),
    ]


def test_the_models_of_a_run_that_goes_on_are_added_to_those_before(store: ThreadStore) -> None:
    async def go_on() -> None:
        await store.begin_run(RunRecord("a", "running", "main", None, None, NOON), ThreadConfig())
        for models in (["small", "big"], ["local", "big"]):
            await store.write(Batch("a", totals=RunTotals(CHEAP, models)))

    done(go_on())

    assert [run.models for run in done(store.runs())] == [("small", "big", "local")]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("agent", [("main", 2, 4, 0.77, 0), ("helper", 2, 2, 0.01, 42)]),
        ("model", [("big", 1, 2, 0.75, 0), ("small", 2, 3, 0.03, 0), ("local", 1, 1, None, 42)]),
    ],
)
def test_spending_is_summed_up(filled: ThreadStore, by: Any, expected: list[Any]) -> None:
    found = done(filled.spending(by))

    costs = [None if each.usage.cost_usd is None else round(each.usage.cost_usd, 6) for each in found]
    assert [
        (each.key, each.runs, each.usage.requests, cost, each.unpriced) for each, cost in zip(found, costs, strict=True)
    ] == expected


def test_spending_by_day_is_the_latest_first(filled: ThreadStore) -> None:
    found = done(filled.spending("day"))

    assert [(each.runs, each.usage.requests) for each in found] == [(2, 4), (1, 2)]
    assert found[0].key > found[1].key
    assert done(filled.spending("day", RunFilter(entry="other")))[0].usage == UNPRICED


def test_an_unknown_price_stays_unknown_in_the_sum_of_one_agent_and_model(store: ThreadStore) -> None:
    rows = [SpentRow("main", "m", each) for each in (CHEAP, UNPRICED, CHEAP, Usage(requests=1))]
    done(add_run(store, "a", "main", NOON, "completed", *rows))

    (found,) = done(store.spending("model"))

    assert (found.usage.cost_usd, found.unpriced, found.usage.requests) == (None, CHEAP.total_tokens * 2 + 42, 4)


def test_the_parts_of_a_run_add_up_to_its_result(store: ThreadStore) -> None:
    helper = agent("helper", script(call("add", a=1, b=2), "three"), tools=[add])
    lead = agent("lead", script(call("helper", input="x"), "done"), toolsets=["helper"])

    result = carry_out(runtime_on(store, lead, helper, options={"record": True}))

    parts = done(store.spending("agent"))
    assert {each.key: each.usage.requests for each in parts} == {"lead": 2, "helper": 2}
    assert sum(each.usage.total_tokens for each in parts) == result.usage.total_tokens
    assert sum(each.usage.requests for each in parts) == result.usage.requests
    (run,) = done(store.runs())
    assert run.usage == result.usage
