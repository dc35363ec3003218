"""`@toolset.tool` on functions that take no context, as projects of 0.3 write it: see `llm_do.compat`.

PydanticAI 1 looked at a function to see whether its first parameter is the context. PydanticAI 2 takes any first
parameter for it, or refuses the function, and has `tool_plain` for the others. Here, functions are looked at again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["allow_plain_tools"]

_CONTEXTS = frozenset({"ctx", "_ctx", "context", "_context", "run_context", "_"})
"""Names of a first parameter without annotation that is the context."""


def allow_plain_tools(is_own: Callable[[str], bool]) -> None:
    """Let PydanticAI's toolsets add functions without a context as such; `is_own` knows a project's modules by name."""
    from pydantic_ai.toolsets import FunctionToolset

    known: Any = FunctionToolset.add_function
    if getattr(known, "allows_plain_tools", False):
        return

    @functools.wraps(known)
    def add_function(self: Any, func: Any, takes_ctx: bool | None = None, *args: Any, **options: Any) -> Any:
        if takes_ctx and is_own(str(getattr(func, "__module__", ""))) and not _expects_context(func):
            takes_ctx = False
        return known(self, func, takes_ctx, *args, **options)

    add_function.allows_plain_tools = True  # pyright: ignore[reportAttributeAccessIssue]
    setattr(FunctionToolset, "add_function", add_function)  # noqa: B010 (a method that PydanticAI declares otherwise)


def _expects_context(function: Callable[..., Any]) -> bool:
    """Whether a function's first parameter is the context, as far as its signature says."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return True
    if not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return False
    first = parameters[0]
    if first.annotation is inspect.Parameter.empty:
        return first.name in _CONTEXTS
    shown = first.annotation if isinstance(first.annotation, str) else repr(first.annotation)
    return "Context" in shown
