"""Flows as tools: one tool named after the flow, its schema from what its first step takes."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BaseModel, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do.project.flow_spec import FlowSpec
from llm_do.project.registry import Registered, Registry
from llm_do.runtime.call.dispatch import call_found
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.record.results import output_text
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import TRAITS_KEY, ToolTraits

__all__ = ["flow_tool"]

_OWNER: FunctionToolset[Any] = FunctionToolset(id="flows")


def flow_tool(found: Registered, registry: Registry) -> FixedTool:
    """The tool of a flow."""
    flow: FlowSpec = found.value
    model = flow.input_model(registry)
    schema = model.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)

    async def call(args: dict[str, Any], ctx: RunContext[CallContext]) -> str:
        caller = ctx.deps
        output = await call_found(caller, found, args, f"{caller.call_id}.{ctx.tool_call_id or found.name}")
        return output_text(output)

    return FixedTool(
        toolset=cast("AbstractToolset[Any]", _OWNER),
        tool_def=ToolDefinition(
            name=found.name,
            description=flow.description or f"Run the flow {found.name}.",
            parameters_json_schema=schema,
            metadata={TRAITS_KEY: ToolTraits(kind="flow", tool=found.name)},
        ),
        max_retries=0,
        args_validator=_validator(model),
        call=call,
    )


def _validator(model: Any) -> Any:
    """Validates arguments as the input model does, and leaves them the arguments they are: the call makes the model."""
    checked: Any = Annotated[model, WrapValidator(_keep)]
    return TypeAdapter(checked).validator


def _keep(value: Any, validate: ValidatorFunctionWrapHandler) -> dict[str, Any]:
    made: BaseModel = validate(value)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else made.model_dump()
