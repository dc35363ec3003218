"""`ctx.call` reaches the tools of declared toolsets, and takes an agent's input for a function's only parameter."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset, RunContext

from llm_do import AgentSpec, InputError, LlmDoError, PromptInput, RunError, Toolkit
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.context.call_context import CallContext
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def shout(ctx: RunContext[CallContext], text: str) -> str:
    """Shout."""
    return f"{text.upper()} from {ctx.deps.path}"


MATH: FunctionToolset[Any] = FunctionToolset([add, shout], id="math")
OPENED: list[str] = []


def factory(ctx: RunContext[CallContext]) -> FunctionToolset[Any]:
    OPENED.append(ctx.deps.path)

    def late(text: str) -> str:
        """Come late."""
        return f"late {text}"

    return FunctionToolset([late])


def called(name: str, value: Any, **toolsets: Any) -> Any:
    """The result of an entry that calls one name."""

    async def main(input: Any, ctx: CallContext) -> Any:
        return await ctx.call(name, value)

    return carry_out(runtime_of([], main, toolsets=toolsets or {"math": MATH, "later": factory}))


CALLS: list[tuple[str, Any, Any]] = [
    ("add", {"a": 1, "b": 2}, 3),
    ("add", {"a": 1}, 2),
    ("add", {"input": 4}, 5),
    ("math::add", {"a": 1}, 2),
    ("shout", "hi", "HI from main/shout"),
    ("shout", {"text": "hi"}, "HI from main/shout"),
    ("shout", {"input": "hi"}, "HI from main/shout"),
    ("shout", PromptInput(input="hi"), "HI from main/shout"),
    ("late", {"text": "a"}, "late a"),
    ("late", "a", "late a"),
]


@each_row("name, value, output", CALLS)
def test_a_tool_of_a_toolset_is_called_by_its_name(name: str, value: Any, output: Any) -> None:
    assert called(name, value).output == output


def test_a_toolset_whose_tools_are_known_opens_no_factory() -> None:
    OPENED.clear()
    called("add", {"a": 1})

    assert OPENED == []


def test_prefixed_and_filtered_tools_are_called_as_they_are_shown() -> None:
    toolset = MATH.prefixed("math")

    assert called("math_add", {"a": 1}, math=toolset).output == 2
    assert "nothing is registered under the name 'add'" in str(called("add", {"a": 1}, math=toolset).error)


def test_a_tool_of_two_toolsets_has_to_be_named_with_one() -> None:
    both = {"one": FunctionToolset([add]), "two": FunctionToolset([add])}
    error = called("add", {"a": 1}, **both).error

    assert isinstance(error, RunError)
    assert error.message == "'add' is a tool of the toolsets `one` and `two`"
    assert error.hint == "Say which: one::add."
    assert called("two::add", {"a": 1}, **both).output == 2


def test_an_agents_tool_calls_the_tools_of_a_toolset() -> None:
    """The seed's way: `ctx.deps.call_agent` calls an agent or a tool, whichever has the name."""

    async def ask(ctx: RunContext[CallContext], text: str) -> str:
        """Ask."""
        return await ctx.deps.call_agent("shout", {"input": text})

    model = script(call("ask", text="hi"), "done")
    runtime = runtime_of([agent("main", model, tools=[ask])], toolsets={"math": MATH})
    ear = heard(runtime)
    result = carry_out(runtime)

    assert results_of(result.messages)[0][2] == "HI from main/shout"
    assert [record.path for record in result.calls] == ["main/shout"]
    assert [event.path for event in ear.of("call_started")] == ["main", "main/shout"]


def test_the_built_in_toolsets_of_the_calling_agent_count(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")

    async def peek(ctx: RunContext[CallContext]) -> str:
        """Peek."""
        return await ctx.deps.call("read_file", {"path": "a.txt"})

    spec = agent("main", script(call("peek"), "done"), tools=[peek], toolsets=["filesystem_project"])
    result = carry_out(runtime_of([spec], root=tmp_path))

    assert results_of(result.messages)[0][2] == "hello"


def test_a_configured_toolset_is_reached(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")

    async def main(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("read_file", {"path": "a.txt"})

    files = BuiltinToolset("files", {"type": "filesystem", "root": "."})
    assert carry_out(runtime_of([], main, toolsets={"files": files}, root=tmp_path)).output == "hello"


def test_wrong_arguments_are_an_input_error() -> None:
    result = called("add", {"a": "one"})

    assert isinstance(result.error, InputError)
    assert result.error.message.startswith("input does not fit add: a: Input should be a valid integer")
    assert result.error.hint == "It takes a, b."


def test_an_unknown_name_proposes_the_tools_of_toolsets() -> None:
    error = called("shuot", "hi").error

    assert isinstance(error, RunError)
    assert error.message == "nothing is registered under the name 'shuot'"
    assert "shout" in str(error.hint)


def mood(text: str) -> str:
    """Say what mood a text is in."""
    return f"{text}: good"


def optional(text: str, loud: bool = False) -> str:
    """Say it."""
    return text.upper() if loud else text


INPUTS: list[tuple[Any, Any, str]] = [
    (mood, "x", "x: good"),
    (mood, {"input": "x"}, "x: good"),
    (mood, {"input": "x", "attachments": []}, "x: good"),
    (mood, PromptInput(input="x"), "x: good"),
    (mood, {"text": "x"}, "x: good"),
    (optional, {"input": "x"}, "x"),
    (optional, "x", "x"),
]


@each_row("function, value, output", INPUTS)
def test_a_function_takes_the_input_of_the_agent_that_it_was(function: Any, value: Any, output: str) -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("it", value)

    assert carry_out(runtime_of([], main, tools={"it": function})).output == output


def test_a_function_with_an_input_of_its_own_keeps_it() -> None:
    def echo(input: dict[str, int]) -> dict[str, int]:
        """Echo."""
        return input

    async def main(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("echo", {"input": {"a": 1}})

    assert carry_out(runtime_of([], main, tools={"echo": echo})).output == {"a": 1}


def test_the_agent_before_it_took_the_same() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("it", {"input": "x"})

    spec = AgentSpec("it", model=script("x: good"))
    assert carry_out(runtime_of([spec], main)).output == "x: good"


DESK = Toolkit("desk", context={"visits": 0})


@DESK.tool(enables_states=["in"])
async def login(user: str, pause: float = 0) -> Any:
    """Log in."""
    visits = DESK.context.get("visits")
    await asyncio.sleep(pause)
    return f"hello {user}", {"user": user, "visits": visits + 1}


@DESK.tool(required_states=["in"], disables_states=["in"])
def leave() -> Any:
    """Leave."""
    return f"goodbye {DESK.context.get('user')}"


def with_desk(main: Any, *specs: AgentSpec, **options: Any) -> Any:
    return carry_out(runtime_of(specs, main, toolsets={"desk": DESK}), **options)


def test_a_toolkits_tools_are_called_from_python_and_the_entry_keeps_its_state() -> None:
    async def main(input: Any, ctx: CallContext) -> list[Any]:
        return [await ctx.call("desk::login", {"user": "ann"}), await ctx.call("leave", {})]

    result = with_desk(main)

    assert result.output == ["hello ann", "goodbye ann"]
    state = result.execution_context.toolkits["desk"]
    assert (state.context.get("visits"), state.unlocked_states) == (1, frozenset())


def test_a_toolkits_gate_holds_for_python_too_and_says_what_unlocks_a_tool() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("desk::leave", {})

    error = with_desk(main).error

    assert isinstance(error, LlmDoError)
    assert "leave is not available now: it needs the state 'in', which login unlocks" in str(error)


def test_the_next_run_continues_with_the_state_that_python_has_left() -> None:
    async def arrive(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("login", {"user": "ann"})

    async def depart(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("leave", {})

    before = with_desk(arrive)

    assert with_desk(depart, execution_context=before.execution_context).output == "goodbye ann"


def test_calls_at_the_same_time_change_a_state_one_after_the_other() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return await asyncio.gather(*(ctx.call("login", {"user": name, "pause": 0.001}) for name in ("a", "b", "c")))

    result = with_desk(main)

    assert result.output == ["hello a", "hello b", "hello c"]
    assert result.execution_context.toolkits["desk"].context.get("visits") == 3


def test_a_failed_call_from_python_changes_nothing() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        await ctx.call("login", {"user": "ann"})
        with pytest.raises(InputError):
            await ctx.call("login", {"user": 3, "pause": "long"})
        return await ctx.call("leave", {})

    assert with_desk(main).output == "goodbye ann"


def test_the_state_of_an_agents_call_is_not_changed_behind_its_back() -> None:
    async def ask(ctx: RunContext[CallContext]) -> str:
        """Ask."""
        return await ctx.deps.call("desk::leave", {})

    spec = agent("main", script(call("ask"), "done"), tools=[ask], toolsets=["desk"])
    result = carry_out(runtime_of([spec], toolsets={"desk": DESK}))

    (error,) = result.errors
    assert "'leave' is a tool of the toolkit 'desk', whose state belongs to the call of main" in error.message


def test_a_call_where_nothing_has_a_name_says_so() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("main", "x")

    error = carry_out(runtime_of([], main)).error

    assert isinstance(error, RunError)
    assert error.message == "nothing is registered under the name 'main'"
    assert error.hint == "Agents, flows and exported functions have names, and there are none."
