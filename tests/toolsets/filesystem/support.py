"""File toolsets and calls to their tools as PydanticAI makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from llm_do.formats.toolset_config import parse_options
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.tools.traits import BuiltinContext

__all__ = ["Call", "caller", "configured", "context"]

Call = Callable[..., Any]

CONTEXT = RunContext[object](deps=None, model=TestModel(), usage=RunUsage())


def context(project: Path) -> BuiltinContext:
    """Return the context that a file toolset is built from."""
    return BuiltinContext("files", project, project, [project / "tools.py"])


def configured(project: Path, **options: object) -> FunctionToolset[object]:
    """Return the toolset that a manifest with these options configures."""
    item = BuiltinToolset("files", {"type": "filesystem"})
    return item.load()(context(project), parse_options("files", {"type": "filesystem", **options}))


def caller(toolset: FunctionToolset[object]) -> Call:
    """Return a function that calls a tool as PydanticAI does: it validates the arguments, then runs it."""

    def call(name: str, **args: object) -> Any:
        async def run() -> Any:
            tool = (await toolset.get_tools(CONTEXT))[name]
            valid = tool.args_validator.validate_python(args)
            return await toolset.call_tool(name, valid, CONTEXT, tool)

        return asyncio.run(run())

    return call
