"""A tool or a toolset that can't be built, or can't list its tools, is named with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do import CallContext, Runtime
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import script
from tests.support.tables import each_row


def mistyped(x: "Nope") -> str:  # type: ignore[name-defined] # noqa: F821, UP037
    """Its annotation names nothing."""
    return ""


def no_address(ctx: object) -> AbstractToolset[Any]:
    raise KeyError("no address")


class Unlisted(FunctionToolset[Any]):
    """A toolset that can't say what it has."""

    async def get_tools(self, ctx: Any) -> Any:
        raise KeyError("no list")


async def calls_mistyped(input: object, ctx: CallContext) -> object:
    return await ctx.call("mistyped", {"x": 1})


async def calls_a_toolset(input: object, ctx: CallContext) -> object:
    return await ctx.call("kit::go", {"x": 1})


UNBUILT: dict[str, tuple[Callable[[], Runtime], str]] = {
    "a function": (
        lambda: runtime_of([agent("main", script("x"), tools=[mistyped])]),
        "agent 'main' can't be built: the tool 'mistyped': NameError: name 'Nope' is not defined",
    ),
    "a name": (
        lambda: runtime_of([agent("main", script("x"), tools=["odd"])], tools={"odd": mistyped}),
        "agent 'main' can't be built: the tool 'odd': NameError: name 'Nope' is not defined",
    ),
    "a tool among toolsets": (
        lambda: runtime_of([agent("main", script("x"), toolsets=["odd"])], tools={"odd": mistyped}),
        "agent 'main' can't be built: the tool 'odd': NameError: name 'Nope' is not defined",
    ),
    "a factory": (
        lambda: runtime_of([agent("main", script("x"), toolsets=[no_address])]),
        "the toolset 'no_address' can't be made: KeyError: 'no address'",
    ),
    "a toolset": (
        lambda: runtime_of([agent("main", script("x"), toolsets=["kit"])], toolsets={"kit": Unlisted()}),
        "the toolset 'kit' can't list its tools: KeyError: 'no list'",
    ),
    "a function that code calls": (
        lambda: runtime_of([], calls_mistyped, tools={"mistyped": mistyped}),
        "the tool 'mistyped' can't be built: NameError: name 'Nope' is not defined",
    ),
    "a toolset that code calls": (
        lambda: runtime_of([], calls_a_toolset, toolsets={"kit": Unlisted()}),
        "the toolset 'kit' can't list its tools: KeyError: 'no list'",
    ),
}


@each_row("kind", UNBUILT)
def test_a_tool_or_a_toolset_that_cannot_be_built_is_named_with_its_place(kind: str) -> None:
    make, message = UNBUILT[kind]
    (record,) = carry_out(make()).errors

    assert record.message == message
    assert record.agent_path in ("main", "calls_mistyped", "calls_a_toolset")
    assert record.file is not None
    assert record.file.endswith("test_build_faults.py")
