"""Teams: the lead is an agent with an additional tool for each worker, `delegate_to_NAME(task)`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from llm_do.errors import RunError
from llm_do.flows.step_input import step_input
from llm_do.linker.checks.flow_checks import delegate_name
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.project.inputs import AnyInput, PromptInput
from llm_do.project.registry import Registered, Registry
from llm_do.runtime.call.call_scope import CallSite
from llm_do.runtime.call.invocation import invoke
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.text.output_text import output_text

__all__ = ["build_lead"]

_Key = tuple[AgentSpec, tuple[object, ...]]
_leads: WeakKeyDictionary[FlowSpec, tuple[_Key, AgentSpec]] = WeakKeyDictionary()
_lock = threading.Lock()


def build_lead(flow: FlowSpec, lead: AgentSpec, registry: Registry) -> AgentSpec:
    """Add the delegate tools to a team's lead; cached, so that its agent is built once for all runs."""
    workers = [_worker(flow, name, registry) for name in flow.agents[1:]]
    key = (lead, tuple(worker.value for worker in workers))
    with _lock:
        known = _leads.get(flow)
        if known is None or known[0] != key:
            toolset: FunctionToolset[Any] = FunctionToolset([_delegate(each, registry) for each in workers], id="team")
            known = _leads[flow] = key, replace(lead, toolsets=(*lead.toolsets, toolset))
        return known[1]


def _worker(flow: FlowSpec, name: str, registry: Registry) -> Registered:
    found = as_member(flow, name, registry)
    if found is None:
        raise RunError(
            f"team {flow.name!r} has a worker {name!r}, which doesn't exist",
            hint="Register it, or list the object among the team's `agents`.",
            agent_path=flow.name,
        )
    return found


def _delegate(worker: Registered, registry: Registry) -> Tool[Any]:
    async def delegate(ctx: RunContext[CallContext], task: Any) -> str:
        """Call the worker as a child of the lead's call, with an id derived from the tool call's."""
        call = ctx.deps
        site = CallSite(ctx.tool_call_id or worker.name)
        return output_text(await invoke(worker, step_input(worker, task, call), call, site))

    description = getattr(worker.value, "description", None)
    summary = f"Give a task to {worker.name} and get its result."
    tool: Tool[Any] = Tool.from_schema(
        delegate,
        delegate_name(worker.name),
        f"{summary} {description}" if description else summary,
        _schema(worker, registry),
        takes_ctx=True,
    )
    kind = "flow" if worker.kind == "flow" else "agent"
    tool.metadata = ToolTraits(ToolFacts(kind, primary="task"), tool=worker.name, unchecked=True).metadata()
    return tool


def _schema(worker: Registered, registry: Registry) -> dict[str, Any]:
    """Build the schema of the only argument, `task`: a string, or the worker's input model."""
    model = None
    if worker.kind == "agent":
        model = worker.value.input_model
    elif worker.kind == "flow":
        model = worker.value.input_model(registry)
    task: dict[str, Any] = {"type": "string", "description": "What to do, with everything it takes to do it."}
    schema: dict[str, Any] = {"type": "object", "properties": {"task": task}, "required": ["task"]}
    if model not in (None, PromptInput, AnyInput):
        task = dict(model.model_json_schema())
        shared = cast("Mapping[str, Any]", task.pop("$defs", {}))
        schema["properties"] = {"task": task}
        if shared:
            schema["$defs"] = dict(shared)
    return {**schema, "additionalProperties": False}
