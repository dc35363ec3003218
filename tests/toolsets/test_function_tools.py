"""Tools of the package's own functions share the schema of what one `def` makes, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

from pydantic_ai import RunContext, Tool

from llm_do.project.tools.builtin_toolsets import TODO
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.toolsets.function_tools import function_tool

TRAITS = ToolTraits(TODO["todo_add"], "notes", "todo_add")


class Notes:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def add(self, ctx: RunContext[Any], text: str) -> str:
        """Add a note.

        Args:
            text: The note.
        """
        return self.prefix + text


def adding(prefix: str, words: str = "Add a note.") -> Callable[..., Any]:
    async def add(text: str) -> str:
        return prefix + text

    add.__doc__ = f"{words}\n\nArgs:\n    text: The note.\n"
    return add


async def said(tool: Tool[Any]) -> Any:
    return await tool.function_schema.call({"text": "x"}, None)  # type: ignore[arg-type]


def test_tools_of_one_def_share_a_schema_and_call_their_own_function() -> None:
    for one, other in ((Notes("1").add, Notes("2").add), (adding("1"), adding("2"))):
        tools = [function_tool(one, TRAITS), function_tool(other, TRAITS, "write")]

        assert tools[0].function_schema.json_schema is tools[1].function_schema.json_schema
        assert [tool.name for tool in tools] == ["add", "write"]
        assert {tool.description for tool in tools} == {"Add a note."}
        assert [asyncio.run(said(tool)) for tool in tools] == ["1x", "2x"]
        assert tools[0].metadata == TRAITS.metadata()


def test_a_tool_is_what_pydantic_ai_makes_of_the_function() -> None:
    plain: Tool[Any] = Tool(adding("1"), require_parameter_descriptions=True)
    tool = function_tool(adding("2"), TRAITS)

    assert tool.takes_ctx is plain.takes_ctx is False
    assert tool.tool_def.parameters_json_schema == plain.tool_def.parameters_json_schema
    assert function_tool(Notes("1").add, TRAITS).takes_ctx


def test_another_docstring_is_another_description() -> None:
    tools = [function_tool(adding("1", words), TRAITS) for words in ("Add a note.", "Add one more.", "Add a note.")]

    assert [tool.description for tool in tools] == ["Add a note.", "Add one more.", "Add a note."]


def test_a_schema_keeps_nothing_of_the_function_it_was_made_of() -> None:
    notes = Notes("1")
    gone = weakref.ref(notes)
    function_tool(notes.add, TRAITS)
    del notes
    gc.collect()

    assert gone() is None
