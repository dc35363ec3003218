"""The parts of an agent's declaration that map directly to PydanticAI: instructions, output, provider-run tools.

The agent's other tools are collected in `llm_do.runtime.agents.agent_builder`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic_ai import ModelRetry, RunContext, StructuredDict
from pydantic_ai.capabilities import NativeTool

from llm_do.concurrency.worker_threads import call_function
from llm_do.models.history_window import whole_history
from llm_do.project.agent_spec import SKILLS, AgentSpec, ServerSideTool, skills_of
from llm_do.project.functions import context_deps
from llm_do.project.tools.argument_schemas import find_schema_faults
from llm_do.runtime.call.own_deps import in_call
from llm_do.runtime.call.templates import render_template
from llm_do.runtime.context.call_context import current_call
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import traits_of

__all__ = ["instructions_of", "output_check", "output_type", "server_side_tool", "skill_instructions"]


def instructions_of(spec: AgentSpec) -> Any:
    """Return the instructions for PydanticAI; a template is filled in once per call, from the input."""
    text = spec.instructions
    if callable(text):
        function = text

        async def called(ctx: RunContext[Any]) -> str:
            with whole_history():
                return await call_function(function, *_instructions_arguments(function, spec.name, ctx))

        return called
    if spec.template:

        def filled(_: RunContext[Any]) -> str:
            return render_template(text, current_call().frame.input)

        return filled
    return text or None


def skill_instructions(spec: AgentSpec, tools: Mapping[str, FixedTool]) -> str | None:
    """Return the names and descriptions of an agent's skills, the same text in every request; None without skills."""
    load = next((name for name, tool in tools.items() if _loads_skills(tool)), None)
    skills = skills_of(spec)
    if load is None or not skills:
        return None
    listed = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
    return (
        f"You have skills: instructions for certain tasks. If the description of one fits your task, call {load} with "
        f"its name before you begin, and follow its instructions.\n\n{listed}"
    )


def _loads_skills(tool: FixedTool) -> bool:
    traits = traits_of(tool.tool_def.metadata)
    return traits is not None and (traits.toolset, traits.tool) == (SKILLS, "load_skill")


def _instructions_arguments(function: Callable[..., Any], name: str, run: RunContext[Any]) -> tuple[object, ...]:
    """Return the argument that an instructions function accepts, if any: the agent's name, or a context."""
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind in (0, 1)
    ]
    if not parameters:
        return ()
    first = parameters[0]
    if "RunContext" in str(first.annotation):
        return (in_call(run) if context_deps(function) == "call" else run,)
    takes_context = "Context" in str(first.annotation) or first.name in ("ctx", "context")
    return (current_call() if takes_context else name,)


def _output_schema(spec: AgentSpec) -> dict[str, Any] | None:
    """Return the output's JSON Schema if the agent declares one instead of a type."""
    declared = spec.output_type
    return cast("dict[str, Any]", declared) if isinstance(declared, dict) else None


def output_type(spec: AgentSpec) -> Any:
    """Return an agent's output type for PydanticAI."""
    schema = _output_schema(spec)
    if schema is not None:
        return StructuredDict(schema, name=str(schema.get("title") or "result"))
    return spec.output_type


def output_check(spec: AgentSpec) -> Callable[[Any], Any] | None:
    """Return a check of the output against its JSON Schema, which PydanticAI only sends; None without a schema."""
    schema = _output_schema(spec)
    if schema is None:
        return None

    def check(output: Any) -> Any:
        if faults := find_schema_faults(schema, output):
            raise ModelRetry(f"the output doesn't fit its schema: {'; '.join(faults)}")
        return output

    return check


def server_side_tool(item: ServerSideTool) -> NativeTool[Any]:
    """Return the provider-run tool of a declaration."""
    if item.native is not None:
        return NativeTool(item.native)
    from pydantic_ai import native_tools

    kinds = {
        "web_search": native_tools.WebSearchTool,
        "web_fetch": native_tools.WebFetchTool,
        "code_execution": native_tools.CodeExecutionTool,
        "image_generation": native_tools.ImageGenerationTool,
    }
    return NativeTool(kinds[item.tool_type](**item.options))
