"""How authors mark functions as tools: the `tool` decorator and the `Tool` base class.

Making something a model can call of them is the runtime's business (`llm_do.runtime.tools`). Nothing heavy here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, overload

__all__ = ["Tool", "ToolOptions", "tool"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What `@tool(...)` says of a function.

    Args:
        name: The tool's name; None takes the function's.
        description: What the model reads; None takes the docstring.
        examples: Calls to show the model, as arguments.
        approval: `allow`, `ask` or `deny` for all arguments; None is the project's default, which asks.
        primary: The argument that a rule's `tool(PATTERN)` matches.
        timeout: Seconds a call may take.
    """

    name: str | None = None
    description: str | None = None
    examples: Sequence[Mapping[str, Any]] = ()
    approval: Literal["allow", "ask", "deny"] | None = None
    primary: str | None = None
    timeout: float | None = None


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    approval: Literal["allow", "ask", "deny"] | None = None,
    primary: str | None = None,
    timeout: float | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    approval: Literal["allow", "ask", "deny"] | None = None,
    primary: str | None = None,
    timeout: float | None = None,
) -> F | Callable[[F], F]:
    """Mark a function as a tool: `@tool`, `@tool()` or `@tool(name=..., ...)`.

    The function stays what it is. Its parameters' types and its docstring make the schema.

    Args:
        function: The function, when used without parentheses.
        name: As in `ToolOptions`; so are the others.
        description: What the model reads.
        examples: Calls to show the model.
        approval: A verdict for all arguments.
        primary: The argument that rules match.
        timeout: Seconds a call may take.

    Returns:
        The function, or a decorator.

    Example:
        >>> @tool(name="sum", approval="allow")
        ... def add(a: int, b: int) -> int:
        ...     "Add two numbers."
        ...     return a + b
        >>> add(1, 2), add.__llm_do_tool__.name
        (3, 'sum')
    """
    options = ToolOptions(name, description, tuple(examples), approval, primary, timeout)

    def mark(marked: F) -> F:
        marked.__llm_do_tool__ = options  # pyright: ignore[reportFunctionMemberAccess]
        return marked

    return mark if function is None else mark(function)


class Tool:
    """Base of a tool that is an object: its parameters are a JSON Schema, checked before `execute` is called.

    Example:
        >>> class Query(Tool):
        ...     name = "query"
        ...     description = "Run a query."
        ...     parameters = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
        ...     async def execute(self, **kwargs):
        ...         return kwargs["sql"]
        >>> Query().name
        'query'
    """

    name: str = ""
    description: str = ""
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    approval: Literal["allow", "ask", "deny"] | None = None
    primary: str | None = None
    timeout: float | None = None

    __llm_do_tool_object__: ClassVar[bool] = True

    async def execute(self, **kwargs: Any) -> Any:
        """Do the work; raise `ToolError` for a failure the model should read.

        Args:
            kwargs: The arguments, as `parameters` allows them.

        Returns:
            The result: text, or JSON-like data.

        Raises:
            TypeError: The subclass doesn't define it.
        """
        raise TypeError(f"{type(self).__name__} doesn't define execute()")
