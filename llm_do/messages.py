"""Messages as frozen, JSON-friendly values: views of PydanticAI's messages, to read, store and show.

A run's own history (`RunResult.messages`) consists of PydanticAI's messages; the next run continues from either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Discriminator, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelRequestPart, ModelResponse, UserPromptPart

__all__ = [
    "AssistantMessage",
    "Message",
    "SystemMessage",
    "ToolCall",
    "ToolResult",
    "UserMessage",
    "from_messages",
    "to_messages",
]


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UserMessage(_View):
    """The input of a person, or of an agent's caller.

    Args:
        content: The text, with the type of each attachment in brackets.

    Example:
        >>> UserMessage(content="Hello").role
        'user'
    """

    role: Literal["user"] = "user"
    content: str


class SystemMessage(_View):
    """An agent's instructions."""

    role: Literal["system"] = "system"
    content: str


class ToolCall(_View):
    """A model's request to call a tool.

    Args:
        id: The call's id.
        name: The tool.
        arguments: Its arguments as JSON text.

    Example:
        >>> ToolCall(id="c1", name="get_weather", arguments='{"city": "Oslo"}').name
        'get_weather'
    """

    id: str
    name: str
    arguments: str = "{}"


class AssistantMessage(_View):
    """A model's response: text, tool calls, or both.

    Args:
        content: The text.
        tool_calls: The calls, in the order the model made them.
    """

    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class ToolResult(_View):
    """The outcome of a tool call.

    Args:
        tool_call_id: The call's id.
        tool_name: The tool.
        content: The text that the model received.
        error: The same, when the call failed or was denied; None when it succeeded.
    """

    role: Literal["tool"] = "tool"
    tool_call_id: str
    tool_name: str
    content: str = ""
    error: str | None = None


Message: TypeAlias = Annotated[UserMessage | SystemMessage | AssistantMessage | ToolResult, Discriminator("role")]
"""Any message; tell them apart by `role`."""

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


def to_messages(history: Iterable[ModelMessage]) -> list[Message]:
    """Convert a history to the messages of this module.

    Args:
        history: PydanticAI's messages, such as `RunResult.messages`.

    Returns:
        The messages. Instructions become a `SystemMessage` where they begin or change; thinking is left out.

    Example:
        >>> from pydantic_ai.messages import ModelRequest
        >>> to_messages([ModelRequest.user_text_prompt("Hello", instructions="Be kind.")])
        [SystemMessage(role='system', content='Be kind.'), UserMessage(role='user', content='Hello')]
    """
    messages: list[Message] = []
    current: str | None = None
    for message in history:
        if message.kind == "request":
            if message.instructions and message.instructions != current:
                messages.append(SystemMessage(content=message.instructions))
                current = message.instructions
            messages += _of_request(message)
        else:
            messages.append(_of_response(message))
    return messages


def _of_request(request: ModelRequest) -> list[Message]:
    from pydantic_ai.messages import RetryFeedbackPart, SystemPromptPart, ToolReturnPart, UserPromptPart

    messages: list[Message] = []
    for part in request.parts:
        if isinstance(part, SystemPromptPart):
            messages.append(SystemMessage(content=part.content))
        elif isinstance(part, UserPromptPart):
            messages.append(UserMessage(content=_user_text(part)))
        elif isinstance(part, ToolReturnPart):
            text = part.content if isinstance(part.content, str) else part.model_response_str()
            failed = part.outcome != "success"
            messages.append(
                ToolResult(
                    tool_call_id=part.tool_call_id,
                    tool_name=part.tool_name,
                    content=text,
                    error=text if failed else None,
                )
            )
        elif isinstance(part, RetryFeedbackPart):
            messages.append(UserMessage(content=part.model_response()))
    return messages


def _of_response(response: ModelResponse) -> AssistantMessage:
    calls = tuple(
        ToolCall(id=call.tool_call_id, name=call.tool_name, arguments=call.args_as_json_str())
        for call in response.tool_calls
    )
    return AssistantMessage(content=response.text or "", tool_calls=calls)


def _user_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(item if isinstance(item, str) else f"[{type(item).__name__}]" for item in part.content)


def from_messages(messages: Iterable[Message | ModelMessage | Mapping[str, Any]]) -> list[ModelMessage]:
    """Convert messages of this module, or dicts in OpenAI's format, to a history that a run can continue.

    Args:
        messages: The messages. Those that a model receives in a row become one request; PydanticAI's stay as they are.

    Returns:
        PydanticAI's messages, as `messages=` takes them; it takes the others too.

    Raises:
        ValueError: A message is neither, or a tool's result answers no call.

    Example:
        >>> history = from_messages([{"role": "user", "content": "Hello"}, AssistantMessage(content="Hi!")])
        >>> to_messages(history)[1].content
        'Hi!'
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart

    history: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = []
    tools: dict[str, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, ModelRequest | ModelResponse):
            history += [*([ModelRequest(waiting)] if waiting else []), message]
            waiting = []
            if isinstance(message, ModelResponse):
                tools |= {call.tool_call_id: call.tool_name for call in message.tool_calls}
            continue
        view = _view(message, index, tools)
        if not isinstance(view, AssistantMessage):
            waiting.append(_request_part(view))
            continue
        if waiting:
            history.append(ModelRequest(waiting))
            waiting = []
        tools |= {call.id: call.name for call in view.tool_calls}
        calls = [ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in view.tool_calls]
        history.append(ModelResponse([*([TextPart(view.content)] if view.content else []), *calls]))
    return [*history, *([ModelRequest(waiting)] if waiting else [])]


def _request_part(view: UserMessage | SystemMessage | ToolResult) -> ModelRequestPart:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if isinstance(view, UserMessage):
        return UserPromptPart(view.content)
    if isinstance(view, SystemMessage):
        return SystemPromptPart(view.content)
    text = view.content if view.error is None else view.content or view.error
    outcome = "success" if view.error is None else "failed"
    return ToolReturnPart(view.tool_name, text, view.tool_call_id, outcome=outcome)


def _view(message: object, index: int, tools: Mapping[str, str]) -> Message:
    """A message of this module, also from a dict; `tools` are the tools of the calls so far by the calls' ids."""
    if isinstance(message, UserMessage | SystemMessage | AssistantMessage | ToolResult):
        return message
    if not isinstance(message, Mapping):
        raise ValueError(f"message {index} is not a conversation message but a {type(message).__name__}")
    data = {str(key): value for key, value in cast("Mapping[Any, Any]", message).items() if value is not None}
    if "content" in data or data.get("role") == "assistant":
        data["content"] = _content(data.get("content", ""))
    if data.get("role") != "tool":
        data.pop("name", None)
    for key in _UNUSED:
        data.pop(key, None)
    if data.get("role") == "developer":
        data["role"] = "system"
    if data.get("role") == "tool":
        name = data.pop("name", None)
        data.setdefault("tool_name", tools.get(str(data.get("tool_call_id")), name))
        if data["tool_name"] is None:
            raise ValueError(f"message {index} is the result of a call that no message before it makes")
    if isinstance(data.get("tool_calls"), list | tuple):
        data["tool_calls"] = [_flat_call(call) for call in cast("list[Any]", data["tool_calls"])]
    try:
        return _MESSAGE.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or "role"
        raise ValueError(f"message {index} is not a conversation message: {place}: {first['msg']}") from error


_UNUSED = ("refusal", "annotations", "audio", "function_call")
"""Keys that OpenAI's clients write and that don't matter to a later request."""


def _content(value: object) -> object:
    """A message's text, which OpenAI's format may give in parts."""
    if not isinstance(value, list | tuple):
        return value
    texts: list[str] = []
    for part in cast("list[object]", value):
        text = cast("Mapping[str, object]", part).get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str):
            return cast("object", value)
        texts.append(text)
    return "\n".join(texts)


def _flat_call(call: object) -> object:
    """A tool call of OpenAI's format, whose name and arguments are in `function`, as one of this module's."""
    data: dict[str, Any] = dict(cast("Mapping[str, Any]", call)) if isinstance(call, Mapping) else {}
    function: object = data.get("function")
    if not isinstance(function, Mapping):
        return cast("object", call)
    return {"id": data.get("id"), **cast("Mapping[str, Any]", function)}
