"""`AgentSpec`: the declaration of an agent, in an `.agent` file or in code, and the references it contains.

The linker resolves names, and the runtime builds runnable agents. Nothing here imports PydanticAI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_origin

from llm_do._extensions import ExtensionPoint
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.gates import Gate
from llm_do.project.skill import Skill
from llm_do.tools import NamedTool, options_of

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel
    from pydantic_ai import RunContext, Tool as PydanticTool
    from pydantic_ai.models import Model
    from pydantic_ai.native_tools import AbstractNativeTool
    from pydantic_ai.toolsets import AbstractToolset

__all__ = [
    "AgentSpec",
    "CapabilityRef",
    "Instructions",
    "ModelChoice",
    "ServerSideTool",
    "ToolsetDef",
    "ToolsetFunc",
    "ToolsetRef",
    "give_skills",
    "is_of_type",
    "skills_of",
    "takes_deps",
    "type_name",
]

TOOL_SCHEMAS: ExtensionPoint[Callable[[AgentSpec], list[dict[str, Any]]]] = ExtensionPoint("tool_schemas")
"""The tools that an agent's model sees when a run begins: only the runtime can build an agent."""

ModelChoice: TypeAlias = "str | Sequence[str] | Model"
"""A model: its name, several names to try in order, or a PydanticAI model object."""

Instructions: TypeAlias = "str | Callable[..., str | Awaitable[str]]"
"""Text, or a callable that takes no arguments, the agent's name, or the `CallContext`."""

ToolsetFunc: TypeAlias = (
    "Callable[[RunContext[Any]], AbstractToolset[Any] | Awaitable[AbstractToolset[Any] | None] | None]"
)
"""A factory, called once per agent call, so that its state lasts as long as the call."""

ToolsetDef: TypeAlias = "AbstractToolset[Any] | ToolsetFunc"
"""A toolset: a shared instance, or a factory that makes one instance per call."""


@frozen
class ToolsetRef:
    """One entry of an agent's `toolsets`: a name, and how to present its tools.

    Args:
        name: The registered name of a toolset, agent or flow, or the name of a built-in.
        prefix: Prepended to each tool's name with an underscore. Empty for no prefix; None as well, except that an MCP
            server then uses its own.
        include: Globs of tool names to keep; empty keeps all.
        exclude: Globs of tool names to leave out.
        options: Options of a built-in.
        place: Where the entry is declared.
        value: The toolset itself, if it isn't registered under the name.
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
        tool_type: The tool's type.
        options: Its settings, such as `max_uses` or `allowed_domains`.
        place: Where it is declared.
        native: The tool itself, if a capability has added it.
        capability: The capability that has added it.
    """

    tool_type: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    place: Location | None = None
    native: AbstractNativeTool | None = None
    capability: str | None = None

    @property
    def facts(self) -> ToolFacts:
        """What policy knows of it: an agent file lists it to allow it, a capability only adds it."""
        if self.capability is None:
            return ToolFacts("builtin", default="allow", reason="the model's provider runs it")
        return ToolFacts("builtin", default="ask", reason=f"the model's provider runs it for {self.capability}")


@frozen
class CapabilityRef:
    """One entry of an agent file's `capabilities`.

    Args:
        name: The name of PydanticAI's capability, or of a class that the project's Python registers.
        arguments: None, `(argument,)`, or a mapping of arguments.
        place: Where the entry is declared.
    """

    name: str
    arguments: object = None
    place: Location | None = None


@dataclass(eq=False)
class AgentSpec:
    """An agent's declaration: stateless, shared by all its runs.

    Args:
        name: The agent's name, which is also its name as a tool.
        model: Pins the model; None uses the one of the run, the environment or the project.
        instructions: Text or a callable.
        tools: Names of exported functions, functions, or tool objects.
        toolsets: Names, references, instances, factories, or other agents' specs.
        skills: Folders of skills, as paths or globs relative to the project's folder, or skills that were read; None
            for the project's, empty for none.
        handoffs: Agents it may hand over to.
        hooks: `(HookPoint, function)` pairs.
        input_guards: Functions of the input, and optionally the `CallContext`, that return None or a replacement, or
            raise `GuardError`.
        output_guards: The same for the output.
        output_type: `str`, a pydantic model or another type; or a JSON Schema (a dict).
        input_model: Validates the input, provides the tool schema and renders the prompt; None for `PromptInput`.
        max_steps: The most model requests in one run; None for the project's limit.
        model_settings: Settings sent to the provider; unset ones aren't sent.
        temperature: Short for `model_settings={"temperature": ...}`.
        max_tokens: Short for `model_settings={"max_tokens": ...}`.
        retries: How often a model may try again after invalid output; None for 1.
        description: Shown to models when the agent is a tool.
        compaction: How to shorten a long history.
        compatible_models: Globs, one of which the resolved model's name must match, ignoring case.
        server_side_tools: Tools that the provider runs.
        capabilities: Capabilities of PydanticAI, or their names with arguments.
        deps_type: The type of the dependencies that its tools need as `ctx.deps`; a run gives them with `deps=`.
        deps: The dependencies themselves, unless a run gives others of `deps_type`; None for the `CallContext`.
        template: Whether the instructions are a template over the input's fields.
        tool_timeout: Seconds a tool call may take; None for the project's limit.
        loop_threshold: How many identical batches of tool calls end the run; None for the project's limit.
        place: Where it is declared, for messages.
        context_providers: Functions of the `CallContext`, or `ContextProvider`s, that add text to the instructions.
        states: The states that each tool needs and changes: the agent's own machine, for any of its tools.
        gate: Whether unavailable tools are hidden (`hide`) or shown and refused (`refuse`); None for each toolkit's own
            choice, and `hide` for the agent's own machine.

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
    input_guards: Sequence[Callable[..., Any]] = ()
    output_guards: Sequence[Callable[..., Any]] = ()
    skills: Sequence[str | Path | Skill] | None = None
    capabilities: Sequence[Any] = ()
    deps_type: Any = None
    deps: object = None

    def add_toolkit(self, prefix: str, toolkit: ToolsetDef) -> None:
        """Add a toolkit or any other toolset; its tools are named `prefix_tool`.

        Args:
            prefix: Prepended to the tools' names, and the toolkit's name in results. Empty for no prefix.
            toolkit: The toolkit.
        """
        name = getattr(toolkit, "name", None) or getattr(toolkit, "id", None) or prefix or type(toolkit).__name__
        self.toolsets = (*self.toolsets, ToolsetRef(str(name), prefix, value=toolkit))

    def add_tool(self, name: str, function: Callable[..., Any], description: str = "") -> None:
        """Add a function as a tool.

        Args:
            name: The tool's name.
            function: The function; options set with `@tool(...)` apply.
            description: The description that the model sees; empty for the function's own.
        """
        options = options_of(function)
        named = NamedTool(function, replace(options, name=name, description=description or options.description))
        self.tools = (*self.tools, named)

    def describe(self) -> dict[str, Any]:
        """Describe the agent for people and programs: name, model, tools, handoffs, max_steps, output_type."""
        return {
            "name": self.name,
            "model": self.model if isinstance(self.model, str | None) else str(self.model),
            "tools": [*map(tool_label, self.tools), *map(tool_label, self.toolsets)],
            "handoffs": [item if isinstance(item, str) else item.name for item in self.handoffs],
            "max_steps": self.max_steps,
            "output_type": getattr(self.output_type, "__name__", str(self.output_type)),
        }

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools that the model sees at the start of a run, in OpenAI's format.

        Raises:
            RunError: The agent lists a name that only a project can resolve.
        """
        return TOOL_SCHEMAS.get()(self)


SKILLS = "skills"
"""The toolset that every agent with skills has."""


def give_skills(spec: AgentSpec, skills: Sequence[Skill]) -> None:
    """Give an agent the skills that were found for it, and the toolset that loads them."""
    if spec.skills is None and not skills:
        return  # the same declaration may be part of a project that has some
    spec.skills = tuple(skills)
    names = [item if isinstance(item, str) else getattr(item, "name", None) for item in spec.toolsets]
    if skills and SKILLS not in names:
        spec.toolsets = (*spec.toolsets, ToolsetRef(SKILLS, place=spec.place))


def skills_of(spec: AgentSpec | None) -> tuple[Skill, ...]:
    """Return the skills of an agent that has been linked or built.

    Example:
        >>> skills_of(AgentSpec("main"))
        ()
    """
    declared = spec.skills if spec is not None else None
    return tuple(item for item in declared or () if isinstance(item, Skill))


def takes_deps(spec: AgentSpec) -> bool:
    """Whether an agent's tools get dependencies of its own as `ctx.deps`, instead of the `CallContext`."""
    return spec.deps_type is not None or spec.deps is not None


def is_of_type(value: object, kind: Any) -> bool:
    """Check whether a value is of a type, as far as that can be told: of `dict[str, int]`, whether it is a dict.

    Example:
        >>> is_of_type({"a": 1}, dict[str, int]), is_of_type(3, str), is_of_type(3, int | None)
        (True, False, True)
    """
    origin = get_origin(kind)
    try:
        return isinstance(value, origin if isinstance(origin, type) and origin is not UnionType else kind)
    except TypeError:  # such as a TypedDict, or a Protocol that can't be checked at run time
        return True


def type_name(kind: Any) -> str:
    """Return a type's name for messages."""
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def tool_label(item: object) -> str:
    """Return the name of a tool or toolset in an agent's lists."""
    if isinstance(item, str):
        return item
    for name in (options_of(item).name, getattr(item, "name", None), getattr(item, "__name__", None)):
        if isinstance(name, str):
            return name
    return type(item).__name__
