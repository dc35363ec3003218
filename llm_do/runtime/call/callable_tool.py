"""Agents and flows as tools: one tool named after what it calls, its schema from the input model of that."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, cast

from pydantic import BaseModel, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.inputs import PromptInput, attaching_arguments
from llm_do.project.registry import Registered, Registry
from llm_do.runtime.call.attached_files import attached_files
from llm_do.runtime.call.call_scope import CallSite
from llm_do.runtime.call.invocation import invoke
from llm_do.runtime.context.call_context import CallContext, current_call
from llm_do.runtime.context.call_frame import Turn
from llm_do.runtime.request.cut_answers import cut_note
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.text.output_text import output_text

__all__ = ["agent_tool", "flow_tool"]

DESCRIPTION_LIMIT = 200
"""Characters of an agent's description that a calling model reads."""

_FLOWS: FunctionToolset[Any] = FunctionToolset(id="flows")


def agent_tool(spec: AgentSpec, owner: AbstractToolset[Any]) -> FixedTool:
    """The tool of an agent."""
    description = (spec.description or f"Ask the agent {spec.name}.").strip()
    if len(description) > DESCRIPTION_LIMIT:
        description = description[: DESCRIPTION_LIMIT - 1].rstrip() + "…"
    return _tool(Registered(spec.name, "agent", spec), spec.input_model or PromptInput, description, owner)


def flow_tool(found: Registered, registry: Registry) -> FixedTool:
    """The tool of a flow."""
    flow: FlowSpec = found.value
    description = flow.description or f"Run the flow {found.name}."
    return _tool(found, flow.input_model(registry), description, _FLOWS)


def _tool(found: Registered, model: type[BaseModel], description: str, owner: AbstractToolset[Any]) -> FixedTool:
    schema = model.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    facts = ToolFacts(cast("Any", found.kind), reads=attaching_arguments(model))

    async def call(args: dict[str, Any], ctx: RunContext[CallContext]) -> str:
        """Call it as a child of the call whose model asks; the id of the new call comes from the tool call's."""
        # Not `ctx.deps`: an agent that the project's code has built has its own.
        turn = Turn()
        output = await invoke(found, args, current_call(), CallSite(ctx.tool_call_id or found.name), turn)
        return output_text(output) + cut_note(turn.messages)

    # Arguments are validated as the input model and stay the arguments they are: the call makes the model.
    checked: Any = Annotated[model, WrapValidator(_keep)]
    return FixedTool(
        toolset=owner,
        tool_def=ToolDefinition(
            name=found.name,
            description=description,
            parameters_json_schema=schema,
            metadata=ToolTraits(facts, tool=found.name, restrict=partial(attached_files, facts)).metadata(),
        ),
        max_retries=0,
        args_validator=cast("Any", TypeAdapter(checked).validator),
        call=call,
    )


def _keep(value: Any, validate: ValidatorFunctionWrapHandler) -> dict[str, Any]:
    input: BaseModel = validate(value)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else input.model_dump()
