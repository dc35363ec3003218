"""What models were sent and what came back is kept with every recorded run, each part of it once."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import exceptions
from pydantic_ai.messages import BinaryContent, ImageUrl, ModelRequest, ModelResponse, TextPart, UserPromptPart

from llm_do import RunResult, StoreError, tool
from llm_do.project.project import RecordSettings
from llm_do.runtime.context.call_context import current_call
from llm_do.runtime.record.exchanges import Exchange
from llm_do.runtime.record.sent_request import RequestReader, SentRequest, read_request
from llm_do.threads import RunRecord, SqliteStore, ThreadStore, memory_store
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import add, done, on_thread, runtime_on

MEGABYTE = 1_000_000


def recorded(store: ThreadStore, *specs: Any, input: Any = "go", options: Any = None, **fields: Any) -> RunResult:
    return carry_out(runtime_on(store, *specs, options={"record": True, **(options or {})}, **fields), input)


def exchanges_of(store: ThreadStore, result: RunResult) -> list[Exchange]:
    return done(store.exchanges(result.run_id))


def record_of(store: ThreadStore, result: RunResult) -> RunRecord:
    record = done(store.run(result.run_id))
    assert record is not None
    return record


def team(*turns: Any) -> Sequence[Any]:
    """A lead that asks a helper, which adds."""
    helper = agent("helper", script(call("add", a=1, b=2), "three"), instructions="Help.", tools=[add])
    lead = agent("lead", script(call("helper", input="add"), *turns, "done"), instructions="Lead.", toolsets=["helper"])
    return lead, helper


def answer(exchange: Exchange) -> str | None:
    return exchange.outcome.response.text if exchange.outcome.response is not None else None


def test_a_run_keeps_each_request_with_what_came_back(store: ThreadStore) -> None:
    result = recorded(store, *team())

    kept = exchanges_of(store, result)

    assert [(each.place.path, each.place.number, answer(each)) for each in kept] == [
        ("lead", 1, None),
        ("lead/helper", 1, None),
        ("lead/helper", 2, "three"),
        ("lead", 2, "done"),
    ]
    helper = kept[2]
    assert helper.sent.setup["instructions"] == "Help."
    assert [each["name"] for each in helper.sent.setup["tools"]] == ["add"]
    assert [message["kind"] for message in helper.sent.messages] == ["request", "response", "request"]
    assert helper.sent.messages[2]["parts"][0]["content"] == 3
    assert kept[1].tool_calls == ("call_1",)
    assert helper.sent.messages[1]["parts"][0]["tool_call_id"] == "call_1"
    assert helper.place.call_id.startswith(f"{result.run_id}.")
    assert kept[0].begun <= kept[0].ended <= kept[3].begun
    assert kept[0].facts is not None
    assert kept[0].facts.system == "function"


class Listening:
    """A transport that asks the models and keeps the keys of what they are sent."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._readers: dict[str, RequestReader] = {}

    def stand_in(self, agent: str, named: Any) -> Sequence[Any]:
        return ()

    async def send(self, place: Any, request: Any, ask: Any, show: Any) -> Any:
        reader = self._readers.setdefault(place.call_id, RequestReader())
        sent = read_request(reader, request)
        answer = await ask()
        self.keys.append(sent.key)
        return answer


def test_what_is_read_back_has_the_key_of_what_was_sent(store: ThreadStore) -> None:
    heard = Listening()

    kept = exchanges_of(store, recorded(store, *team(), options={"transport": heard}))

    assert [each.sent.key for each in kept] == heard.keys
    assert heard.keys == [SentRequest.of(each.sent.setup, each.sent.messages).key for each in kept]
    assert len({each.sent.key for each in kept}) == 4


def test_failed_attempts_are_kept_too(store: ThreadStore) -> None:
    failure = exceptions.ModelHTTPError(503, "m", body={"error": "overloaded"}, retry_after=0.0)
    spec = agent("main", script(failure, "fine"))

    result = recorded(store, spec)

    kept = exchanges_of(store, result)
    assert [(each.place.number, each.place.attempt, answer(each)) for each in kept] == [(1, 1, None), (1, 2, "fine")]
    assert kept[0].outcome.failure is not None
    assert kept[0].outcome.failure.status_code == 503
    assert kept[0].sent.key == kept[1].sent.key


def test_a_cancelled_request_is_kept_as_one(store: ThreadStore) -> None:
    async def cancelled() -> None:
        asked = asyncio.Event()

        async def never(*_: Any) -> str:
            asked.set()
            await asyncio.Event().wait()
            return ""

        runtime = runtime_on(store, agent("main", script(never)), options={"record": True})
        run = asyncio.ensure_future(runtime.execute("go"))
        await asked.wait()
        run.cancel()
        await asyncio.wait([run])
        await runtime.aclose()

    done(cancelled())

    (record,) = done(store.runs())
    (kept,) = done(store.exchanges(record.id))
    assert kept.outcome.failure is not None
    assert kept.outcome.failure.type == "CancelledError"
    assert record.usage == kept.outcome.usage


def test_what_a_run_has_used_is_kept_with_it(store: ThreadStore) -> None:
    result = recorded(store, *team())

    record = record_of(store, result)

    assert record.usage == result.usage
    assert record.exchanges == 4
    assert len(record.models) == 1
    assert sum(each.outcome.usage.total_tokens for each in exchanges_of(store, result)) == result.usage.total_tokens


def test_a_response_is_on_disk_before_a_tool_with_effects_runs(store: ThreadStore) -> None:
    seen: list[int] = []

    @tool(approval="allow")
    async def pay() -> str:
        """Pay."""
        seen.append(len(await store.exchanges(current_call().run_id)))
        return "paid"

    recorded(store, agent("main", script(call("pay"), "done"), tools=[pay]))

    assert seen == [1]


def test_a_run_that_starts_over_keeps_the_requests_of_both_times(store: ThreadStore) -> None:
    first = runtime_on(store, agent("main", script("one")))
    turns: list[str] = []

    async def meanwhile(*_: Any) -> str:
        if not turns:
            turns.append("now")
            await first.execute("in between", thread_id="t")
        return "two"

    (result,) = on_thread(runtime_on(store, agent("main", script(meanwhile))), "go")

    assert len(exchanges_of(store, result)) == 2
    assert record_of(store, result).usage == result.usage
    assert result.usage.requests == 2


def stored_size(store: SqliteStore) -> int:
    """The bytes of everything that was kept of exchanges."""

    def read(db: sqlite3.Connection) -> int:
        (objects,) = db.execute("SELECT coalesce(sum(length(body) + length(links)), 0) FROM objects").fetchone()
        (answers,) = db.execute("SELECT coalesce(sum(length(answer)), 0) FROM exchanges").fetchone()
        return objects + answers

    return done(store._read(read))


def counts(store: SqliteStore) -> tuple[int, int, int]:
    """Objects, exchanges, and the size as the store counts it."""

    def read(db: sqlite3.Connection) -> tuple[int, int, int]:
        return tuple(
            db.execute(f"SELECT {what}").fetchone()[0]
            for what in ("count(*) FROM objects", "count(*) FROM exchanges", "bytes FROM exchange_size")
        )  # type: ignore[return-value]

    return done(store._read(read))


@pytest.mark.slow
@pytest.mark.parametrize("steps", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_many_steps_take_room_in_proportion(steps: int) -> None:
    def size(steps: int) -> int:
        store = memory_store()
        spec = agent("main", script(*[call("add", a=number, b=1) for number in range(steps - 1)], "x"), tools=[add])
        result = recorded(store, spec, max_steps=steps)
        assert len(exchanges_of(store, result)) == steps
        return stored_size(store)

    assert size(steps) < 4.5 * size(steps // 4)


def test_what_two_runs_have_in_common_is_stored_once() -> None:
    store = memory_store()
    long = "word " * 20_000

    recorded(store, agent("main", script("x"), instructions=long))
    once = stored_size(store)
    recorded(store, agent("main", script("x"), instructions=long), input="something else")

    assert once > 100_000
    assert stored_size(store) < once + 2000


@pytest.mark.parametrize("without", ["exchanges", "record"])
def test_nothing_is_kept_if_that_is_turned_off(without: str) -> None:
    store = memory_store()
    fields: Any = {"record_settings": RecordSettings(exchanges=False)} if without == "exchanges" else {}
    runtime = runtime_on(store, *team(), options={"record": without == "exchanges"}, **fields)

    result = carry_out(runtime)

    assert counts(store) == (0, 0, 0)
    record = done(store.run(result.run_id))
    assert (record is None) is (without == "record")
    if record is not None:
        assert (record.exchanges, record.usage) == (0, result.usage)


def test_a_project_that_records_nothing_keeps_no_exchanges_of_its_threads() -> None:
    from llm_do.project.thread_config import ThreadsSpec

    runtime = runtime_of(team(), record=False, threads=ThreadsSpec(store="memory"))

    (result,) = on_thread(runtime, "go")

    from llm_do.threads import open_store

    store = open_store(runtime.project)
    assert done(store.run(result.run_id)) is not None
    assert exchanges_of(store, result) == []


def test_the_oldest_runs_lose_their_exchanges_when_all_take_too_much_room() -> None:
    store = memory_store()
    settings = RecordSettings(max_mb=1)
    results = [
        recorded(
            store, agent("main", script("x"), instructions="Same."), input=f"{n}" * 600_000, record_settings=settings
        )
        for n in range(3)
    ]

    assert [len(exchanges_of(store, each)) for each in results] == [0, 0, 1]
    assert [record_of(store, each).dropped for each in results] == ["max_mb", "max_mb", ""]
    assert exchanges_of(store, results[2])[0].sent.setup["instructions"] == "Same."
    assert counts(store)[2] < MEGABYTE
    assert [record_of(store, each).usage for each in results] == [each.usage for each in results]


def test_exchanges_are_dropped_after_some_days_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    old = recorded(store, *team())
    young = recorded(store, agent("main", script("y")))
    done(store.aclose())
    db = sqlite3.connect(path)
    db.execute("UPDATE runs SET started = started - 8 * 86400 WHERE id = ?", (old.run_id,))
    db.commit()
    db.close()

    last = recorded(store, agent("main", script("z")), record_settings=RecordSettings(keep_days=7))

    assert [len(exchanges_of(store, each)) for each in (old, young, last)] == [0, 1, 1]
    assert record_of(store, old).dropped == "keep_days"
    done(store._write(lambda db: exchange_rows_forget(db, [young.run_id, last.run_id])))
    assert counts(store) == (0, 0, 0)


def exchange_rows_forget(db: sqlite3.Connection, runs: Sequence[str]) -> None:
    from llm_do.threads.sql import exchange_rows

    exchange_rows.forget(db, runs)


def test_a_deleted_thread_takes_its_exchanges_along(store: SqliteStore) -> None:
    (result,) = on_thread(runtime_on(store, *team()), "go")
    assert len(exchanges_of(store, result)) == 4

    assert done(store.delete_thread("t"))

    assert counts(store) == (0, 0, 0)


def test_turns_of_a_thread_share_their_history(store: SqliteStore) -> None:
    text = "word " * 2000
    results = on_thread(runtime_on(store, agent("main", script("x"))), text, "b", "c", "d")

    assert [len(exchanges_of(store, each)[0].sent.messages) for each in results] == [1, 3, 5, 7]
    assert stored_size(store) < 3 * len(text)


SECRETS = {"ACME_API_KEY": "sk-planted-environment-4711", "DB_URL": "postgres://me:planted-login@db/main"}


def test_planted_secrets_are_nowhere_in_exchanges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    key, login = SECRETS["ACME_API_KEY"], "planted-login"
    header = "Authorization: Bearer planted-header-4711"

    @tool(approval="allow")
    def leak(what: str) -> Any:
        """Leak."""
        return {"env": key, "url": SECRETS["DB_URL"], "lines": [header], "asked": what}

    failure = exceptions.ModelHTTPError(503, "m", body={"error": f"bad key {key}"}, retry_after=0.0)
    spec = agent(
        "main",
        script(failure, call("leak", what=key), f"it is {key} and {header}"),
        instructions=f"Never say {key}.",
        model_settings={"extra_body": {"key": key}, "extra_headers": {"Authorization": "Bearer planted-header-4711"}},
        tools=[leak],
    )
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    for name in ("a.txt", "a.pdf"):
        (tmp_path / name).write_text(f"{key} {header}")

    runtime = runtime_on(store, spec, options={"record": True}, root=tmp_path)
    result = carry_out(runtime, {"input": f"use {key}", "attachments": ["a.txt", "a.pdf"]})

    assert result.status == "completed"
    kept = exchanges_of(store, result)
    assert len(kept) == 3
    shown = repr(kept) + json.dumps([[each.sent.setup, list(each.sent.messages)] for each in kept], default=str)
    done(store.aclose())
    written = b"".join(each.read_bytes() for each in tmp_path.glob("state.db*") if each.is_file())
    for secret in (key, login, "planted-header-4711"):
        assert secret not in shown
        assert secret.encode() not in written
        assert base64.b64encode(secret.encode())[:-4] not in written
    assert "[redacted ACME_API_KEY]" in shown


def test_attachments_are_kept_as_digests(store: ThreadStore) -> None:
    data = base64.b64encode(b"a picture of ann").decode()
    url = f"data:image/png;base64,{data}"
    message = ModelRequest(
        [UserPromptPart(["look", BinaryContent(b"a picture of ann", media_type="image/png"), ImageUrl(url)])]
    )

    runtime = runtime_on(store, agent("main", script("Ann.")), options={"record": True})
    result = carry_out(runtime, "who?", messages=[message, ModelResponse([TextPart("?")])])

    (kept,) = exchanges_of(store, result)
    _, picture, linked = kept.sent.messages[0]["parts"][0]["content"]
    assert picture["data"].startswith("sha256:")
    assert linked["url"].startswith("data:sha256:")
    assert data not in repr(kept)


@pytest.mark.parametrize(
    "damage",
    [
        lambda db: db.execute("UPDATE exchanges SET answer = '{}'"),
        lambda db: db.execute("UPDATE exchanges SET answer = 'x'"),
        lambda db: db.execute("DELETE FROM objects"),
        lambda db: db.execute("UPDATE objects SET body = '['"),
    ],
)
def test_damaged_exchanges_are_an_error_that_says_so(damage: Callable[[sqlite3.Connection], Any]) -> None:
    store = memory_store()
    result = recorded(store, agent("main", script("x")))
    done(store._write(damage))

    with pytest.raises(StoreError, match=r"can't be read|is missing"):
        exchanges_of(store, result)
