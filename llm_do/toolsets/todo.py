"""A to-do list for an agent's own use: validated, and kept as long as the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError
from llm_do.project.tools.builtin_toolsets import TODO
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.traits import BuiltinContext, ToolTraits
from llm_do.toolsets.function_tools import function_tool

__all__ = ["Item", "Status", "todo"]

Status = Literal["open", "doing", "done", "dropped"]

MAX_ITEMS = 200
"""The maximum number of items in a list."""

Text = Annotated[str, Field(min_length=1, max_length=500)]

_MARKS: dict[Status, str] = {"open": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}


@frozen
class Item:
    """One thing to do.

    Args:
        number: Its number in the list, from 1.
        text: The task.
        status: Its status.
    """

    number: int
    text: str
    status: Status = "open"

    def __str__(self) -> str:
        return f"{_MARKS[self.status]} {self.number}. {self.text}"


def todo(ctx: BuiltinContext) -> FunctionToolset[Any]:
    """Build the toolset of a to-do list for an agent's own use, kept as long as the run.

    Example:
        >>> from pathlib import Path
        >>> list(todo(BuiltinContext("todo", Path("."), Path("."))).tools)
        ['todo_add', 'todo_update', 'todo_list']
    """
    functions: dict[str, Callable[..., Any]] = {each.__name__: each for each in (todo_add, todo_update, todo_list)}
    tools = [function_tool(function, ToolTraits(TODO[name], ctx.name, name)) for name, function in functions.items()]
    return FunctionToolset(tools, id=ctx.name)


async def todo_add(ctx: RunContext[CallContext], items: Annotated[list[Text], Field(min_length=1)]) -> str:
    """Add items to your to-do list.

    Args:
        items: The tasks, each in a sentence.
    """
    stored = _list(ctx)
    if len(stored) + len(items) > MAX_ITEMS:
        raise ToolError(f"a to-do list has at most {MAX_ITEMS} items, and yours has {len(stored)}")
    stored += [Item(number, text) for number, text in enumerate(items, start=len(stored) + 1)]
    return _render(stored)


async def todo_update(
    ctx: RunContext[CallContext], number: int, status: Status | None = None, text: Text | None = None
) -> str:
    """Change one item of your to-do list; one at a time may be `doing`.

    Args:
        number: The item's number.
        status: Its new status.
        text: Its new text, if the task has changed.
    """
    stored = _list(ctx)
    if not 1 <= number <= len(stored):
        raise ToolError(f"your to-do list has no item {number}; it has {len(stored)}")
    if status is None and text is None:
        raise ToolError("nothing to change: pass a status or a text")
    other = next((each.number for each in stored if each.status == "doing" and each.number != number), None)
    if status == "doing" and other is not None:
        raise ToolError(f"item {other} is already in progress; finish or drop it first")
    item = stored[number - 1]
    stored[number - 1] = replace(item, status=status or item.status, text=text or item.text)
    return _render(stored)


async def todo_list(ctx: RunContext[CallContext]) -> str:
    """Show your to-do list."""
    return _render(_list(ctx))


def _list(ctx: RunContext[CallContext]) -> list[Item]:
    """Return the calling agent's list, which its calls in one run share."""
    return ctx.deps.run.memory.setdefault(("todo", ctx.deps.frame.config.name), [])


def _render(items: list[Item]) -> str:
    if not items:
        return "Your to-do list is empty."
    left = sum(each.status in ("open", "doing") for each in items)
    return "\n".join([*map(str, items), f"{left} of {len(items)} left to do."])
