"""Agents as tools: one tool named after the agent, its schema from the agent's input model.

What calling an agent means is `llm_do.runtime.call.dispatch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import BaseModel, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.project.agent_spec import AgentSpec
from llm_do.project.inputs import PromptInput
from llm_do.runtime.call.dispatch import call_agent_tool
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import TRAITS_KEY, ToolTraits

__all__ = ["AgentToolset", "agent_as_toolset"]

DESCRIPTION_LIMIT = 200
"""Characters of an agent's description that a calling model reads."""


def _keep(value: Any, validate: ValidatorFunctionWrapHandler) -> dict[str, Any]:
    """Validate arguments against the input model and pass them on as they are: the call validates them into one."""
    model: BaseModel = validate(value)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else model.model_dump()


@dataclass(init=False)
class AgentToolset(AbstractToolset[CallContext]):
    """A toolset with one tool: calling an agent by its name.

    Args:
        spec: The agent.

    Example:
        >>> AgentToolset(AgentSpec("critic", description="Judges a text.")).id
        'critic'
    """

    spec: AgentSpec

    def __init__(self, spec: AgentSpec) -> None:
        self.spec = spec
        model = spec.input_model or PromptInput
        schema = model.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        self.fixed = FixedTool(
            toolset=self,
            tool_def=ToolDefinition(
                name=spec.name,
                description=_short(spec.description or f"Ask the agent {spec.name}."),
                parameters_json_schema=schema,
                metadata={TRAITS_KEY: ToolTraits(kind="agent", tool=spec.name)},
            ),
            max_retries=0,
            args_validator=_validator(model),
            call=self._call,
        )

    @property
    def id(self) -> str:
        """The agent's name."""
        return self.spec.name

    async def get_tools(self, ctx: RunContext[CallContext]) -> dict[str, ToolsetTool[CallContext]]:
        """The one tool."""
        return {self.spec.name: self.fixed}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[CallContext], tool: ToolsetTool[CallContext]
    ) -> Any:
        """Call the agent, as a child of the call whose model asks."""
        return await self._call(tool_args, ctx)

    async def _call(self, tool_args: dict[str, Any], ctx: RunContext[CallContext]) -> Any:
        return await call_agent_tool(ctx.deps, self.spec, tool_args, ctx.tool_call_id or self.spec.name)


def _validator(model: Any) -> Any:
    """Validates arguments as the input model does, and leaves them the arguments they are."""
    checked: Any = Annotated[model, WrapValidator(_keep)]
    return TypeAdapter(checked).validator


def agent_as_toolset(spec: AgentSpec) -> AgentToolset:
    """The toolset of one agent; the same as `AgentToolset(spec)`."""
    return AgentToolset(spec)


def _short(text: str) -> str:
    """A description as a calling model reads it."""
    text = text.strip()
    return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - 1].rstrip() + "…"
