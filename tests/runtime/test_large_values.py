"""Large values that tools, functions and flows take and return are converted and freed in worker threads."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import threading
import time
import weakref
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturn,
    UserPromptPart,
)

from llm_do import AgentSpec, CallContext, Runtime, Update
from llm_do.concurrency.large_values import let_go
from llm_do.concurrency.worker_threads import WORKERS
from llm_do.runtime.record.redaction import Redactor
from llm_do.runtime.record.stored_records import Filter
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.text.json_data import to_json_data
from llm_do.threads import SqliteStore
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

CONVERTED: list[threading.Thread] = []
FREED: list[threading.Thread] = []
SECRET = "sk-0123456789abcdef"


@pytest.fixture(autouse=True)
def fresh() -> None:
    CONVERTED.clear()
    FREED.clear()


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", SECRET)


class Table(BaseModel):
    """A table that notes where it is converted."""

    name: str = "table"
    rows: list[int]

    @field_serializer("name")
    def _note(self, name: str) -> str:
        CONVERTED.append(threading.current_thread())
        return name


@dataclasses.dataclass
class Holder:
    table: Table


def table() -> Table:
    return Table(rows=list(range(10_000)))


def only_in_workers() -> bool:
    return bool(CONVERTED) and threading.main_thread() not in CONVERTED


def model() -> Table:
    """Return a large model."""
    return table()


def models() -> list[Table]:
    """Return several models that are large together."""
    return [Table(rows=list(range(1_000))) for _ in range(10)]


def record() -> Holder:
    """Return a dataclass with a large model."""
    return Holder(table())


def returned() -> ToolReturn[Any]:
    """Return a large model with something for the program."""
    return ToolReturn(return_value=table(), metadata={"seen": True})


def update() -> Update:
    """Return a large model as an update that changes nothing."""
    return Update(table())


@each_row("tool", [model, models, record, returned, update])
def test_a_tool_s_large_record_is_converted_in_a_worker(tool: Any, tmp_path: Path) -> None:
    CONVERTED.clear()
    runtime = runtime_of([agent("main", script(call(tool.__name__), "done"), tools=[tool])], root=tmp_path)
    result = carry_out(runtime)
    assert only_in_workers()
    text = results_of(result.messages)[0][2]
    assert "'rows': [0, 1, 2," in text


def test_a_large_record_within_the_limit_is_what_the_model_gets(tmp_path: Path) -> None:
    specs = [agent("main", script(call("model"), "done"), tools=[model])]
    result = carry_out(runtime_of(specs, root=tmp_path, max_result_bytes=10_000_000))
    assert only_in_workers()
    assert ast.literal_eval(results_of(result.messages)[0][2]) == to_json_data(table())


async def asks_for_one(input: object, ctx: CallContext) -> Any:
    """Pass a large model on from one function to another."""
    found = await ctx.call("find", "x")
    assert isinstance(found, Table)
    return await ctx.call("count", found)


def find(text: str) -> Table:
    """Find a table."""
    return table()


def count(input: Table, ctx: CallContext) -> Table:
    """Count the rows of a table."""
    input.name = f"{len(input.rows)} rows"
    return input


def large_runtime(tmp_path: Path, **options: Any) -> Runtime:
    return runtime_of([], asks_for_one, tools={"find": find, "count": count}, root=tmp_path, options=options)


def test_what_functions_pass_on_is_converted_in_workers(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    runtime = large_runtime(tmp_path, store=store, record=True)
    log = heard(runtime)
    result = carry_out(runtime)
    assert result.status == "completed", result.error
    assert result.output.name == "10000 rows"
    assert only_in_workers()
    expected = to_json_data(result.output)
    (finished,) = log.of("run_finished")
    assert finished.output == expected
    assert log.of("call_started")[-1].input == to_json_data(table())
    kept = asyncio.run(store.observations(Filter(run_id=result.run_id)))
    assert [each.data["output"] for each in kept if each.type == "run_finished"] == [expected]
    assert [each.seq for each in kept] == sorted(each.seq for each in kept)


def test_a_durable_run_gets_the_same_from_its_functions(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    result = carry_out(large_runtime(tmp_path, store=store, record=True, durable=True))
    assert result.status == "completed", result.error
    assert len(result.output.rows) == 10_000


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize("durable", [False, True])
def test_a_step_s_result_is_the_same_data_live_as_in_a_replay(tmp_path: Path, durable: bool) -> None:
    async def main(input: object, ctx: CallContext) -> str:
        return type(await ctx.step("level", lambda: Level.LOW)).__name__

    options = {"store": SqliteStore(tmp_path / "state.db"), "record": True, "durable": durable}
    assert carry_out(runtime_of([], main, root=tmp_path, options=options)).output == "int"


def test_a_large_result_is_freed_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(WORKERS, "submit", refuse)
    let_go([[[0] * 1_000] * 10])


@pytest.mark.usefixtures("secret")
def test_secrets_are_taken_out_of_large_events_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    def leak(input: object, ctx: CallContext) -> list[str]:
        return [f"{number}: {SECRET}" for number in range(10_000)]

    result = carry_out(runtime_of([], leak, root=tmp_path, options={"store": store, "record": True}))
    assert result.output[-1] == f"9999: {SECRET}"
    (kept,) = asyncio.run(store.observations(Filter(run_id=result.run_id, types=("run_finished",))))
    assert kept.data["output"] == [f"{number}: [redacted ACME_API_KEY]" for number in range(10_000)]
    assert SECRET.encode() not in (tmp_path / "state.db").read_bytes()


def test_an_entry_s_large_input_is_converted_in_workers(tmp_path: Path) -> None:
    runtime = runtime_of([], count, root=tmp_path, input_model=Table)
    result = carry_out(runtime, table())
    assert result.output.name == "10000 rows"
    assert only_in_workers()


class Row:
    """A row that notes where it is freed."""

    def __init__(self, number: int) -> None:
        self.text = f"{number}" * 1_000
        weakref.finalize(self, lambda: FREED.append(threading.current_thread()))

    def __str__(self) -> str:
        return self.text


def many_rows() -> list[list[Row]]:
    """Return many rows."""
    return [[Row(number)] for number in range(3_000)]


def test_a_large_result_is_freed_in_a_worker(tmp_path: Path) -> None:
    carry_out(runtime_of([agent("main", script(call("many_rows"), "done"), tools=[many_rows])], root=tmp_path))
    deadline = time.monotonic() + 60
    while len(FREED) < 3_000 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(FREED) == 3_000
    assert threading.main_thread() not in FREED


KEPT: list[list[list[int]]] = []


def kept_rows() -> list[list[int]]:
    """Return many rows that the project keeps."""
    KEPT.append([[number] * 100 for number in range(3_000)])
    return KEPT[-1]


def test_what_the_project_keeps_of_a_large_result_stays(tmp_path: Path) -> None:
    carry_out(runtime_of([agent("main", script(call("kept_rows"), "done"), tools=[kept_rows])], root=tmp_path))
    assert KEPT.pop() == [[number] * 100 for number in range(3_000)]


SEARCHED: list[tuple[threading.Thread, int]] = []
"""The thread of each search for secrets, and the characters that it looked through."""

MUCH = 3_000_000
PICTURE = BinaryContent(b"\xfb\xef\xbe" * 700_000, media_type="image/png")


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch, secret: None) -> list[tuple[threading.Thread, int]]:
    """Note where texts that are written are searched for secrets, which is done to all of them."""

    def note(kind: Any, name: str) -> None:
        search = getattr(kind, name)

        def noting(self: Any, text: str) -> str:
            SEARCHED.append((threading.current_thread(), len(text)))
            return search(self, text)

        monkeypatch.setattr(kind, name, noting)

    SEARCHED.clear()
    note(Redactor, "__call__")
    note(Seal, "close")
    return SEARCHED


async def large_step(input: object, ctx: CallContext) -> str:
    await ctx.step("text", lambda: SECRET + "x" * MUCH)
    return "done"


async def two_large_steps(input: object, ctx: CallContext) -> str:
    """Come to further large steps and events while the first ones are being written."""
    await asyncio.gather(*(ctx.step(f"text {number}", lambda: SECRET + "x" * MUCH) for number in range(3)))
    return "done"


def large_output(input: object, ctx: CallContext) -> list[str]:
    return [SECRET, "x" * MUCH]


def small_output(input: object, ctx: CallContext) -> str:
    return "done"


def picture() -> Any:
    """Return a picture."""
    return PICTURE


def picture_agent() -> AgentSpec:
    return agent("main", script(call("picture"), "done"), tools=[picture])


HISTORY: list[ModelMessage] = [ModelRequest([UserPromptPart(["what is it?", PICTURE])]), ModelResponse([TextPart("a")])]

WRITTEN: dict[str, tuple[Callable[[Path, Any], Runtime], dict[str, Any]]] = {
    "a step": (lambda root, options: runtime_of([], large_step, root=root, options=options), {}),
    "several": (lambda root, options: runtime_of([], two_large_steps, root=root, options=options), {}),
    "a result": (lambda root, options: runtime_of([], large_output, root=root, options=options), {}),
    "an input": (
        lambda root, options: runtime_of([], small_output, root=root, options=options),
        {"input": SECRET + "x" * MUCH},
    ),
    "a conversation": (
        lambda root, options: runtime_of([agent("main", script("done"))], root=root, options=options),
        {"messages": HISTORY},
    ),
    "a picture in a thread": (
        lambda root, options: runtime_of([picture_agent()], root=root, options=options),
        {"thread_id": "t"},
    ),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("what", WRITTEN)
def test_what_is_large_is_written_in_workers(what: str, durable: bool, tmp_path: Path, searches: Any) -> None:
    make, options = WRITTEN[what]
    runtime = make(tmp_path, {"store": SqliteStore(tmp_path / "state.db"), "record": True, "durable": durable})
    result = carry_out(runtime, options.get("input", "go"), **{k: v for k, v in options.items() if k != "input"})

    assert result.status == "completed", result.error
    assert not [size for thread, size in searches if size > 1_000_000 and thread is threading.main_thread()]
    assert SECRET.encode() not in (tmp_path / "state.db").read_bytes()


def test_a_picture_in_a_thread_is_read_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    carry_out(runtime_of([picture_agent()], root=tmp_path, options={"store": store}), thread_id="t")
    again = runtime_of([agent("main", script("again"))], root=tmp_path, options={"store": store})
    parts: list[Any] = [part for message in carry_out(again, thread_id="t").messages for part in message.parts]

    (read,) = [part.content for part in parts if part.part_kind == "tool-return"]
    assert (read.data, read.media_type) == (PICTURE.data, PICTURE.media_type)


def test_a_large_step_is_replayed(tmp_path: Path) -> None:
    done: list[int] = []

    async def main(input: object, ctx: CallContext) -> int:
        rows = await ctx.step("rows", lambda: done.append(1) or [{"n": number, "s": SECRET} for number in range(5_000)])
        if len(done) == 1:
            done.append(2)
            ctx.runtime.interrupt()  # type: ignore[attr-defined]
            await asyncio.sleep(60)
        return sum(row["n"] for row in rows)

    options = {"store": SqliteStore(tmp_path / "state.db"), "durable": True}
    runtime = runtime_of([], main, root=tmp_path, options=options)
    first = asyncio.run(runtime.execute("go", run_id="r"))
    again = asyncio.run(runtime.execute_again("r"))

    assert (first.status, again.output) == ("interrupted", sum(range(5_000)))
    assert done == [1, 2]


class Counted(dict[str, Any]):
    """A state that counts how often it is written."""

    written = 0

    def items(self) -> Any:
        Counted.written += 1
        return super().items()


def test_the_end_of_a_run_writes_a_state_once(tmp_path: Path) -> None:
    async def main(input: object, ctx: CallContext) -> str:
        ctx.thread.state = Counted(rows=[1])
        await ctx.call("wait", "x")
        Counted.written = 0  # what the batches of the run itself have written doesn't count
        return "done"

    async def wait(text: str) -> str:
        await asyncio.sleep(0.1)
        return text

    store = SqliteStore(tmp_path / "state.db")
    runtime = runtime_of([], main, tools={"wait": wait}, root=tmp_path, options={"store": store})
    assert carry_out(runtime, thread_id="t").status == "completed"
    assert Counted.written == 1
