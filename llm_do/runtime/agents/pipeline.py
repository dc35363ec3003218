"""The capability of every agent: it takes each tool call through its steps (`runtime.toolcall.tool_call`).

Stateless: state that lives as long as a run is in the call's `CallFrame`. PydanticAI validates all calls of a
response, in the model's order, before it runs the first; then each call runs in a task of its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import Agent, RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import LoopError
from llm_do.models.history_window import LONG, HistoryWindow
from llm_do.project.tools.argument_schemas import SchemaWorkError, check_briefly, check_schema, validation_text
from llm_do.runtime.agents.listed_names import check_listed_names
from llm_do.runtime.context.call_context import CallContext, current_call
from llm_do.runtime.context.call_frame import CallFrame
from llm_do.runtime.context.emission import open_tool
from llm_do.runtime.request.model_request import EngineModel, enabled_tools, parsed_arguments
from llm_do.runtime.toolcall.gatekeeper import show_available_tools
from llm_do.runtime.toolcall.tool_call import refuse, run_tool_call
from llm_do.runtime.tools.stamped_tools import StampedToolset
from llm_do.runtime.tools.traits import traits_of
from llm_do.text.canonical_json import canonical_json
from llm_do.text.json_data import arguments_data
from llm_do.text.words import with_count

__all__ = ["AdoptingPipeline", "Pipeline"]

OWN = frozenset({"PendingMessageDrainCapability", "ToolSearch"})
"""Capabilities that PydanticAI gives every agent."""

_ANY_ARGUMENTS: Any = TypeAdapter(dict[str, Any]).validator
_NOWHERE: FunctionToolset[Any] = FunctionToolset()


@dataclass
class Pipeline(AbstractCapability[Any]):
    """Takes model responses and tool calls through the runtime.

    Args:
        toolbox: The agent's tools, if the runtime built the agent: it replaces PydanticAI's own combination, which
            is rebuilt at every step. None keeps the agent's own toolsets.
    """

    toolbox: AbstractToolset[Any] | None = None

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """The agent's tools."""
        return self.toolbox

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Keep the task that PydanticAI runs capabilities in: a run that is cancelled now would leave it behind."""
        current_call().frame.lifecycle = asyncio.current_task()

    async def wrap_node_run(self, ctx: RunContext[Any], *, node: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Let PydanticAI prepare a request, and the calls of a response, with a window over a long history."""
        frame = current_call().frame
        if len(ctx.messages) < LONG or not _is_prepared(node, frame) or not _may_narrow(ctx):
            return await handler(node)
        assert isinstance(ctx.model, EngineModel)
        if frame.window is None:
            frame.window = HistoryWindow(ctx.model)
        with frame.window.step():
            await frame.window.narrow(ctx.messages, node.request if Agent.is_model_request_node(node) else None)
            return await handler(node)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Compare names in rules and gates with the agent's tools, once they are known."""
        check_listed_names(current_call(), request_context.model_request_parameters.function_tools)
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Limit the number of calls, stop loops, give calls distinct ids, send unknown names through the same steps."""
        call = current_call()
        outputs = {tool.name for tool in request_context.model_request_parameters.output_tools}
        response, excess = _without_excess(response, call.runtime.config.settings.max_calls_per_response, outputs)
        response = call.frame.call_ids.distinct(response, ctx.messages)
        calls = [part for part in response.tool_calls if part.tool_name not in outputs]
        if call.frame.loops.closes_loop([(part.tool_name, part.args) for part in calls]):
            times = with_count(call.frame.loops.threshold, "time")
            raise LoopError(
                f"agent {call.frame.config.name!r} asked for the same tool calls {times} in a row: "
                + ", ".join(sorted({part.tool_name for part in calls})),
                hint="Make the tools' results say what to do next, or change `loop_threshold`.",
                agent_path=call.path,
                messages=[*ctx.messages, response],
            )
        if not response.tool_calls:
            return response
        call.frame.excess = None
        if excess:
            last = [part for part in response.tool_calls if part.tool_name not in outputs][-1]
            call.frame.excess = (last.tool_call_id, _excess_reason(len(calls) - 1, excess))
            call.warn(
                f"the model of agent {call.frame.config.name!r} asked for {len(calls) - 1 + excess:,} tool calls "
                f"in one response; only the first {len(calls) - 1:,} may run (`max_calls_per_response`)"
            )
        if call.frame.live is not None and call.run.recording is not None and not call.run.replays:
            call.run.recording.save_messages([*ctx.messages, response])
        call.frame.gating.order.begin()
        several = len(response.tool_calls) > 1
        call.frame.identical.begin((part.tool_call_id, _written(part)) for part in response.tool_calls if several)
        tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        if tools is not None:
            for part in response.tool_calls:
                if part.tool_name not in tools and part.tool_name not in outputs:
                    tools[part.tool_name] = _unknown_tool(part.tool_name)
        return response

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: str | dict[str, Any]
    ) -> str | dict[str, Any]:
        """Record the requested call, and queue it among the calls of its toolkit."""
        current = current_call()
        if current.frame.window is not None:
            current.frame.window.end()
        open_tool(current, call.tool_call_id, call.tool_name, parsed_arguments(args))
        current.frame.approvals.required.pop(call.tool_call_id, None)
        traits = traits_of(tool_def.metadata)
        gates = current.frame.gating.gates(call.tool_name, traits.gate if traits is not None else None)
        if gates:
            current.frame.gating.order.take(call.tool_call_id, [gate.key for gate in gates])
        return args

    async def on_tool_validate_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
        error: ValidationError | ModelRetry,
    ) -> dict[str, Any]:
        """Turn invalid arguments into one failed result that says what is wrong."""
        if _is_unknown(tool_def):
            return {}
        _check_admitted(call)
        raise refuse(current_call(), call, validation_text(call.tool_name, error))

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> dict[str, Any]:
        """Refuse unknown names, and validate arguments that nothing has validated yet against their JSON Schema."""
        if _is_unknown(tool_def):
            _check_admitted(call)
            current = current_call()
            available = ", ".join(sorted(_available_tools(ctx, current))) or "none"
            raise refuse(current, call, f"unknown tool {call.tool_name!r}; available: {available}")
        _check_admitted(call)
        traits = traits_of(tool_def.metadata)
        if traits is None or traits.unchecked:
            args = parsed_arguments(args)
            if fault := await _schema_fault(tool_def.parameters_json_schema, args):
                raise refuse(current_call(), call, f"invalid arguments for {call.tool_name}: {fault}")
        return args

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Run the call through hooks, approval, the tool itself, hooks and record."""
        validate = partial(_validated, ctx, tool_def)
        return await run_tool_call(current_call(), call, tool_def, args, handler, ctx, validate)


@dataclass
class AdoptingPipeline(Pipeline):
    """The pipeline of an agent that was built elsewhere: its tools get their traits when its run starts."""

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """The agent's tools, with traits."""
        return StampedToolset(toolset, "agent")


def _is_prepared(node: Any, frame: CallFrame) -> bool:
    """Whether PydanticAI walks through the history for a node before functions of the project run."""
    if Agent.is_model_request_node(node):
        return True
    agent = frame.config.agent
    is_text = agent is not None and agent.output_type is str
    return is_text and Agent.is_call_tools_node(node) and bool(node.model_response.tool_calls)


def _may_narrow(ctx: RunContext[Any]) -> bool:
    """Whether only the runtime and PydanticAI itself see how a request is prepared."""
    capabilities = [type(each) for each in ctx.capabilities.values()]
    if not all(kind is Pipeline or (kind.__name__ in OWN and _is_pydantic_ais(kind)) for kind in capabilities):
        return False
    model = ctx.model
    if not isinstance(model, EngineModel) or not _is_pydantic_ais(type(model.wrapped).prepare_messages):
        return False
    last = ctx.messages[-1]
    return not (isinstance(last, ModelResponse) and last.state == "suspended")


def _is_pydantic_ais(item: Any) -> bool:
    return item.__module__.partition(".")[0] == "pydantic_ai"


def _written(call: ToolCallPart) -> str:
    """What makes a call the same as another one: its tool and arguments, as the model wrote them."""
    args = parsed_arguments(call.args)
    try:
        return f"{call.tool_name} {canonical_json(args)}"
    except TypeError:
        return f"{call.tool_name} {args!r}"


def _without_excess(response: ModelResponse, limit: int, outputs: set[str]) -> tuple[ModelResponse, int]:
    """Return the response with one more call than may run, which stands for all that don't, and their number.

    The rest is left out because each call costs time, and a place in every later request, even if it is refused.
    """
    calls = [part for part in response.tool_calls if part.tool_name not in outputs]
    if len(calls) <= limit:
        return response, 0
    left_out = {id(part) for part in calls[limit + 1 :]}
    return replace(response, parts=[part for part in response.parts if id(part) not in left_out]), len(calls) - limit


def _excess_reason(limit: int, excess: int) -> str:
    rest = f" and {excess - 1:,} more were" if excess > 1 else " was"
    some = f"{limit:,} call{'s' if limit > 1 else ''}"
    return f"not run: at most {some} of one response run, so this one{rest} left out; ask for fewer at a time"


def _check_admitted(call: ToolCallPart) -> None:
    """Refuse a call beyond those of a response that run, and one to a tool that isn't enabled on the run's thread."""
    ctx = current_call()
    if ctx.frame.excess is not None and ctx.frame.excess[0] == call.tool_call_id:
        raise refuse(ctx, call, ctx.frame.excess[1])
    if not ctx.run.thread.config.is_tool_enabled(call.tool_name):
        raise refuse(ctx, call, f"tool {call.tool_name!r} is not enabled on this thread")


async def _validated(ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any]) -> dict[str, Any] | str:
    """Validate arguments that aren't a model's, as `Validate` describes."""
    tool = _tools(ctx)[tool_def.name]
    try:
        args = tool.args_validator.validate_python(args, context=ctx.validation_context)
        if tool.args_validator_func is not None:
            result = tool.args_validator_func(ctx, **args)
            if inspect.isawaitable(result):
                await result
    except (ValidationError, ModelRetry) as error:
        return validation_text(tool_def.name, error)
    traits = traits_of(tool_def.metadata)
    if traits is None or traits.unchecked:
        fault = await _schema_fault(tool_def.parameters_json_schema, arguments_data(args))
        return args if fault is None else f"invalid arguments for {tool_def.name}: {fault}"
    return args


async def _schema_fault(schema: dict[str, Any], args: object) -> str | None:
    """The first fault of arguments, found in a worker thread if it takes long."""
    try:
        return check_briefly(schema, args)
    except SchemaWorkError:
        return await run_in_worker(check_schema, schema, args)


def _tools(ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
    manager = ctx.tool_manager
    return (manager.tools if manager is not None else None) or {}


def _available_tools(ctx: RunContext[Any], current: CallContext) -> list[str]:
    """Return the names of the tools that a request would offer now: enabled on the thread, and hidden by no gate."""
    known = [tool.tool_def for tool in _tools(ctx).values() if not _is_unknown(tool.tool_def)]
    offered = show_available_tools(current.frame.gating, ModelRequestParameters(function_tools=known))
    return [tool.name for tool in enabled_tools(current.run.thread.config, offered).function_tools]


def _is_unknown(tool_def: ToolDefinition) -> bool:
    return bool(tool_def.metadata) and "unknown" in (tool_def.metadata or {})


def _unknown_tool(name: str) -> ToolsetTool[Any]:
    """Return a stand-in for an unknown name, so that the call takes the same steps as any other."""
    definition = ToolDefinition(name=name, metadata={"unknown": True})
    return ToolsetTool(toolset=_NOWHERE, tool_def=definition, max_retries=0, args_validator=_ANY_ARGUMENTS)
