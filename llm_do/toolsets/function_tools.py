"""Tools made of the package's own functions, whose schemas are built once per process: each takes a millisecond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from typing import Any

from pydantic_ai import Tool

from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["function_tool"]

_schemas: dict[tuple[CodeType, str | None], Any] = {}
"""What `Tool.function_schema` is, by the code of functions and their docstrings."""


def function_tool(function: Callable[..., Any], traits: ToolTraits, name: str | None = None) -> Tool[Any]:
    """Build a tool of a function, a method, or a function in a function.

    All that one `def` makes share a schema, whatever they close over, as long as their docstrings are the same.

    Args:
        function: The function, each of whose parameters has a description in its docstring.
        traits: What is known about the tool.
        name: Its name; the function's if not given.
    """
    key: tuple[CodeType, str | None] = (getattr(function, "__code__"), function.__doc__)  # noqa: B009 - a method's too
    schema = _schemas.get(key)
    if schema is None:
        made: Tool[Any] = Tool(function, require_parameter_descriptions=True)
        # Kept without what the first function closes over.
        schema = _schemas[key] = replace(made.function_schema, function=function_tool)
    return Tool(
        function,
        name=name,
        function_schema=replace(schema, function=function),
        metadata=traits.metadata(),
    )
