"""What a run can start with and what it returns: functions and agents."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from llm_do import (
    CallContext,
    EntryError,
    InputError,
    LlmDoError,
    PromptInput,
    RunError,
    Runtime,
    Tool,
    ToolError,
)
from tests.support.runs import agent, carry_out, project_of, runtime_of
from tests.support.scripted import script
from tests.support.tables import each_row


def echo() -> Any:
    """A model that repeats its prompt."""
    return script(lambda messages, info: str(messages[-1].parts[-1].content))


class Plain(BaseModel):
    n: int


@dataclass
class Point:
    x: int
    y: int


def test_an_async_entry_calls_others_by_name() -> None:
    async def main(input: PromptInput, ctx: CallContext) -> str:
        first = await ctx.call("a", {"input": input.input})
        return await ctx.call_agent("b", first)

    result = carry_out(runtime_of([agent("a", echo()), agent("b", script("done"))], main), "hello")

    assert (result.status, result.output) == ("completed", "done")
    assert result.messages == []
    assert [record.path for record in result.calls] == ["main/a", "main/b"]
    assert [len(record.messages) for record in result.calls] == [2, 2]


def test_a_sync_entry_runs_in_a_worker_and_may_return_a_call() -> None:
    seen: list[str] = []

    def main(input: PromptInput, ctx: CallContext) -> Any:
        seen.append(threading.current_thread().name)
        return ctx.call("a", input.input)

    assert carry_out(runtime_of([agent("a", echo())], main), "hello").output == "hello"
    assert seen != [threading.current_thread().name]
    assert carry_out(runtime_of([], lambda input, ctx: input.input.upper()), "quiet").output == "QUIET"


@each_row(
    "value, shown",
    [
        ("text", "text"),
        (None, None),
        ({"a": [1]}, {"a": [1]}),
        (7, 7),
        (Plain(n=1), {"n": 1}),
        (Point(1, 2), {"x": 1, "y": 2}),
        ((1, "a"), [1, "a"]),
        (b"\x00\xff", "AP8="),
        (Path("x"), "x"),
    ],
)
def test_an_entry_may_return_anything(value: Any, shown: Any) -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return value

    result = carry_out(runtime_of([], main))

    assert result.output == value
    assert json.loads(json.dumps(result.to_dict()))["output"] == shown


def _numbers(n: int) -> Any:
    yield from range(n)


async def _anumbers(n: int) -> Any:
    for number in range(n):
        yield number


@pytest.mark.parametrize("pieces", [_numbers, _anumbers])
def test_a_generators_values_are_collected_for_the_run_and_for_its_caller(pieces: Any) -> None:
    def entry(input: PromptInput, ctx: CallContext) -> Any:
        return {"all": pieces(3)}

    async def main(input: PromptInput, ctx: CallContext) -> Any:
        return [await ctx.call("pieces", {"n": 2}), await ctx.call("step", "x")]

    assert carry_out(runtime_of([], entry)).to_dict()["output"] == {"all": [0, 1, 2]}
    result = carry_out(runtime_of([], main, tools={"pieces": pieces, "step": entry}))
    assert result.output == [[0, 1], {"all": [0, 1, 2]}]
    assert carry_out(runtime_of([], main, tools={"pieces": pieces}), {"n": 2}, entry="pieces").output == [0, 1]


def _ring() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _nest() -> list[Any]:
    nest: list[Any] = []
    for _ in range(5000):
        nest = [nest]
    return nest


@pytest.mark.parametrize("make", [_ring, _nest])
def test_output_that_cannot_be_serialized_is_an_error_that_names_the_entry(make: Any) -> None:
    def broken(input: PromptInput, ctx: CallContext) -> Any:
        return make()

    async def main(input: PromptInput, ctx: CallContext) -> Any:
        with pytest.raises(EntryError, match="broken returned a list that can't be written as JSON data"):
            await ctx.call("broken", "x")
        return "handled"

    failed = carry_out(runtime_of([], broken))
    survived = carry_out(runtime_of([], main, tools={"broken": broken}))

    assert isinstance(failed.error, EntryError)
    assert failed.error.message.startswith("broken returned a list that can't be written as JSON data: ValueError")
    assert survived.output == "handled"
    assert [record.status for record in survived.calls] == ["failed"]


def project_module(tmp_path: Path, text: str) -> ModuleType:
    """A module of the project, with its file below the project root."""
    path = tmp_path / "flow.py"
    path.write_text(text)
    module = ModuleType("flow")
    exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102
    return module


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_an_entrys_error_names_file_and_line(tmp_path: Path, kind: str) -> None:
    module = project_module(tmp_path, f"def deep():\n    return 1 / 0\n\n{kind} main(input, ctx):\n    return deep()\n")
    result = carry_out(Runtime(project_of([], module.main, root=tmp_path)))

    assert isinstance(result.error, EntryError)
    assert (result.error.file, result.error.line) == ("flow.py", 2)
    assert isinstance(result.error.__cause__, ZeroDivisionError)
    assert (result.status, result.exit_code) == ("failed", 1)
    [record] = result.to_dict()["errors"]
    assert (record["type"], record["file"], record["line"]) == ("EntryError", "flow.py", 2)
    assert "ZeroDivisionError" in record["message"]


@pytest.mark.parametrize("error", [SystemExit(2), StopIteration(), StopAsyncIteration(), KeyError("x")], ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_an_entry_raises_is_an_entry_error(error: BaseException, kind: str) -> None:
    def main(input: Any, ctx: CallContext) -> None:
        raise error

    async def amain(input: Any, ctx: CallContext) -> None:
        raise error

    result = carry_out(runtime_of([], main if kind == "sync" else amain))

    assert isinstance(result.error, EntryError)
    assert type(error).__name__ in result.error.message or "StopIteration" in result.error.message


def test_an_entry_may_handle_a_childs_failure() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        try:
            return await ctx.call("a", "x")
        except RunError as error:
            return f"handled: {error.agent_path}"

    result = carry_out(runtime_of([agent("a", script(ValueError("x")))], main))

    assert (result.status, result.output) == ("completed", "handled: main/a")
    assert [error.agent_path for error in result.errors] == ["main/a"]


def test_an_unknown_name_suggests_the_closest() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("analyser", "x")

    result = carry_out(runtime_of([agent("analyzer", echo())], main))

    assert isinstance(result.error, RunError)
    assert "analyser" in result.error.message
    assert "analyzer" in str(result.error.hint)


@pytest.mark.parametrize(
    ("name", "given", "kind"),
    [
        ("unknown", "x", "RunError"),
        ("kit", "x", "RunError"),
        ("add", {"b": 1}, "InputError"),
        ("a", {"text": "x"}, "InputError"),
        ("keyless", "x", "ModelUnavailableError"),
        ("main", "x", "DepthLimitError"),
    ],
)
def test_a_call_that_could_not_start_is_listed_even_if_the_run_survives_it(
    name: str, given: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def add(a: int, b: int) -> int:
        return a + b

    async def main(input: PromptInput, ctx: CallContext) -> Any:
        try:
            return await ctx.call(name, given)
        except LlmDoError as error:
            return type(error).__name__

    specs = [agent("a", echo()), agent("keyless", "openai:gpt-5")]
    tools = {"add": add, "main": main}
    result = carry_out(runtime_of(specs, main, tools=tools, toolsets={"kit": object()}, max_depth=3))

    assert (result.status, result.output) == ("completed", kind)
    assert [error.type for error in result.errors] == [kind]


def test_an_exported_function_is_called_with_validated_arguments() -> None:
    def add(a: int, b: int = 2) -> int:
        return a + b

    def fails(n: int) -> None:
        raise ToolError(f"no {n}")

    async def main(input: Any, ctx: CallContext) -> Any:
        outcomes: list[Any] = [await ctx.call("add", {"a": "1"}), await ctx.call("upper", "one field")]
        for name, given in (("add", {"b": 1}), ("add", ["a"]), ("add", None), ("fails", {"n": 1})):
            try:
                await ctx.call(name, given)
            except (InputError, ToolError) as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        return outcomes

    result = carry_out(runtime_of([], main, tools={"add": add, "upper": _upper, "fails": fails}))

    assert result.output[:2] == [3, "ONE FIELD"]
    assert result.output[2].startswith("InputError: input does not fit add: a: Field required")
    assert [text.partition(":")[0] for text in result.output[2:]] == ["InputError"] * 3 + ["ToolError"]
    assert [record.path for record in result.calls] == ["main/add", "main/upper", "main/fails"]


def _upper(text: str) -> str:
    return text.upper()


def test_a_json_schema_tool_called_from_python_is_validated_too() -> None:
    class Query(Tool):
        name = "query"
        parameters: ClassVar[Mapping[str, Any]] = {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        }

        async def execute(self, **kwargs: Any) -> Any:
            return kwargs["n"]

    async def main(input: Any, ctx: CallContext) -> Any:
        good = await ctx.call("query", {"n": 1})
        with pytest.raises(InputError, match="integer"):
            await ctx.call("query", {"n": "one"})
        return good

    assert carry_out(runtime_of([], main, tools={"query": Query()})).output == 1


def test_an_entry_annotated_with_text_gets_the_prompts_text() -> None:
    async def main(input: str, ctx: CallContext) -> str:
        return f"{input}!"

    def other(input: Any, ctx: CallContext) -> str:
        return input.input

    assert carry_out(runtime_of([], main), "go").output == "go!"
    assert carry_out(runtime_of([], other), "go").output == "go"
