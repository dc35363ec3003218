"""What models are asked and what they say: requests, retries, usage, text and thinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.events.event_base import EventBase

__all__ = ["HookEvent", "ModelRequestEvent", "RetryEvent", "TextDoneEvent", "TextEvent", "ThinkingEvent", "UsageEvent"]


@frozen(kw_only=True)
class ModelRequestEvent(EventBase):
    """A model request is sent.

    Args:
        model: The name that the model was requested by.
        request: The number of the agent's request in this call, from 1.
        attempt: How often it is made, from 1.
        purpose: `step` for an agent's request, `summary` for one that shortens its history.
    """

    type: ClassVar[Literal["model_request"]] = "model_request"
    model: str
    request: int
    attempt: int
    purpose: str = "step"


@frozen(kw_only=True)
class HookEvent(EventBase):
    """A hook replaced something of a model request, or its response.

    Args:
        hook: The name of the hook.
        request: The number of the agent's request in this call, from 1.
        replaced: `messages`, `settings` or `response`.
        replacement: The response, the changed settings, or those of the messages that the history doesn't have.
    """

    type: ClassVar[Literal["hook"]] = "hook"
    hook: str
    request: int
    replaced: str
    replacement: Any


@frozen(kw_only=True)
class RetryEvent(EventBase):
    """A model request failed for a transient reason and is retried after `delay` seconds, or sent to another model.

    Text deltas since the last `text_done` of this call are void.

    Args:
        attempt: Number of the failed attempt, from 1.
        delay: Seconds until the next attempt.
        error: The failure, as a sentence.
        model: The next model of the agent's list, which is asked now; None if the same one is asked again.
    """

    type: ClassVar[Literal["retry"]] = "retry"
    attempt: int
    delay: float
    error: str
    model: str | None = None


@frozen(kw_only=True)
class UsageEvent(EventBase):
    """What one attempt of a model request used; the sum over a run is the usage of its result.

    Args:
        usage: `requests`, `input_tokens`, `output_tokens`, `total_tokens`, and `cost_usd` or None.
        model: The name that the model was requested by.
        request: The number of the agent's request in this call, from 1.
        attempt: How often it was made, from 1.
        purpose: As in `model_request`.
    """

    type: ClassVar[Literal["usage"]] = "usage"
    usage: Mapping[str, Any]
    model: str = ""
    request: int = 0
    attempt: int = 1
    purpose: str = "step"


@frozen(kw_only=True)
class TextEvent(EventBase):
    """A piece of a model's text as it arrives; emitted only if a subscriber asks for it.

    Args:
        text: The piece.
    """

    type: ClassVar[Literal["text"]] = "text"
    text: str


@frozen(kw_only=True)
class TextDoneEvent(EventBase):
    """The complete text of one model response.

    Args:
        text: The complete text.
    """

    type: ClassVar[Literal["text_done"]] = "text_done"
    text: str


@frozen(kw_only=True)
class ThinkingEvent(EventBase):
    """The thinking that a model returned before its answer.

    Args:
        text: The complete text.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"
    text: str
