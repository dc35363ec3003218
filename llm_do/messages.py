"""Messages as frozen, JSON-friendly values: views of PydanticAI's messages, to read, store and show.

A run's own history (`RunResult.messages`) consists of PydanticAI's messages, from which the next run continues.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart

__all__ = ["AssistantMessage", "Message", "SystemMessage", "ToolCall", "ToolResult", "UserMessage", "to_messages"]


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
