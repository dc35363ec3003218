"""The means to write tools: the `tool` decorator, the `Tool` base class, and `Update`, which changes a context.

`llm_do.runtime.tools.stamped_tools` turns them into tools that a model can call. This module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, get_args, overload

from llm_do._startup.frozen import frozen
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

__all__ = [
    "Approval",
    "NamedTool",
    "Tool",
    "ToolArguments",
    "ToolOptions",
    "Update",
    "approval_fault",
    "check_tool_options",
    "options_of",
    "tool",
]

F = TypeVar("F", bound=Callable[..., Any])

Approval: TypeAlias = Literal["allow", "ask", "deny"]
"""The approval that a tool may declare for all arguments."""


@frozen
class ToolOptions:
    """The options of `@tool(...)`.

    Args:
        name: The tool's name; None uses the function's.
        description: The description for the model; None uses the docstring.
        examples: Example calls to show the model, as arguments.
        approval: `allow`, `ask` or `deny` for all arguments; None uses the project's default, which asks.
        primary: The argument that a rule's `tool(PATTERN)` matches.
        paths: Arguments that are paths; rules match them segment by segment.
        commands: Arguments that are command lines; rules match them word by word.
        hosts: Arguments that are a host name or a URL; rules match the host, or host and path.
        reads: Arguments whose targets a call reads.
        writes: Arguments whose targets a call changes.
        repeatable: Whether a call has no side effects, so that it can be repeated and identical calls can be merged.
        timeout: Seconds a call may take.
        required_context: Keys that must exist in the context of the toolkit, or of the agent.
        required_states: States that must be unlocked.
        forbidden_states: States that must not be unlocked.
        enables_states: States that success unlocks.
        disables_states: States that success locks again.

    Raises:
        ValueError: The approval is unknown or the timeout is not a number above 0.
    """

    name: str | None = None
    description: str | None = None
    examples: Sequence[Mapping[str, Any]] = ()
    approval: Approval | None = None
    primary: str | None = None
    paths: Sequence[str] = ()
    commands: Sequence[str] = ()
    hosts: Sequence[str] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    repeatable: bool = False
    timeout: float | None = None
    required_context: Sequence[str] = ()
    required_states: Sequence[str] = ()
    forbidden_states: Sequence[str] = ()
    enables_states: Sequence[str] = ()
    disables_states: Sequence[str] = ()

    def __post_init__(self) -> None:
        fault = approval_fault(self.approval)
        if fault is not None:
            raise ValueError(f"a tool's {fault}")
        timeout = cast("object", self.timeout)
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            raise ValueError(f"a tool's timeout is a number of seconds above 0, not {timeout!r}")
        object.__setattr__(self, "examples", tuple(self.examples))
        for name in (*_ARGUMENTS, *_STATES):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))

    @property
    def gated(self) -> bool:
        """Whether the options mention states or context."""
        return any(getattr(self, name) for name in _STATES)


_ARGUMENTS = ("paths", "commands", "hosts", "reads", "writes")
_STATES = ("required_context", "required_states", "forbidden_states", "enables_states", "disables_states")


def approval_fault(approval: object) -> str | None:
    """Describe the error in a tool's `approval`, or return None if it is valid or None.

    An unknown word would neither deny a call nor ask about it.

    Example:
        >>> approval_fault("deny"), approval_fault(True)
        (None, "approval is 'allow', 'ask' or 'deny', not True")
    """
    if approval is None or (isinstance(approval, str) and approval in get_args(Approval)):
        return None
    shown = repr(approval)[:60] if isinstance(approval, str | int | float) else type(approval).__name__
    return f"approval is 'allow', 'ask' or 'deny', not {shown}"


class ToolArguments(TypedDict, total=False):
    """The fields of `ToolOptions` as keyword arguments of `@tool(...)`."""

    name: str | None
    description: str | None
    examples: Sequence[Mapping[str, Any]]
    approval: Approval | None
    primary: str | None
    paths: Sequence[str]
    commands: Sequence[str]
    hosts: Sequence[str]
    reads: Sequence[str]
    writes: Sequence[str]
    repeatable: bool
    timeout: float | None
    required_context: Sequence[str]
    required_states: Sequence[str]
    forbidden_states: Sequence[str]
    enables_states: Sequence[str]
    disables_states: Sequence[str]


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(function: None = None, /, **options: Unpack[ToolArguments]) -> Callable[[F], F]: ...


def tool(function: F | None = None, /, **options: Unpack[ToolArguments]) -> F | Callable[[F], F]:
    """Mark a function as a tool: `@tool`, `@tool()` or `@tool(name=..., ...)`.

    The function itself doesn't change. The types of its parameters and its docstring become the schema.

    Args:
        function: The function, when used without parentheses.
        options: The fields of `ToolOptions`, by name.

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
    check_tool_options(options)
    tool_options = ToolOptions(**options)

    def mark(marked: F) -> F:
        marked.__llm_do_tool__ = tool_options  # pyright: ignore[reportFunctionMemberAccess]
        return marked

    return mark if function is None else mark(function)


def check_tool_options(options: Mapping[str, object]) -> None:
    """Raise `TypeError` for an option that `@tool` doesn't have.

    Example:
        >>> check_tool_options({"require_states": ["in"]})
        Traceback (most recent call last):
        ...
        TypeError: @tool has no option 'require_states'; did you mean `required_states`?
    """
    known = ToolArguments.__annotations__
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) or f"its options are {', '.join(known)}"
            raise TypeError(f"@tool has no option {name!r}; {hint}")


def options_of(item: object) -> ToolOptions:
    """Return the options of a function or a tool object, the defaults if it isn't marked as a tool."""
    if isinstance(item, Tool):
        return ToolOptions(
            approval=item.approval,
            primary=item.primary,
            paths=item.paths,
            commands=item.commands,
            hosts=item.hosts,
            reads=item.reads,
            writes=item.writes,
            repeatable=item.repeatable,
            timeout=item.timeout,
        )
    while isinstance(item, partial):
        item = cast("partial[Any]", item).func
    options = getattr(item, "__llm_do_tool__", None)
    return options if isinstance(options, ToolOptions) else ToolOptions()


@dataclass(frozen=True, eq=False)
class NamedTool:
    """A function with a name or description other than its own, used if the function itself must not change."""

    function: Callable[..., Any]
    options: ToolOptions

    @property
    def __llm_do_tool__(self) -> ToolOptions:
        return self.options


class Update:
    """The return value of a tool with a context: its result, and the changes to the context once it has succeeded.

    Args:
        result: The result for the model.
        updates: Keys of the context and their new values.

    Example:
        >>> done = Update("selected alpha", project="alpha")
        >>> done.result, done.updates
        ('selected alpha', {'project': 'alpha'})
        >>> Update.failed("wrong password").failure
        'wrong password'
    """

    __slots__ = ("failure", "result", "updates")

    def __init__(self, result: Any = None, /, **updates: Any) -> None:
        self.result = result
        self.updates = updates
        self.failure: str | None = None

    @classmethod
    def failed(cls, reason: str) -> Update:
        """Report that the tool did not succeed: the model reads the reason, and the context doesn't change.

        Args:
            reason: The reason for the model.
        """
        update = cls()
        update.failure = reason
        return update

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """Return a schema that accepts anything, since PydanticAI can't know the type of the result."""
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __repr__(self) -> str:
        if self.failure is not None:
            return f"Update.failed({self.failure!r})"
        return f"Update({self.result!r}, {', '.join(f'{key}={value!r}' for key, value in self.updates.items())})"


class Tool:
    """Base class of tools that are objects: `parameters` is a JSON Schema that is checked before `execute` is called.

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
    approval: Approval | None = None
    primary: str | None = None
    paths: Sequence[str] = ()
    commands: Sequence[str] = ()
    hosts: Sequence[str] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    repeatable: bool = False
    timeout: float | None = None

    async def execute(self, **kwargs: Any) -> Any:
        """Run the tool; raise `ToolError` for a failure that the model should read.

        Args:
            kwargs: The arguments, valid against `parameters`.

        Returns:
            The result: text, or JSON-like data.

        Raises:
            TypeError: The subclass doesn't define it.
        """
        raise TypeError(f"{type(self).__name__} doesn't define execute()")
