"""`AgentSpec`: what one `.agent` file declares, in code; and the references it holds.

Resolving names is the linker's business, building runnable agents the runtime's. Nothing here imports PydanticAI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from llm_do.spec.diagnostics import Place

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai import RunContext
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.models import Model
    from pydantic_ai.toolsets import AbstractToolset

    from llm_do.runtime.context import CallContext

__all__ = ["AgentSpec", "Instructions", "ModelChoice", "ServerSideTool", "ToolsetDef", "ToolsetFunc", "ToolsetRef"]

ModelChoice: TypeAlias = "str | Sequence[str] | Model"
"""A model: its name, names that are tried in order, or a PydanticAI model object."""

Instructions: TypeAlias = "str | Callable[..., str | Awaitable[str]]"
"""Text, or a callable that takes nothing, the agent's name, or the `CallContext`."""

ToolsetFunc: TypeAlias = (
    "Callable[[RunContext[CallContext]], AbstractToolset[Any] | Awaitable[AbstractToolset[Any] | None] | None]"
)
"""A factory: called once per agent call, so that state lives as long as the call."""

ToolsetDef: TypeAlias = "AbstractToolset[Any] | ToolsetFunc"
"""What a toolset's name stands for: an instance (shared) or a factory (one instance per call)."""


@dataclass(frozen=True, slots=True)
class ToolsetRef:
    """One line of an agent's `toolsets`: a name and how its tools are shown.

    Args:
        name: Registered name of a toolset, an agent or a flow, or a built-in's.
        prefix: Put before each tool's name with an underscore; None gives no prefix.
        include: Globs of tool names to keep; empty keeps all.
        exclude: Globs of tool names to leave out.
        options: What a built-in takes besides.
        place: Where the line stands.
    """

    name: str
    prefix: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class ServerSideTool:
    """A tool that the provider runs: `web_search`, `web_fetch`, `code_execution` or `image_generation`.

    Args:
        tool_type: Which one.
        options: Its settings, such as `max_uses` or `allowed_domains`.
        place: Where it is declared.
    """

    tool_type: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    place: Place | None = None


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

    Example:
        >>> spec = AgentSpec("greeter", instructions="Greet the person.", description="Greets.")
        >>> spec.name
        'greeter'
    """

    name: str
    model: ModelChoice | None = None
    instructions: Instructions = ""
    tools: Sequence[str | Callable[..., Any] | PydanticTool[Any]] = ()
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
    place: Place | None = None
