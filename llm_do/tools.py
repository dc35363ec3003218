"""How authors write tools: the `tool` decorator, the `Tool` base class, and `Update`, which changes a context.

Making something a model can call of them is the runtime's business (`llm_do.runtime.tools.stamped_tools`). Nothing
heavy here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, get_args, overload

from llm_do._startup.frozen import frozen

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
    "options_of",
    "tool",
]

F = TypeVar("F", bound=Callable[..., Any])

Approval: TypeAlias = Literal["allow", "ask", "deny"]
"""What may be said of a tool for all arguments."""


@frozen
class ToolOptions:
    """What `@tool(...)` says of a function.

    Args:
        name: The tool's name; None takes the function's.
        description: What the model reads; None takes the docstring.
        examples: Calls to show the model, as arguments.
        approval: `allow`, `ask` or `deny` for all arguments; None is the project's default, which asks.
        primary: The argument that a rule's `tool(PATTERN)` matches.
        paths: Arguments that are paths; rules read them by segments.
        commands: Arguments that are command lines; rules read them word by word.
        hosts: Arguments that are the name of a host, or a URL; rules speak of the host.
        reads: Arguments whose targets a call reads.
        writes: Arguments whose targets a call changes.
        repeatable: Whether a call has no effects, so that it can be repeated, and identical calls joined.
        timeout: Seconds a call may take.
        required_context: Keys that must exist in the context of the toolkit, or of the agent.
        required_states: States that must be unlocked.
        forbidden_states: States that must not be.
        enables_states: States that success unlocks.
        disables_states: States that success locks again.

    Raises:
        ValueError: The approval is no such word, or the timeout no such number.
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
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))

    @property
    def gated(self) -> bool:
        """Whether it says anything of states or context."""
        return any(getattr(self, name) for name in _STATES)


_ARGUMENTS = ("paths", "commands", "hosts", "reads", "writes")
_STATES = ("required_context", "required_states", "forbidden_states", "enables_states", "disables_states")


def approval_fault(said: object) -> str | None:
    """What is wrong with what is said of a tool as its `approval`; None where nothing is.

    A word that there isn't would be neither denied nor asked about.

    Args:
        said: A word, or None for nothing said.

    Example:
        >>> approval_fault("deny"), approval_fault(True)
        (None, "approval is 'allow', 'ask' or 'deny', not True")
    """
    if said is None or (isinstance(said, str) and said in get_args(Approval)):
        return None
    shown = repr(said)[:60] if isinstance(said, str | int | float) else type(said).__name__
    return f"approval is 'allow', 'ask' or 'deny', not {shown}"


class ToolArguments(TypedDict, total=False):
    """The fields of `ToolOptions`, as `@tool(...)` takes them."""

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

    The function stays what it is. Its parameters' types and its docstring make the schema.

    Args:
        function: The function, when used without parentheses.
        options: What `ToolOptions` has, by name.

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
    said = ToolOptions(**options)

    def mark(marked: F) -> F:
        marked.__llm_do_tool__ = said  # pyright: ignore[reportFunctionMemberAccess]
        return marked

    return mark if function is None else mark(function)


def options_of(item: object) -> ToolOptions:
    """What is said of a function or a tool object; nothing where it wasn't marked.

    Args:
        item: The function or object.
    """
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
    said = getattr(item, "__llm_do_tool__", None)
    return said if isinstance(said, ToolOptions) else ToolOptions()


@dataclass(frozen=True, eq=False)
class NamedTool:
    """A function under another name or description than its own, where the function itself must stay as it is.

    Args:
        function: The function.
        options: What is said of it.
    """

    function: Callable[..., Any]
    options: ToolOptions

    @property
    def __llm_do_tool__(self) -> ToolOptions:
        return self.options


class Update:
    """What a tool with a context returns: its result, and what changes in the context once it has succeeded.

    Args:
        result: What the model is told.
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
        """The outcome of a tool that did not succeed: the model is told why, and nothing changes.

        Args:
            reason: What the model is told.
        """
        made = cls()
        made.failure = reason
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """What PydanticAI says of a tool that returns one: nothing, since what the model is told may be anything."""
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __repr__(self) -> str:
        if self.failure is not None:
            return f"Update.failed({self.failure!r})"
        return f"Update({self.result!r}, {', '.join(f'{key}={value!r}' for key, value in self.updates.items())})"


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
        """Do the work; raise `ToolError` for a failure the model should read.

        Args:
            kwargs: The arguments, as `parameters` allows them.

        Returns:
            The result: text, or JSON-like data.

        Raises:
            TypeError: The subclass doesn't define it.
        """
        raise TypeError(f"{type(self).__name__} doesn't define execute()")
