"""Calls of exported functions: their input is validated as a model's would be; then they run as trusted code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_ai import Agent, RunContext
from pydantic_ai.usage import RunUsage

from llm_do._startup.frozen import frozen
from llm_do.concurrency.worker_threads import WORKERS, call_function
from llm_do.errors import InputError, LlmDoError
from llm_do.project.functions import input_annotation, takes_context
from llm_do.project.inputs import PromptInput, to_input
from llm_do.project.registry import Registered
from llm_do.project.tools.argument_schemas import check_schema
from llm_do.runtime.call.own_deps import function_deps
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.null_model import NULL_MODEL
from llm_do.runtime.tools.iterated_results import UNLIMITED_ITEMS, collect_items
from llm_do.runtime.tools.traits import traits_of
from llm_do.text.output_text import output_text

if TYPE_CHECKING:
    from pydantic_ai.toolsets.abstract import SchemaValidatorProt
    from pydantic_core import SchemaValidator

__all__ = [
    "CallArguments",
    "FunctionCall",
    "call_code",
    "checked_arguments",
    "checked_input",
    "function_call",
    "run_context",
]


class CallArguments(BaseModel):
    """The input of an exported function that is called by name, as events show it."""

    model_config = ConfigDict(extra="allow")


@frozen
class FunctionCall:
    """A function with a validated input.

    Args:
        input: The input as events show it.
        run: Runs it in its call's context.
        function: The function itself, for messages.
        repeatable: Whether it may simply run again if it was in flight when a run was stopped.
    """

    input: BaseModel
    run: Callable[[CallContext], Awaitable[Any]]
    function: Callable[..., Any]
    repeatable: bool = False


def function_call(found: Registered, value: object, ctx: CallContext) -> FunctionCall:
    """Validate a function's input; nothing has run yet."""
    prepare = _context_function if takes_context(found.value) else _plain_function
    return prepare(found.name, found.value, value, ctx)


async def call_code(function: Any, input: object, ctx: CallContext) -> Any:
    """Call a function of the form `(input, ctx)`; what it yields is collected."""
    return await collect_items(await call_function(function, input, ctx), UNLIMITED_ITEMS)


def checked_input(ctx: CallContext, name: str, model: type[BaseModel], value: object) -> BaseModel:
    """The input model of a call; an error says which call it was for."""
    try:
        return to_input(model, value)
    except LlmDoError as error:
        error.agent_path = error.agent_path or f"{ctx.path}/{name}"
        raise


def _context_function(name: str, function: Any, value: object, ctx: CallContext) -> FunctionCall:
    """A function of the form `(input, ctx)`, with the input that its annotation asks for."""
    input = _annotated_input(ctx, name, input_annotation(function), value)
    shown = input if isinstance(input, BaseModel) else CallArguments.model_validate({"input": input})
    return FunctionCall(shown, lambda child: call_code(function, input, child), function)


def _plain_function(name: str, item: Any, value: object, ctx: CallContext) -> FunctionCall:
    """A function with parameters of its own, as a tool has them."""
    tool = ctx.runtime.builder.tool(item, name)
    schema = tool.function_schema
    args = checked_arguments(ctx, name, schema.json_schema, schema.validator, tool.metadata, value)

    async def run(child: CallContext) -> Any:
        with Agent.using_thread_executor(WORKERS):
            made = run_context(child, name, function_deps(schema.function, child))
            return await collect_items(await schema.call(args, made), UNLIMITED_ITEMS)

    traits = traits_of(tool.metadata)
    repeatable = traits is not None and traits.may_run_again
    return FunctionCall(CallArguments.model_validate(args), run, schema.function, repeatable)


def run_context(ctx: CallContext, name: str, deps: object) -> RunContext[Any]:
    """What a tool is passed that code calls: there is no model, and no approval is needed."""
    return RunContext(
        deps=deps,
        model=NULL_MODEL,
        usage=RunUsage(),
        tool_name=name,
        tool_call_id=ctx.call_id,
        tool_call_approved=True,
    )


def _annotated_input(ctx: CallContext, name: str, annotation: Any, value: object) -> Any:
    """A caller's input as what a function's annotation asks for."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return checked_input(ctx, name, annotation, value)
    if isinstance(value, PromptInput):
        value = value.input
    if annotation is str:
        return output_text(value)
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", annotation))
    try:
        return adapter.validate_python(value if not isinstance(value, BaseModel) else value.model_dump())
    except ValueError as error:
        raise InputError(
            f"input does not fit {name}: {_one_line(error)}",
            agent_path=ctx.path,
            hint="pass what the function's first parameter is annotated with",
        ) from error


def checked_arguments(
    ctx: CallContext,
    name: str,
    schema: Mapping[str, Any],
    validator: SchemaValidator | SchemaValidatorProt,
    metadata: Mapping[str, Any] | None,
    value: object,
) -> dict[str, Any]:
    """A tool's arguments from Python, validated as a model's would be."""
    fault, cause = None, None
    args: dict[str, Any] = {}
    try:
        args = validator.validate_python(_arguments_data(schema, value))
        traits = traits_of(metadata)
        if traits is None or traits.unchecked:
            fault = check_schema(schema, args)
    except ValueError as error:
        fault, cause = _one_line(error), error
    if fault is not None:
        takes = f"It takes {', '.join(schema.get('properties', ())) or 'nothing'}."
        raise InputError(f"input does not fit {name}: {fault}", hint=takes, agent_path=ctx.path) from cause
    return args


def _arguments_data(schema: Mapping[str, Any], value: object) -> object:
    """A caller's input as arguments: text, or the `input` that an agent takes, is the only parameter's value."""
    data: object = value.model_dump(exclude_defaults=True) if isinstance(value, PromptInput) else value
    if isinstance(data, BaseModel):
        data = data.model_dump()
    names = list(schema.get("properties", {}))
    required = list(schema.get("required", ()))
    only = names[0] if len(names) == 1 else required[0] if len(required) == 1 else "input"
    if isinstance(data, str):
        return {only: data}
    if isinstance(data, Mapping) and "input" not in names:
        fields = {
            str(key): item for key, item in cast("Mapping[Any, Any]", data).items() if key != "attachments" or item
        }
        if list(fields) == ["input"]:
            return {only: fields["input"]}
    return cast("object", data)


def _one_line(error: ValueError) -> str:
    faults = getattr(error, "errors", None)
    if callable(faults):
        listed: Any = faults(include_url=False, include_input=False)
        return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'input'}: {fault['msg']}" for fault in listed)
    return str(error)
