"""`PlainExchanges`: the parts of a long history that PydanticAI sends as they are, wherever they stand in it.

An exchange is a response and the request after it. It is plain if PydanticAI's own passes over a history
(`repair_messages` and the model's `prepare_messages`) return the same objects for it, and if it has nothing that they
look for, or count, from elsewhere in the history. A pass over the whole history then comes to the same without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)

from llm_do.models.seen_messages import SeenMessages

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ["PlainExchanges"]

SLICE = 200
"""Messages that are looked at before the event loop gets its turn."""

UNDERSTOOD = frozenset(
    {
        "file",
        "model-settings-delta",
        "retry-feedback",
        "retry-prompt",
        "system-prompt",
        "text",
        "thinking",
        "tool-call",
        "tool-return",
        "user-prompt",
    }
)
"""Kinds of parts that change nothing in other messages but notes and settings, which go by their order alone."""

REVEALS = frozenset({"load_capability", "search_tools"})
"""Names of tools whose results PydanticAI reads to know which other tools there are."""


class PlainExchanges:
    """Finds the plain exchanges of one history, which grows; what was looked at isn't looked at again.

    Args:
        model: The model that it is sent to.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._seen = SeenMessages()
        self._marks: set[int] = set()
        self._shares = False
        self._runs: list[tuple[int, int]] = []
        self._odd = False
        profile = _profile(model)
        self._thinking = not profile.get("mimics_assistant_message_formatting", False)
        # Ids that are made to fit depend on all that came before them.
        self._fits = profile.get("tool_call_id_length") is None

    async def find(
        self, history: Sequence[ModelMessage], end: int, following: ModelRequest | None = None
    ) -> Sequence[tuple[int, int]]:
        """Return where runs of plain exchanges begin and end, among the first messages of a history.

        None are found where the history, or the request that follows it, has something that PydanticAI takes to
        change other messages, nor where a message is there twice, since it marks no place.
        """
        if self._seen.count(history) < len(self._seen):
            self._seen, self._marks, self._runs = SeenMessages(), set(), []
            self._odd = self._shares = False
        if not self._fits:
            return ()
        while not self._odd and (start := len(self._seen)) < end:
            stop = self._look(history, start, min(start + SLICE, end))
            self._shares = self._shares or self._repeats(history[start:stop])
            self._seen.replace(start, history[:stop])
            self._marks.update(map(_mark, history[start:stop]))
            await asyncio.sleep(0)
        return () if self._odd or self._ends_oddly(history, following) else self._runs

    def _ends_oddly(self, history: Sequence[ModelMessage], following: ModelRequest | None) -> bool:
        """Whether one of the messages that aren't looked at yet may matter to others."""
        shares = self._shares or self._repeats(history[len(self._seen) :])
        if shares and len({*map(id, history)}) < len(history):
            return True
        last = history[max(len(self._seen) - 1, 0) :]
        if following is not None:
            last = [*last, following]
        return any(_is_odd(last, place) for place in range(min(len(self._seen), 1), len(last)))

    def _repeats(self, messages: Sequence[ModelMessage]) -> bool:
        """Whether one of these messages may be there twice, or among those that were looked at."""
        marks = [*map(_mark, messages)]
        return len({*marks}) < len(marks) or not self._marks.isdisjoint(marks)

    def _look(self, history: Sequence[ModelMessage], index: int, end: int) -> int:
        """Look at the messages between two places, and return the place up to which it has."""
        simple: list[int] = []
        while index < end:
            is_exchange = self._is_simple(history, index)
            places = (index, index + 1) if is_exchange else (index,)
            if any(_is_odd(history, place) for place in places):
                self._odd = True
                return end
            if is_exchange:
                simple.append(index)
            index = places[-1] + 1
        if simple and simple[-1] - simple[0] == 2 * (len(simple) - 1) and self._are_unchanged(history, simple):
            self._add(simple[0], simple[-1] + 2)
        else:
            for place in simple:
                if self._are_unchanged(history, [place]):
                    self._add(place, place + 2)
        return index

    def _add(self, start: int, end: int) -> None:
        if self._runs and self._runs[-1][1] == start:
            start, _ = self._runs.pop()
        self._runs.append((start, end))

    def _is_simple(self, history: Sequence[ModelMessage], index: int) -> bool:
        """Whether there is an exchange at a place, between a request and a response, and only of text and calls."""
        if not 0 < index < len(history) - 2:
            return False
        before, response, request, after = history[index - 1 : index + 3]
        return (
            isinstance(before, ModelRequest)
            and isinstance(response, ModelResponse)
            and isinstance(request, ModelRequest)
            and isinstance(after, ModelResponse)
            and all(map(self._is_simple_part, response.parts))
            and all(map(self._is_simple_part, request.parts))
        )

    def _is_simple_part(self, part: object) -> bool:
        kind = type(part)
        if kind is ToolCallPart or kind is ToolReturnPart:
            assert isinstance(part, ToolCallPart | ToolReturnPart)
            return part.tool_name not in REVEALS and (isinstance(part, ToolCallPart) or not part.files)
        if isinstance(part, UserPromptPart):
            return isinstance(part.content, str) or all(isinstance(item, str) for item in part.content)
        return kind is TextPart or (kind is ThinkingPart and self._thinking)

    def _are_unchanged(self, history: Sequence[ModelMessage], places: Sequence[int]) -> bool:
        """Whether PydanticAI sends the exchanges from the first place to the last one as they are."""
        messages = list(history[places[0] : places[-1] + 2])
        return _same(repair_messages(messages), messages) and _same(self._model.prepare_messages(messages), messages)


def _mark(message: ModelMessage) -> int:
    """What a message shares with few others: its list of parts, which is held while it is among those seen."""
    return id(message.parts)


def _profile(model: Model) -> dict[str, object]:
    """What is known of a model; nothing of one that stands for several, which prepare their messages themselves."""
    try:
        return {**model.profile}
    except NotImplementedError:
        return {}


def _same(one: Sequence[ModelMessage], other: Sequence[ModelMessage]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _is_odd(history: Sequence[ModelMessage], index: int) -> bool:
    """Whether a message has something that may matter to others, or calls and results that aren't side by side."""
    message = history[index]
    for part in message.parts:
        if part.part_kind not in UNDERSTOOD or getattr(part, "tool_kind", None):
            return True
    if isinstance(message, ModelResponse):
        # The results of the last response are on their way.
        follows = all(isinstance(after, ModelRequest) for after in history[index + 1 : index + 2])
        return message.state == "suspended" or (bool(message.tool_calls) and not follows)
    before = history[index - 1] if index else None
    calls = [call.tool_call_id for call in before.tool_calls] if isinstance(before, ModelResponse) else []
    return sorted(_answered(message)) != sorted(calls)


def _answered(request: ModelRequest) -> list[str]:
    """The calls that a request has results of."""
    return [
        part.tool_call_id
        for part in request.parts
        if part.part_kind == "tool-return" or (part.part_kind == "retry-prompt" and part.tool_name is not None)
    ]
