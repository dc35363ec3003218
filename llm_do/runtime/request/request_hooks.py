"""What hooks replace of a request and of its response: the messages, settings and response that they return.

Hooks get copies: only what they return changes anything, and the record has that. In a durable run, what the hooks of a
request came to is a step, so that they aren't called again when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
)
from pydantic_core import PydanticSerializationError

from llm_do.errors import HookError
from llm_do.formats.validation.fields import ModelSettings as DeclaredSettings
from llm_do.models.message_copies import MessageCopies, copy_data, is_unchanged, take_snapshot
from llm_do.models.pool import CONNECTION_SETTINGS
from llm_do.project.faults import function_place
from llm_do.runtime.context.emission import emit, ending_run, live_step, response_key
from llm_do.runtime.context.hooks import HookPoint, RequestReplacement, hook_name
from llm_do.runtime.record.events.model_events import HookEvent
from llm_do.runtime.record.histories import find_unpaired_call
from llm_do.runtime.request.kept_messages import Message, find_new, join_messages, split_messages
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

    from llm_do.runtime.context.call_context import CallContext

__all__ = ["replace_request", "replace_response"]

Hook: TypeAlias = Callable[..., object]

MAY_RETURN = {
    HookPoint.PRE_LLM_CALL: "Return None to send the request as it is, a list of messages, or a `RequestReplacement`; "
    "`dataclasses.replace(message, parts=[...])` makes a changed message.",
    HookPoint.POST_LLM_CALL: "Return None to keep the response, or another `ModelResponse`, as "
    "`dataclasses.replace(response, parts=[...])` makes one.",
}
"""What hooks may return, by point."""


@dataclass(slots=True)
class _Replaced:
    """What one hook replaced; None for what it didn't."""

    hook: str
    messages: list[ModelMessage] | None = None
    settings: Mapping[str, Any] | None = None
    response: ModelResponse | None = None

    def to_data(self, before: dict[str, list[Message]]) -> dict[str, Any]:
        """Return it as JSON data that `from_data` reads back.

        Args:
            before: The messages that each hook returned last; these take their place.

        Raises:
            ValueError: A message has something that isn't data.
        """
        messages: list[Any] | None = None
        if self.messages is not None:
            dumped = _dumped(self.messages)
            messages = split_messages(dumped, before.get(self.hook, ()))
            before[self.hook] = dumped
        response = None if self.response is None else _dumped([self.response])
        settings = None if self.settings is None else to_json_data(self.settings, strict=True)
        return {"hook": self.hook, "messages": messages, "settings": settings, "response": response}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], before: dict[str, list[Message]]) -> _Replaced:
        """Return what `to_data` wrote."""
        hook, messages, response = data["hook"], data["messages"], data["response"]
        if messages is not None:
            before[hook] = join_messages(messages, before.get(hook, ()))
            messages = ModelMessagesTypeAdapter.validate_python(before[hook])
        if response is not None:
            response = cast("ModelResponse", ModelMessagesTypeAdapter.validate_python(response)[0])
        return cls(hook, messages, data["settings"], response)


@dataclass(slots=True)
class _Exchange:
    """A request, or its response, as the hooks so far leave it."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    response: ModelResponse | None = None

    def apply(self, change: _Replaced) -> list[tuple[str, Any]]:
        """Take over what a hook replaced, and return each thing's name with what events show of it."""
        shown: list[tuple[str, Any]] = []
        if change.messages is not None:
            shown.append(("messages", _dumped(find_new(change.messages, self.messages), strict=False)))
            self.messages = change.messages
        if change.settings is not None:
            shown.append(("settings", to_json_data(change.settings)))
            merged = {**self.settings, **change.settings}
            self.settings = {name: value for name, value in merged.items() if value is not None}
        if change.response is not None:
            shown.append(("response", _dumped([change.response], strict=False)[0]))
            self.response = change.response
        return shown


async def replace_request(
    ctx: CallContext, messages: list[ModelMessage], settings: ModelSettings | None
) -> tuple[list[ModelMessage], ModelSettings | None]:
    """Call the hooks before a request, and return its messages and settings as they leave them.

    Raises:
        HookError: A hook has returned what can't be sent.
    """
    if not ctx.frame.hooks.at(HookPoint.PRE_LLM_CALL):
        return messages, settings
    own: Any = {name: value for name, value in (settings or {}).items() if value is not None}
    found = await _replaced(ctx, HookPoint.PRE_LLM_CALL, _Exchange(messages, own))
    changed: Any = found.settings
    return found.messages, settings if changed == own else changed


async def replace_response(ctx: CallContext, response: ModelResponse) -> ModelResponse:
    """Call the hooks after a response, and return it as they leave it.

    Raises:
        HookError: A hook has returned what can't be a response.
    """
    if not ctx.frame.hooks.at(HookPoint.POST_LLM_CALL):
        return response
    found = await _replaced(ctx, HookPoint.POST_LLM_CALL, _Exchange(response=response))
    assert found.response is not None
    return found.response


async def _replaced(ctx: CallContext, point: HookPoint, exchange: _Exchange) -> _Exchange:
    """Call the hooks of a point; each sees what those before it leave."""
    durable, key = ctx.run.durable, f"{response_key(ctx)}/{point.value}"
    if durable is not None:
        with ending_run(ctx):
            if (kept := durable.log.replay(key)) is not None:
                for data in kept["replaced"]:
                    _take_over(ctx, exchange, _Replaced.from_data(data, ctx.frame.replaced))
                return exchange
            await live_step(ctx, key, lambda: f"the {point.value} hooks of request {ctx.frame.requests} of {ctx.path}")
    replaced: list[dict[str, Any]] = []
    for number, function in enumerate(ctx.frame.hooks.at(point)):
        if point is HookPoint.PRE_LLM_CALL:
            copies = ctx.frame.copies.setdefault(number, MessageCopies())
            change = await _call_before(ctx, function, exchange.messages, copies)
        else:
            change = await _call_after(ctx, function, exchange.response)
        if change is None:
            continue
        if durable is not None:
            try:
                replaced.append(change.to_data(ctx.frame.replaced))
            except (ValueError, PydanticSerializationError) as error:
                raise _fault(ctx, function, point, f"returned what can't be kept as JSON data: {error}") from error
        _take_over(ctx, exchange, change)
    if durable is not None:
        durable.log.end(key, "code", {"path": ctx.path, "replaced": replaced})
    return exchange


def _take_over(ctx: CallContext, exchange: _Exchange, change: _Replaced) -> None:
    for replaced, shown in exchange.apply(change):
        request = ctx.frame.requests
        emit(ctx, HookEvent, hook=change.hook, request=request, replaced=replaced, replacement=shown)


async def _call_before(
    ctx: CallContext, function: Hook, messages: Sequence[ModelMessage], copies: MessageCopies
) -> _Replaced | None:
    """Call one hook before a request and read what it returns; None if it replaces nothing."""
    point = HookPoint.PRE_LLM_CALL
    before = await copies.copy(messages)
    given = list(before)
    found = await ctx.frame.hooks.call_one(function, point, agent=ctx.frame.config.agent, messages=given)
    changed = await copies.find_changed()
    if changed is not None:
        raise _fault(ctx, function, point, f"changed message {changed + 1} of {len(before)} in place")
    is_same_list = len(given) == len(before) and all(map(is_, given, before))
    if found is None and not is_same_list:
        raise _fault(ctx, function, point, "returned None, but changed the list of messages in place")
    if found is given and is_same_list:
        return None
    change = _request(ctx, function, found)
    if change is not None and change.messages is not None:
        change.messages = copies.originals(change.messages)
    return change


async def _call_after(ctx: CallContext, function: Hook, response: ModelResponse | None) -> _Replaced | None:
    """Call one hook after a response and read what it returns; None if it replaces nothing."""
    assert response is not None
    point = HookPoint.POST_LLM_CALL
    # A hook may keep the response and change it later: it gets a copy, and what is taken over is another one.
    given = copy_data(response)
    before = take_snapshot(given)
    found = await ctx.frame.hooks.call_one(function, point, agent=ctx.frame.config.agent, response=given)
    if found is None and not is_unchanged(given, before):
        raise _fault(ctx, function, point, "returned None, but changed the response in place")
    if found is None or is_unchanged(found, before):
        return None
    return _response(ctx, function, copy_data(found), response)


def _request(ctx: CallContext, function: Hook, found: object) -> _Replaced | None:
    if isinstance(found, list | tuple):
        found = RequestReplacement(messages=cast("Sequence[ModelMessage]", found))
    if found is None:
        return None
    if not isinstance(found, RequestReplacement):
        raise _fault(ctx, function, HookPoint.PRE_LLM_CALL, f"returned {_kind(found)}")
    fault = _history_fault(found.messages) or _settings_fault(found.settings)
    if fault is not None:
        raise _fault(ctx, function, HookPoint.PRE_LLM_CALL, f"returned {fault}")
    messages = None if found.messages is None else list(found.messages)
    settings = None if found.settings is None else dict(found.settings)
    if messages is None and not settings:
        return None
    return _Replaced(hook_name(function), messages, settings)


def _response(ctx: CallContext, function: Hook, found: object, before: ModelResponse) -> _Replaced:
    if not isinstance(found, ModelResponse):
        raise _fault(ctx, function, HookPoint.POST_LLM_CALL, f"returned {_kind(found)}")
    if _unanswered(found) - _unanswered(before):
        fault = "returned a response with a call of a provider's tool without its result"
        raise _fault(ctx, function, HookPoint.POST_LLM_CALL, fault)
    # What the request used is what the provider says, whatever becomes of its response.
    return _Replaced(hook_name(function), response=replace(found, usage=before.usage))


def _fault(ctx: CallContext, function: Hook, point: HookPoint, fault: str) -> HookError:
    file, line = function_place(function, ctx.project.root)
    return HookError(
        f"the hook {hook_name(function)} at {point.value} {fault}",
        hint=MAY_RETURN[point],
        file=file,
        line=line,
        agent_path=ctx.path,
    )


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _settings_fault(settings: object) -> str | None:
    """Why settings can't be sent; None if they can."""
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        return f"settings that are {_kind(settings)}"
    declared = cast("Mapping[object, object]", settings)
    own = [str(name) for name in declared if name in CONNECTION_SETTINGS]
    if own:
        return f"the setting {own[0]}, which belongs to the connection and can't change for one request"
    try:
        TypeAdapter(DeclaredSettings).validate_python({k: v for k, v in declared.items() if v is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"wrong settings: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None


def _history_fault(messages: object) -> str | None:
    """Why messages can't be sent; None if they can."""
    if messages is None:
        return None
    if not isinstance(messages, list | tuple):
        return f"messages that are {_kind(messages)}"
    for message in cast("Sequence[object]", messages):
        if not isinstance(message, ModelRequest | ModelResponse):
            return f"messages of which one is {_kind(message)}"
    history = cast("Sequence[ModelMessage]", messages)
    if not history or isinstance(history[-1], ModelResponse):
        return "messages that don't end with a request"
    fault = find_unpaired_call(history)
    return None if fault is None else f"messages with {fault}"


def _unanswered(response: ModelResponse) -> set[str]:
    """The calls of a provider's own tools without a result."""
    calls = {part.tool_call_id for part in response.parts if isinstance(part, NativeToolCallPart)}
    return calls - {part.tool_call_id for part in response.parts if isinstance(part, NativeToolReturnPart)}


def _dumped(messages: Sequence[ModelMessage], *, strict: bool = True) -> list[dict[str, Any]]:
    try:
        return ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    except (ValueError, PydanticSerializationError):
        if strict:
            raise
        return to_json_data(list(messages))
