"""The tool schemas that an agent's model gets when a run starts, in OpenAI's format; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai.models import ModelRequestParameters

from llm_do.project.agent_spec import AgentSpec
from llm_do.project.project import EntrySpec, Project
from llm_do.project.registry import Registered, Registry
from llm_do.runtime.agents.agent_builder import AgentBuilder
from llm_do.runtime.toolcall.gatekeeper import show_available_tools
from llm_do.runtime.tools.call_gates import CallGates

__all__ = ["tool_schemas"]


def tool_schemas(spec: AgentSpec) -> list[dict[str, Any]]:
    """Return the tools that are known before a run and available at its start."""
    registry = Registry({spec.name: Registered(spec.name, "agent", spec)})
    builder = AgentBuilder(Project(Path.cwd(), EntrySpec("agent", spec.name), registry), registry)
    built = builder.build(spec)
    unconditional = [tool for tool in built.tools if tool.name not in built.conditional]
    request = show_available_tools(CallGates(built.declared), ModelRequestParameters(function_tools=unconditional))
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in request.function_tools
    ]
