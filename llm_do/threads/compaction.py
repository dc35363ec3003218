"""Shortens a history before it is sent to the model, by applying strategies in order until it fits.

The stored history never changes. The user's first message and the latest messages stay, as do the current request and
the prompt and the answer of the turn before it. Older turns are removed whole, and in the current one a tool call
together with its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters

from llm_do._startup.frozen import frozen
from llm_do.errors import LlmDoError
from llm_do.models.composites import component_models, disable_client_retries
from llm_do.models.providers.model_names import anchor_path
from llm_do.models.token_estimates import count_characters, estimate_tokens
from llm_do.runtime.record.transport import OutgoingRequest
from llm_do.runtime.request.cost import check_price
from llm_do.runtime.request.model_choice import named_model
from llm_do.runtime.request.reservation import reserve
from llm_do.runtime.request.send import request_place, send
from llm_do.threads.store.usable_history import starts_turn

if TYPE_CHECKING:
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["CLEARED", "HistoryCompactor", "clear_results", "slide"]

CLEARED = "[this result was cleared to save space; call the tool again if you need it]"
"""Replaces a tool result that was cleared."""

SUMMARY = "Summary of the conversation so far:"
"""The first line of a summary."""

MAX_TOKENS = 100_000
"""The default limit where the model's context window isn't known."""

FRACTION = 0.8
"""The default share of a known context window that a history may take up."""

DEFAULT_STRATEGIES = ("tool_result_clearing", "sliding_window")

_PROMPT = (
    "Summarise the conversation below for the assistant that continues it: what the user wants, what was found and "
    "decided, names, numbers and identifiers exactly as they were, and what is still open. Write only the summary.\n\n"
)


@frozen
class _Split:
    """A history in three parts: the start that stays, the middle that may be removed, and the end that stays.

    `pins` are the places in the middle of what stays nevertheless.
    """

    first: list[ModelMessage]
    middle: list[ModelMessage]
    recent: list[ModelMessage]
    pins: frozenset[int] = frozenset()

    def join(self, middle: Sequence[ModelMessage]) -> list[ModelMessage]:
        return [*self.first, *middle, *self.recent]

    def kept(self, until: int | None = None) -> list[ModelMessage]:
        """What stays of the middle, or of its beginning."""
        return [message for at, message in enumerate(self.middle[:until]) if at in self.pins]


def _split(messages: Sequence[ModelMessage], preserve_recent: int) -> _Split:
    """Split a history without separating a call from its results."""
    start = next((at for at, message in enumerate(messages) if _is_prompt(message)), 0) + 1
    end = max(len(messages) - max(preserve_recent, 1), start)
    while end > start and _answers(messages[end]):
        end -= 1
    pins = frozenset(at - start for at in _pinned(messages, end) if start <= at < end)
    return _Split(list(messages[:start]), list(messages[start:end]), list(messages[end:]), pins)


def _pinned(messages: Sequence[ModelMessage], end: int) -> list[int]:
    """The places of the last two prompts, of the answer between them, and of the prompt to which the end belongs."""
    prompts = [at for at, message in enumerate(messages) if starts_turn(message)]
    pinned = prompts[-2:] + [at for at in prompts if at <= end][-1:]
    if len(prompts) > 1 and isinstance(answer := messages[prompts[-1] - 1], ModelResponse) and not answer.tool_calls:
        pinned.append(prompts[-1] - 1)
    return pinned


def _is_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def _answers(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        part.part_kind in ("tool-return", "retry-prompt") for part in message.parts
    )


def clear_results(messages: Sequence[ModelMessage], preserve_recent: int = 10) -> list[ModelMessage]:
    """Clear the content of older tool results; each call still has a result."""
    split = _split(messages, preserve_recent)
    return split.join([_clear(message) for message in split.middle])


def _clear(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=CLEARED)
        if isinstance(part, ToolReturnPart) and count_characters(part) > len(CLEARED)
        else part
        for part in message.parts
    ]
    return (
        message
        if all(new is old for new, old in zip(parts, message.parts, strict=True))
        else replace(message, parts=parts)
    )


def slide(messages: Sequence[ModelMessage], limit: int, preserve_recent: int = 10) -> list[ModelMessage]:
    """Drop older turns, oldest first, and then older calls of the current one, until the history fits."""
    split = _split(messages, preserve_recent)
    left = estimate_tokens(messages)
    at = 0
    while at < len(split.middle) and left > limit:
        following = _next_unit(split, at)
        left -= estimate_tokens([split.middle[each] for each in range(at, following) if each not in split.pins])
        at = following
    return split.join([*split.kept(at), *split.middle[at:]])


def _next_unit(split: _Split, at: int) -> int:
    """Where in the middle what is dropped together ends: a turn, or an answer of the current turn with its results."""
    middle = split.middle
    older = any(map(starts_turn, [*middle[at + 1 :], *split.recent]))
    following = at + 1
    while following < len(middle):
        message = middle[following]
        if starts_turn(message) or (not older and isinstance(message, ModelResponse)):
            break
        following += 1
    return following


class HistoryCompactor:
    """Shortens the history for one agent call; a summary is made once and reused by the requests that follow.

    Args:
        settings: `max_tokens` or `fraction`, `strategies`, `preserve_recent`, `summary_model`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._max_tokens: int | None = settings.get("max_tokens")
        self._fraction: float | None = settings.get("fraction")
        self._strategies: Sequence[str] = settings.get("strategies") or DEFAULT_STRATEGIES
        recent = settings.get("preserve_recent")
        self._recent: int = 10 if recent is None else recent
        self._summary_model: str | None = settings.get("summary_model")
        self._summary: tuple[list[ModelMessage], str] | None = None

    async def __call__(
        self, ctx: CallContext, model: Model, messages: list[ModelMessage], tools: int
    ) -> list[ModelMessage]:
        """Return the history to send."""
        limit = self._limit(model) - tools
        history = self._with_summary(messages)
        for strategy in self._strategies:
            if estimate_tokens(history) <= limit:
                break
            if strategy == "tool_result_clearing":
                history = clear_results(history, self._recent)
            elif strategy == "sliding_window":
                history = slide(history, limit, self._recent)
            else:
                history = await self._summarise(ctx, model, messages, history)
        return history

    def _limit(self, model: Model) -> int:
        if self._max_tokens is not None:
            return self._max_tokens
        # A list of models has no profile of its own; whichever of them is asked has to have room.
        windows = [window for each in component_models(model) if (window := each.profile.get("context_window"))]
        if not windows:
            return MAX_TOKENS
        return int(min(windows) * (self._fraction or FRACTION))

    def _with_summary(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Replace the messages that an earlier summary covers with that summary."""
        if self._summary is None:
            return messages
        covered, text = self._summary
        split = _split(messages, self._recent)
        start = len(split.first)
        if messages[start : start + len(covered)] != covered:
            self._summary = None
            return messages
        kept = split.kept(len(covered))
        return [*messages[:start], _summary_message(text), *kept, *messages[start + len(covered) :]]

    async def _summarise(
        self, ctx: CallContext, model: Model, messages: list[ModelMessage], shown: list[ModelMessage]
    ) -> list[ModelMessage]:
        """Replace the older part with a summary, or clear its tool results if that fails."""
        split = _split(shown, self._recent)
        unshortened = _split(messages, self._recent)
        if not split.middle or not unshortened.middle:
            return shown
        try:
            text = await self._ask(ctx, model, split)
        except Exception as error:  # noqa: BLE001 (a summary is optional: the run continues without it)
            reason = error.message if isinstance(error, LlmDoError) else f"{type(error).__name__}: {error}"
            ctx.warn(f"the conversation could not be summarised; old tool results are left out instead: {reason}")
            return clear_results(shown, self._recent)
        self._summary = unshortened.middle, text
        return split.join([_summary_message(text), *split.kept()])

    async def _ask(self, ctx: CallContext, model: Model, split: _Split) -> str:
        summary_model = model
        if self._summary_model is not None:
            name = anchor_path(self._summary_model, ctx.project.root)
            summary_model = named_model(ctx.runtime, name, ctx.frame.config.name)
        prompt = _PROMPT + "\n".join(filter(None, map(_plain, [*split.first, *split.middle])))
        check_price(ctx.run.budget.budget.cost_usd, summary_model)
        request = OutgoingRequest(
            summary_model,
            summary_model.model_id,
            [ModelRequest.user_text_prompt(prompt)],
            disable_client_retries(summary_model, None),
            ModelRequestParameters(),
        )
        place = request_place(ctx, "summary")
        request, held = await reserve(ctx, request, place)
        outcome = await send(ctx, request, held, place)
        response = outcome.result()
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()
        if not text:
            raise LlmDoError("the model returned no text", hint="set another `summary_model` under `compaction`")
        return text


def _summary_message(summary: str) -> ModelMessage:
    return ModelRequest([UserPromptPart(f"{SUMMARY}\n{summary}")])


def _plain(message: ModelMessage) -> str:
    """Render a message as text for the model that writes the summary."""
    lines: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            lines.append(f"assistant calls {part.tool_name}({part.args_as_json_str()})")
        elif isinstance(part, ToolReturnPart):
            lines.append(f"result of {part.tool_name}: {part.model_response_str()[:2000]}")
        elif isinstance(part, TextPart | UserPromptPart):
            who = "assistant" if isinstance(message, ModelResponse) else "user"
            content = part.content if isinstance(part.content, str) else " ".join(map(str, part.content))
            lines.append(f"{who}: {content[:8000]}")
    return "\n".join(lines)
