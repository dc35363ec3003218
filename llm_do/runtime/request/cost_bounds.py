"""What a request costs at most, found before it is sent: a budget in US dollars holds that much for it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from llm_do._startup.frozen import frozen
from llm_do.models.composites import component_models
from llm_do.runtime.record.transport import OutgoingRequest
from llm_do.runtime.request.cost import IN_PROCESS, highest_price, possible_tokens

__all__ = ["CostBound", "cost_bound", "most_input_tokens"]

FRAME = 32
"""Tokens that a provider puts around each part of a message and each tool, at most."""

INSTRUCTIONS = 1_000
"""Tokens of a provider's own instructions, at most, such as those that explain tools to the model."""

MANY = 1_000_000
"""Tokens that the price of one is computed from, since a single one may cost less than prices are rounded to."""


@frozen
class CostBound:
    """What a request costs at most.

    Args:
        input_usd: US dollars for what it sends.
        token_usd: US dollars for each token of its answer.
    """

    input_usd: float
    token_usd: float

    def of(self, output_tokens: int) -> float:
        """US dollars with so many output tokens."""
        return self.input_usd + output_tokens * self.token_usd


def cost_bound(request: OutgoingRequest, input_tokens: int | None) -> CostBound | None:
    """What a request costs at most with any of its models; None if that can't be known before it is sent.

    It can't where a price isn't in the price list, with files in the request, and with tools that the provider runs.

    Args:
        request: The request.
        input_tokens: Its tokens, as the model counts them; None if it can't.
    """
    models = [each for each in component_models(request.model) if each.system not in IN_PROCESS]
    if not models:
        return CostBound(0.0, 0.0)
    if input_tokens is None:
        input_tokens = most_input_tokens(request.messages, request.parameters)
    if input_tokens is None or request.parameters.native_tools:
        return None
    tiered = any(name.endswith("service_tier") for name in request.settings or ())
    bounds = [_bound(each, input_tokens, tiered=tiered) for each in models]
    known = [each for each in bounds if each is not None]
    if len(known) < len(bounds):
        return None
    return CostBound(max(each.input_usd for each in known), max(each.token_usd for each in known))


def _bound(model: Model, input_tokens: int, *, tiered: bool) -> CostBound | None:
    # What is written to a provider's cache costs more than what is only read; prices may depend on the input's length.
    sent = (
        RequestUsage(input_tokens=input_tokens),
        RequestUsage(input_tokens=input_tokens, cache_write_tokens=input_tokens),
    )
    answered = RequestUsage(input_tokens=input_tokens, output_tokens=MANY)
    plain, written, whole = (highest_price(model, each, tiered=tiered) for each in (*sent, answered))
    if plain is None or written is None or whole is None:
        return None
    return CostBound(max(plain, written), (whole - plain) / MANY)


def most_input_tokens(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int | None:
    """The most tokens that a request may send; None where it has files, which providers count in their own ways.

    What was sent with an earlier request of the same history is known from its answer; the rest has at most a token a
    byte, about four times as many as it will be.

    Example:
        >>> most_input_tokens([ModelRequest.user_text_prompt("Hi")], ModelRequestParameters())
        1066
    """
    known, new = INSTRUCTIONS, messages
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ModelResponse) and (read := possible_tokens(message.usage.input_tokens)):
            known += read + possible_tokens(message.usage.output_tokens)
            new = messages[index + 1 :]
            break
    tools = [*parameters.function_tools, *parameters.output_tools]
    texts = [tool.name + (tool.description or "") + str(tool.parameters_json_schema) for tool in tools]
    last = messages[-1] if messages else None
    texts.append((last.instructions or "") if isinstance(last, ModelRequest) else "")
    total = known + sum(map(_size, texts)) + FRAME * len(texts)
    for message in new:
        for part in message.parts:
            size = _bytes(part)
            if size is None:
                return None
            total += size + FRAME
    return total


def _bytes(part: ModelRequestPart | ModelResponsePart) -> int | None:
    """The size of a part as text, which has at most as many tokens; None if it isn't text alone."""
    if isinstance(part, ToolCallPart):
        return len(part.tool_name) + _size(part.args_as_json_str())
    if isinstance(part, ToolReturnPart):
        return None if part.files else len(part.tool_name) + _size(part.model_response_str())
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        typed = [each for each in part.content if isinstance(each, str)]
        return sum(map(_size, typed)) if len(typed) == len(part.content) else None
    if isinstance(part, UserPromptPart | SystemPromptPart | TextPart | ThinkingPart | RetryFeedbackPart):
        return _size(part.content) if isinstance(part.content, str) else None
    return None


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
