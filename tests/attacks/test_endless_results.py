"""Tools that return generators: those with an end become lists, those without one are cut or time out."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import ToolReturn

from llm_do import Update
from llm_do.runtime.tools.iterated_results import MAX_ITEMS
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script


def counting(end: int | None = None) -> Iterator[int]:
    """Count."""
    yield from range(end) if end is not None else itertools.count()


async def counting_async(end: int | None = None) -> AsyncIterator[int]:
    """Count."""
    for number in counting(end):
        yield number


@dataclass
class Record:
    numbers: Iterator[int]


def result_of(function: Callable[..., Any], root: Path | None = None, **settings: Any) -> Any:
    """Return the result event of a tool's only call."""
    function.__name__ = "go"
    runtime = runtime_of([agent("main", script(call("go"), "done"), tools=[function])], root=root, **settings)
    ear = heard(runtime)
    result = carry_out(runtime)
    assert (result.status, result.output) == ("completed", "done"), result.error
    return ear.of("tool_result")[0]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: counting(3), [0, 1, 2]),
        (lambda: counting_async(3), [0, 1, 2]),
        (lambda: map(str, range(2)), ["0", "1"]),
        (lambda: {"rows": counting(2), "more": [counting_async(1)], "n": 5}, {"rows": [0, 1], "more": [[0]], "n": 5}),
        (lambda: (counting(1), "x"), [[0], "x"]),
        (lambda: Update(counting(2)), [0, 1]),
        (lambda: ToolReturn(counting(2)), [0, 1]),
        (lambda: counting(0), []),
    ],
)
def test_a_finite_generator_becomes_a_list(made: Callable[[], Any], expected: Any) -> None:
    ended = result_of(lambda: made())
    assert (ended.status, ended.result) == ("success", expected)


@pytest.mark.parametrize("annotation", [Iterator[int], AsyncIterator[int], Record, "Iterator[int]"])
def test_the_return_annotation_of_a_tool_may_be_anything(annotation: Any) -> None:
    def go() -> Any:
        """Count."""
        return counting(2)

    go.__annotations__["return"] = annotation
    ended = result_of(go)
    assert (ended.status, ended.result) == ("success", [0, 1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "inside"),
    list(itertools.product([counting, counting_async, itertools.count], [False, True])),
)
def test_an_endless_generator_is_truncated(function: Callable[[], Any], inside: bool, tmp_path: Path) -> None:
    def go() -> Any:
        """Count."""
        return {"numbers": function()} if inside else function()

    ended = result_of(go, tmp_path, record=True)

    assert ended.status == "success"
    assert len(ended.result) < 70_000
    assert "the rest was left out" in ended.result
    kept = json.loads(next((tmp_path / ".llm-do" / "artifacts").glob("*.txt")).read_text())
    numbers = kept["numbers"] if inside else kept
    assert numbers[:-1] == list(range(len(numbers) - 1))
    assert MAX_ITEMS * 0.99 < len(json.dumps(numbers)) < MAX_ITEMS * 1.01


def test_a_slow_endless_generator_times_out_and_is_abandoned() -> None:
    closed = threading.Event()

    def slow() -> Any:
        """Say nothing, slowly."""
        try:
            while True:
                time.sleep(0.001)
                yield ""
        finally:
            closed.set()

    assert result_of(slow, tool_timeout=0.05).status == "timed_out"
    assert closed.wait(30)


def test_an_async_generator_that_never_awaits_times_out() -> None:
    async def busy() -> Any:
        """Say nothing, again and again."""
        while True:
            yield ""

    assert result_of(busy, tool_timeout=0.01).status == "timed_out"


@pytest.mark.parametrize("made", [lambda: Record(counting()), lambda: [{"record": Record(counting())}]])
def test_a_generator_in_an_object_is_refused(made: Callable[[], Any]) -> None:
    ended = result_of(lambda: made())
    assert (ended.status, ended.result) == (
        "failed",
        "`numbers` of the Record that it returned is an iterator. Return a list there.",
    )


def test_generators_of_generators_are_refused() -> None:
    ended = result_of(lambda: (counting() for _ in range(2)))
    assert (ended.status, ended.result) == (
        "failed",
        "it returned an iterator of iterators. Return a list of lists.",
    )


def test_a_failing_generator_is_a_failed_result() -> None:
    def breaking() -> Any:
        """Break."""
        yield 1
        raise OSError("gone")

    ended = result_of(breaking)
    assert (ended.status, ended.result) == ("failed", "OSError: gone")


def test_a_value_that_contains_itself_is_a_failed_result() -> None:
    def endless() -> Any:
        """Return itself."""
        data: dict[str, Any] = {}
        data["self"] = data
        return data

    assert result_of(endless).status == "failed"
