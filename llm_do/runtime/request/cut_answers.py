"""Incomplete answers: cut off at a limit, stopped by a filter, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pydantic_ai.exceptions import ContentFilterError, ModelRetry, OutputTokenLimitExceeded, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_core import ValidationError

from llm_do.errors import ModelBehaviourError
from llm_do.models.providers.provider_words import short_words

__all__ = ["behaviour_error", "cut_note", "cut_warning"]

FAULTS = 3
"""Faults of an answer that are named."""


def cut_warning(response: ModelResponse, model: str) -> str | None:
    """What to warn of if a response has content and is incomplete."""
    if not any(
        isinstance(part, ToolCallPart) or (isinstance(part, TextPart) and part.content) for part in response.parts
    ):
        return None
    if response.finish_reason == "length":
        return f"the answer of {model} was cut off at its output limit: raise `max_tokens`, or ask for less"
    if response.finish_reason == "content_filter":
        return f"a content filter cut the answer of {model} short"
    return None


def cut_note(messages: Sequence[ModelMessage]) -> str:
    """The note to a calling model about an incomplete last answer; empty if the answer is complete."""
    last = messages[-1] if messages else None
    if not isinstance(last, ModelResponse) or cut_warning(last, "") is None:
        return ""
    reason = "it was cut off at the output limit" if last.finish_reason == "length" else "a content filter cut it short"
    return f"\n\n[This answer is incomplete: {reason}.]"


def behaviour_error(name: str, error: UnexpectedModelBehavior, agent_path: str) -> ModelBehaviourError:
    """PydanticAI's judgement of an agent's responses as an error that says what to do."""
    if isinstance(error, ContentFilterError):
        words = _refusal(error)
        reason = f": {words}" if words else ": its provider's content filter stopped it without a reason"
        message, hint = f"the model of agent {name!r} refused{reason}", "Change the request, or use another model."
    elif isinstance(error, OutputTokenLimitExceeded):
        message = f"the model of agent {name!r} reached its output limit before its answer was usable"
        hint = "Raise `max_tokens`, or ask for less."
    else:
        fault = _last_fault(error)
        why = f"; the last answer: {short_words(fault)}" if fault else ""
        message = f"the model of agent {name!r} kept answering invalidly: {short_words(error.message)}{why}"
        hint = "Raise `retries`, make the output's schema simpler, or use a stronger model."
    return ModelBehaviourError(message, hint=hint, agent_path=agent_path)


def _last_fault(error: UnexpectedModelBehavior) -> str:
    """What was wrong with the last of the answers, if it is known."""
    behind = error.__cause__
    while behind is not None:
        if isinstance(behind, ValidationError):
            return "; ".join(
                ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))
                for fault in behind.errors(include_url=False, include_input=False, include_context=False)[:FAULTS]
            )
        if isinstance(behind, ModelRetry):
            return behind.message
        behind = behind.__cause__
    return ""


def _refusal(error: ContentFilterError) -> str:
    """The words of a refusal, from the response that the error carries."""
    try:
        messages = ModelMessagesTypeAdapter.validate_json(error.body or "[]")
    except ValueError:
        return short_words(error.message)
    last = messages[-1] if messages else None
    details = (last.provider_details or {}) if isinstance(last, ModelResponse) else {}
    words = cast("object", details.get("refusal") or details.get("block_reason"))
    return short_words(words) if isinstance(words, str) else ""
