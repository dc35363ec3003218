"""Toolsets from factories, one for each call of an agent, and the error for a factory that returns something else.

`llm_do.runtime.agents.agent_builder` resolves the names of toolsets.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset

from llm_do.errors import EntryError, LlmDoError, RunError
from llm_do.project.faults import function_place, project_error

__all__ = ["per_call_toolset"]


def per_call_toolset(name: str, factory: Callable[..., Any], root: Path) -> AbstractToolset[Any]:
    """A toolset that the factory makes anew for each call of its agent; `root` is the project's folder."""

    async def make(ctx: RunContext[Any]) -> AbstractToolset[Any] | None:
        try:
            made: Any = factory(ctx)
            if inspect.isawaitable(made):
                made = await made
        except (LlmDoError, UserError):
            raise
        except Exception as error:
            raise project_error(EntryError, f"the toolset {name!r} can't be made:", error, root) from error
        if made is None or isinstance(made, AbstractToolset):
            return made  # pyright: ignore[reportUnknownVariableType]
        raise _no_toolset(name, factory, made, root)

    return DynamicToolset(make, per_run_step=False, id=name)


def _no_toolset(name: str, factory: Callable[..., Any], made: object, root: Path) -> RunError:
    called = _name_of(factory)
    returned = f"the class {made.__name__}" if inspect.isclass(made) else f"an object of type {type(made).__name__}"
    file, line = function_place(factory, root)
    return RunError(
        f"the factory {called} of the toolset {name!r} returned {returned}, not a toolset",
        hint="Return a toolset, such as FunctionToolset([...]), or None if there are no tools.",
        file=file,
        line=line,
    )


def _name_of(factory: Callable[..., Any]) -> str:
    """Return the name of the function behind a factory."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    factory = inspect.unwrap(factory)
    function = factory if inspect.isroutine(factory) or inspect.isclass(factory) else type(factory).__call__
    return str(getattr(function, "__qualname__", type(factory).__name__))
