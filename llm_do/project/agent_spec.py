"""`AgentSpec`: what one `.agent` file declares, in code; and the references it holds.

Resolving names is the linker's business, building runnable agents the runtime's. Nothing here imports PydanticAI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from llm_do._extensions import ExtensionPoint
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.project.gates import Gate
from llm_do.tools import NamedTool, options_of

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai import RunContext, Tool as PydanticTool
    from pydantic_ai.models import Model
    from pydantic_ai.toolsets import AbstractToolset

__all__ = ["AgentSpec", "Instructions", "ModelChoice", "ServerSideTool", "ToolsetDef", "ToolsetFunc", "ToolsetRef"]

TOOL_SCHEMAS: ExtensionPoint[Callable[[AgentSpec], list[dict[str, Any]]]] = ExtensionPoint("tool_schemas")
"""The tools that an agent's model sees when a run begins: only the runtime can build an agent."""

ModelChoice: TypeAlias = "str | Sequence[str] | Model"
"""A model: its name, names that are tried in order, or a PydanticAI model object."""

Instructions: TypeAlias = "str | Callable[..., str | Awaitable[str]]"
"""Text, or a callable that takes nothing, the agent's name, or the `CallContext`."""

ToolsetFunc: TypeAlias = (
    "Callable[[RunContext[Any]], AbstractToolset[Any] | Awaitable[AbstractToolset[Any] | None] | None]"
)
"""A factory: called once per agent call, so that state lives as long as the call."""

ToolsetDef: TypeAlias = "AbstractToolset[Any] | ToolsetFunc"
"""What a toolset's name stands for: an instance (shared) or a factory (one instance per call)."""


@frozen
class ToolsetRef:
    """One line of an agent's `toolsets`: a name and how its tools are shown.

    Args:
        name: Registered name of a toolset, an agent or a flow, or a built-in's.
        prefix: Put before each tool's name with an underscore. Empty gives none; so does None, but an MCP server
            has its own prefix then.
        include: Globs of tool names to keep; empty keeps all.
        exclude: Globs of tool names to leave out.
        options: What a built-in takes besides.
        place: Where the line stands.
        value: The toolset itself, where it isn't registered under the name.
    """

    name: str
    prefix: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    place: Location | None = None
    value: ToolsetDef | None = None


@frozen
class ServerSideTool:
    """A tool that the provider runs: `web_search`, `web_fetch`, `code_execution` or `image_generation`.

    Args:
        tool_type: Which one.
        options: Its settings, such as `max_uses` or `allowed_domains`.
        place: Where it is declared.
    """

    tool_type: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    place: Location | None = None


@dataclass(eq=False)
class AgentSpec:
    """An agent's declaration: stateless, shared by all its runs.

    Args:
        name: The name it is called by; it becomes a tool name.
        model: Pins the model; None takes what the run, the environment or the project says.
        instructions: Text or a callable.
        tools: Names of exported functions, functions, or tool objects.
        toolsets: Names, references, instances, factories, or other agents' specs.
        handoffs: Agents it may hand control to.
        hooks: `(HookPoint, function)` pairs.
        output_type: `str`, a pydantic model or another type; or a JSON Schema (a dict).
        input_model: Validates input, is the tool schema, renders the prompt; None is `PromptInput`.
        max_steps: Model requests allowed in one run; None takes the project's.
        model_settings: Sent to the provider; nothing is sent for what isn't set.
        temperature: Short for `model_settings={"temperature": ...}`.
        max_tokens: Short for `model_settings={"max_tokens": ...}`.
        retries: How often a model may try again after invalid output; None takes 1.
        description: Shown to models when the agent is a tool.
        compaction: How a long history is shortened.
        compatible_models: Globs that the resolved model's name must match one of, case-insensitively.
        server_side_tools: Tools the provider runs.
        template: The instructions are a template over the input's fields.
        tool_timeout: Seconds a tool call may take; None takes the project's.
        loop_threshold: Identical batches of tool calls before the run ends; None takes the project's.
        place: Where it is declared, for messages.
        context_providers: Functions of the `CallContext`, or `ContextProvider`s, whose text goes to the instructions.
        states: Tool to the states it needs and changes, for any of its tools: a machine of the agent's own.
        gate: Whether tools that aren't available are hidden (`hide`) or shown and refused (`refuse`); None is as each
            toolkit says, and `hide` for the agent's own machine.

    Example:
        >>> spec = AgentSpec("greeter", instructions="Greet the person.", description="Greets.")
        >>> spec.name
        'greeter'
    """

    name: str
    model: ModelChoice | None = None
    instructions: Instructions = ""
    tools: Sequence[str | Callable[..., Any] | PydanticTool[Any] | NamedTool] = ()
    toolsets: Sequence[str | ToolsetRef | ToolsetDef | AgentSpec] = ()
    handoffs: Sequence[str | AgentSpec] = ()
    hooks: Sequence[tuple[Any, Callable[..., Any]]] = ()
    output_type: Any = str
    input_model: type[BaseModel] | None = None
    max_steps: int | None = None
    model_settings: Mapping[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    retries: int | None = None
    description: str | None = None
    compaction: Mapping[str, Any] | None = None
    compatible_models: Sequence[str] = ()
    server_side_tools: Sequence[ServerSideTool] = ()
    template: bool = False
    tool_timeout: float | None = None
    loop_threshold: int | None = None
    place: Location | None = None
    context_providers: Sequence[Any] = ()
    states: Mapping[str, Gate] = field(default_factory=dict[str, Gate])
    gate: Literal["hide", "refuse"] | None = None

    def add_toolkit(self, prefix: str, toolkit: ToolsetDef) -> None:
        """Add a toolkit, or any toolset; its tools are called `prefix_tool`.

        Args:
            prefix: What stands before its tools' names; the toolkit is called so in results too. Empty gives none.
            toolkit: The toolkit.
        """
        name = getattr(toolkit, "name", None) or getattr(toolkit, "id", None) or prefix or type(toolkit).__name__
        self.toolsets = (*self.toolsets, ToolsetRef(str(name), prefix, value=toolkit))

    def add_tool(self, name: str, function: Callable[..., Any], description: str = "") -> None:
        """Add a function as a tool.

        Args:
            name: The tool's name.
            function: The function; what `@tool(...)` says of it holds.
            description: What the model reads; empty takes what the function says itself.
        """
        options = options_of(function)
        named = NamedTool(function, replace(options, name=name, description=description or options.description))
        self.tools = (*self.tools, named)

    def describe(self) -> dict[str, Any]:
        """What the agent is, for people and programs: name, model, tools, handoffs, max_steps, output_type."""
        return {
            "name": self.name,
            "model": self.model if isinstance(self.model, str | None) else str(self.model),
            "tools": [*map(tool_label, self.tools), *map(tool_label, self.toolsets)],
            "handoffs": [item if isinstance(item, str) else item.name for item in self.handoffs],
            "max_steps": self.max_steps,
            "output_type": getattr(self.output_type, "__name__", str(self.output_type)),
        }

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools its model sees when a run begins, in OpenAI's format.

        Raises:
            RunError: It lists a name that only a project knows.
        """
        return TOOL_SCHEMAS.get()(self)


def tool_label(item: object) -> str:
    """What a tool or a toolset in an agent's lists is called."""
    if isinstance(item, str):
        return item
    for name in (options_of(item).name, getattr(item, "name", None), getattr(item, "__name__", None)):
        if isinstance(name, str):
            return name
    return type(item).__name__
