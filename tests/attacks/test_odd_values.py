"""Numbers that JSON lacks, numbers too long to print, and errors that can't be printed or aren't an `Exception`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pydantic_ai.messages import ToolCallPart

from llm_do import HookError, HookPoint, RunResult
from llm_do.project.faults import find_fault
from llm_do.text.json_data import to_json_data
from llm_do.text.output_text import output_text
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script

HERE = Path(__file__).parent
LONG = 10**5000
"""Python refuses to write it in decimals."""


def strict(data: Any) -> str:
    return json.dumps(data, allow_nan=False)


def measure(value: float, more: dict[str, Any] | None = None) -> str:
    """Note a measurement."""
    return "saved"


@pytest.mark.parametrize("args", ['{"value": NaN}', '{"value": 1, "more": {"x": [-Infinity]}}', '{"value": 1e999}'])
@pytest.mark.parametrize("approvals", ["approve_all", "reject_all"])
def test_events_and_results_have_only_json_numbers(args: str, approvals: Any) -> None:
    runtime = runtime_of(
        [agent("main", script(ToolCallPart("measure", args, tool_call_id="c"), "done"), tools=[measure])],
        approvals=approvals,
    )
    ear = heard(runtime)
    result = carry_out(runtime)
    assert result.status == "completed"
    for event in ear.events:
        strict(to_json_data(event.to_dict()))
    strict(to_json_data(result.to_dict()))


def test_not_a_number_is_null_everywhere() -> None:
    assert to_json_data({"a": [float("nan"), float("inf"), 1.5]}) == {"a": [None, None, 1.5]}
    assert to_json_data(float("-inf")) is None
    assert output_text([float("nan")]) == "[null]"


def returning(value: Any) -> Callable[[], Any]:
    def give() -> Any:
        """Give it."""
        return value

    return give


@pytest.mark.parametrize("value", [LONG, {"a": [LONG]}, -LONG], ids=["bare", "inside", "negative"])
def test_a_number_too_long_to_print_is_still_reported(value: Any) -> None:
    runtime = runtime_of([agent("main", script(call("give"), "done"), tools=[returning(value)])])
    ear = heard(runtime)
    result = carry_out(runtime)
    assert (result.status, result.output) == ("completed", "done"), result.error
    assert ear.of("tool_result")[0].status == "success"
    strict(to_json_data(result.to_dict()))


def test_an_entry_may_return_a_number_too_long_to_print() -> None:
    def entry(input: Any, ctx: Any) -> Any:
        return {"n": LONG}

    from llm_do import Runtime

    result = carry_out(Runtime(project_of(entry=entry)))
    assert result.status == "completed", result.error
    assert json.loads(output_text(result.output))["n"].startswith("0x")


class Panic(BaseException):
    """As libraries in other languages raise when they break down."""


class MuteError(Exception):
    def __str__(self) -> NoReturn:
        raise RuntimeError("it can't say")


def failing(error: BaseException) -> tuple[Any, Any]:
    def at_once() -> str:
        """Fail."""
        raise error

    async def later() -> str:
        """Fail."""
        raise error

    return at_once, later


@pytest.mark.parametrize("error", [Panic("broken"), MuteError(), BaseExceptionGroup("several", [Panic("broken")])])
@pytest.mark.parametrize("name", ["at_once", "later"])
def test_whatever_a_tool_raises_is_a_failed_result(error: BaseException, name: str) -> None:
    runtime = runtime_of([agent("main", script(call(name), "done"), tools=list(failing(error)))])
    ear = heard(runtime)
    result = carry_out(runtime)
    assert (result.status, result.output) == ("completed", "done"), result.error
    assert [each.status for each in ear.of("tool_result")] == ["failed"]
    assert find_fault(error).type in str(ear.of("tool_result")[0].result)


@pytest.mark.parametrize("error", [Panic("broken"), MuteError()])
def test_whatever_an_entry_raises_ends_the_run_properly(error: BaseException) -> None:
    def entry(input: Any, ctx: Any) -> Any:
        raise error

    from llm_do import Runtime

    runtime = Runtime(project_of(entry=entry))
    ear = heard(runtime)
    result: RunResult = carry_out(runtime)
    assert result.status == "failed"
    assert ear.types[-1] == "run_failed"
    assert type(error).__name__ in str(result.error)


def raising(error: BaseException, later: bool) -> Any:
    def at_once(*args: Any, **data: Any) -> None:
        raise error.with_traceback(None)

    async def afterwards(*args: Any, **data: Any) -> None:
        raise error.with_traceback(None)

    return afterwards if later else at_once


@pytest.mark.sample(12)
@pytest.mark.parametrize("error", [Panic("broken"), SystemExit(3), BaseExceptionGroup("several", [Panic("broken")])])
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("point", list(HookPoint))
def test_whatever_a_hook_raises_ends_the_run_with_its_name(point: HookPoint, later: bool, error: BaseException) -> None:
    answers = [ValueError("x")] if point is HookPoint.ERROR else [call("measure", value=1), "done"]
    hook = raising(error, later)
    runtime = runtime_of([agent("main", script(*answers), tools=[measure], hooks=[(point, hook)])], root=HERE)
    ear = heard(runtime)
    result = carry_out(runtime)
    assert result.status == "failed"
    assert ear.types[-1] == "run_failed"
    assert isinstance(result.error, HookError)
    assert result.error.message == f"the hook {hook.__name__} at {point.value} raised {find_fault(error).text}"
    assert result.error.__cause__ is error
    assert (result.error.file, result.error.line) == ("test_odd_values.py", hook.__code__.co_firstlineno + 1)
    assert result.errors[-1].type == "HookError"


@pytest.mark.parametrize("error", [Panic("broken"), SystemExit(3), MuteError(), TimeoutError("gone")])
@pytest.mark.parametrize("later", [False, True])
def test_an_agent_continues_without_a_context_provider_that_raises(later: bool, error: BaseException) -> None:
    provider = raising(error, later)
    runtime = runtime_of([agent("main", script("done"), context_providers=[provider])], root=HERE)
    ear = heard(runtime)
    result = carry_out(runtime)
    assert (result.status, result.output) == ("completed", "done"), result.error
    place = f" (test_odd_values.py:{provider.__code__.co_firstlineno + 1})"
    if isinstance(error, TimeoutError) and not later and sys.version_info < (3, 13):
        place = ""  # asyncio made another of one that came out of a thread
    assert [each.message for each in ear.of("warning")] == [
        f"the context provider {provider.__name__} failed: {find_fault(error).text}{place}"
    ]
