"""Guards: a project's functions that look at what an agent gets and what it returns, replace it, or end the call.

A guard is called with the input or the output, and with the context if it takes a second argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import EntryError, GuardError, InputError, LlmDoError
from llm_do.models.message_copies import copy_data, is_unchanged, take_snapshot
from llm_do.project.faults import find_fault, project_error
from llm_do.project.functions import input_annotation
from llm_do.project.inputs import PromptInput, to_input
from llm_do.runtime.context.emission import emit
from llm_do.runtime.record.events.run_events import GuardEvent
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["guard_input", "guard_output"]

Guard: TypeAlias = Callable[..., Any]
Side: TypeAlias = Literal["input", "output"]


async def guard_input(ctx: CallContext, guards: Sequence[Guard]) -> None:
    """Show an agent's input to its guards; what one of them returns is the input from then on.

    Raises:
        GuardError: A guard has refused it.
        EntryError: A guard has failed, or returned what isn't an input of the agent.
    """
    for guard in guards:
        given = ctx.frame.input
        is_text = isinstance(given, PromptInput) and input_annotation(guard) is str
        shown = given.input if is_text and isinstance(given, PromptInput) else given
        found = await _replacement(guard, shown, ctx, "input")
        if found is None:
            continue
        try:
            ctx.frame.input = _input(given, found)
        except InputError as error:
            raise _misfit(guard, "input", error.message, ctx) from error
        emit(ctx, GuardEvent, guard=_name(guard), side="input", replacement=to_json_data(ctx.frame.input))


async def guard_output(ctx: CallContext, guards: Sequence[Guard], output: Any, output_type: Any) -> Any:
    """Show an agent's output to its guards, and return it as they leave it.

    Raises:
        GuardError: A guard has refused it.
        EntryError: A guard has failed, or returned what isn't an output of the agent.
    """
    for guard in guards:
        found = await _replacement(guard, output, ctx, "output")
        if found is None:
            continue
        try:
            output = _output(output_type, found)
        except ValidationError as error:
            faults = "; ".join(fault["msg"] for fault in error.errors(include_url=False, include_input=False))
            raise _misfit(guard, "output", faults, ctx) from error
        emit(ctx, GuardEvent, guard=_name(guard), side="output", replacement=to_json_data(output))
    return output


def _input(given: BaseModel, found: object) -> BaseModel:
    """A replacement as the agent's input; a text keeps what was attached to the one that it replaces."""
    if isinstance(found, str) and isinstance(given, PromptInput):
        return to_input(type(given), {**given.model_dump(), "input": found})
    return to_input(type(given), found)


def _output(output_type: Any, found: object) -> Any:
    """A replacement as the agent's output; one that a JSON Schema describes is data."""
    if isinstance(output_type, dict):
        return to_json_data(found)
    try:
        adapter = TypeAdapter[Any](output_type)
    except PydanticUserError:  # a description of outputs that only PydanticAI knows, such as several types
        return found
    return adapter.validate_python(found)


async def _replacement(guard: Guard, value: object, ctx: CallContext, side: Side) -> Any:
    """Show a guard a copy of a value, and return what takes its place; None if it stays."""
    shown = copy_data(value)
    before = take_snapshot(shown)
    found = await _called(guard, shown, ctx, side)
    if found is None and not is_unchanged(shown, before):
        raise EntryError(
            f"the guard {_name(guard)} returned None, but changed the {side} of {ctx.frame.config.name} in place",
            agent_path=ctx.path,
            hint=f"Return the changed {side}, so that it takes the place of the one before.",
        )
    return None if is_unchanged(found, before) else found


async def _called(guard: Guard, value: object, ctx: CallContext, side: Side) -> Any:
    try:
        return await call_function(guard, value, *([ctx] if _takes_context(guard) else []))
    except GuardError as error:
        fault = find_fault(error, ctx.project.root)
        raise GuardError(
            f"the guard {_name(guard)} refused the {side} of {ctx.frame.config.name}: {error.message}",
            hint=error.hint,
            file=fault.file,
            line=fault.line,
            agent_path=ctx.path,
        ) from error
    except LlmDoError:
        raise
    except BaseException as error:
        reraise_if_cancelled(error)
        failed = f"the guard {_name(guard)} failed:"
        raise project_error(EntryError, failed, error, ctx.project.root, agent_path=ctx.path) from error


def _takes_context(guard: Guard) -> bool:
    try:
        inspect.signature(guard).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _misfit(guard: Guard, side: Side, reason: str, ctx: CallContext) -> EntryError:
    return EntryError(
        f"the guard {_name(guard)} returned no {side} of {ctx.frame.config.name}: {reason}",
        agent_path=ctx.path,
        hint=f"return None to leave the {side} as it is, or what the agent's {side} may be",
    )


def _name(guard: Guard) -> str:
    return str(getattr(guard, "__name__", type(guard).__name__))
