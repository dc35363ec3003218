"""`HistoryWindow`: while PydanticAI prepares a request, it sees only a part of a long history; the model is sent all.

PydanticAI walks through the history about fifteen times in each step, so a long run costs the square of its steps. What
it would send as it is anyway is taken out of the list while a request is prepared. It is put back before the model is
asked, before functions of the project run, and however the step ends. docs/design/long-histories.md explains why the
model is sent the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelResponse

from llm_do._startup.frozen import frozen
from llm_do.models.plain_exchanges import PlainExchanges
from llm_do.models.seen_messages import SeenMessages

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest
    from pydantic_ai.models import Model

__all__ = ["LONG", "HistoryWindow", "whole_history"]

LONG = 60
"""Messages of a history that is long enough for a window."""

LAST = 4
"""Messages at the end that always stay."""

FEWEST = 10
"""Messages that are worth taking out."""

_CURRENT: ContextVar[HistoryWindow | None] = ContextVar("history_window", default=None)


@frozen
class _Taken:
    """Messages that were taken out of a history.

    Args:
        place: Where they were.
        messages: The messages, whole exchanges.
        following: The response after them, which every pass keeps as it is.
    """

    place: int
    messages: Sequence[ModelMessage]
    following: ModelMessage


class HistoryWindow:
    """The window over one call's history.

    Args:
        model: The model that it is sent to.
    """

    def __init__(self, model: Model) -> None:
        self._exchanges = PlainExchanges(model)
        self._history: list[ModelMessage] | None = None
        self._taken: list[_Taken] = []
        self._lifted = 0

    @contextmanager
    def step(self) -> Generator[None]:
        """Make it the window of the step that is carried out here; at its end, the history is whole."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            self.end()

    async def narrow(self, history: list[ModelMessage], following: ModelRequest | None = None) -> None:
        """Take out of a history what PydanticAI needn't see.

        Args:
            history: The history.
            following: The request that is prepared for it.
        """
        runs = await self._exchanges.find(history, len(history) - LAST, following)
        self._take(history, [(start, end - 2) for start, end in runs if end - 2 - start >= FEWEST])

    def restore(
        self, messages: list[ModelMessage], prepared: Callable[[list[ModelMessage]], list[ModelMessage]]
    ) -> list[ModelMessage]:
        """Return what a model is sent for the messages that PydanticAI has prepared; the history is whole from here on.

        Args:
            messages: The messages.
            prepared: Prepares a whole history.
        """
        history = self._history
        self._put_back()
        if not self._taken or (history is None and not _continues(messages)):
            return messages  # they are whole, or those of a request that a function of the project makes
        joined = self._joined(messages)
        if joined is None:
            return messages if history is None else prepared(history)
        return joined

    @contextmanager
    def lifted(self) -> Generator[None]:
        """Put everything back while functions of the project may look at the history."""
        history, places = self._history, [(each.place, each.place + len(each.messages)) for each in self._taken]
        if history is None and not self._lifted:
            yield
            return
        taken = self._taken
        self._lifted += 1
        self._put_back()
        before = None if history is None else (history.copy(), _seen(history))
        try:
            yield
        finally:
            self._lifted -= 1
            # A function that is cancelled may end after its step has.
            if history is not None and before is not None and self._taken is taken:
                messages, seen = before
                if not (len(history) == len(messages) == seen.count(history) and all(map(is_, history, messages))):
                    self._taken = []
                elif not self._lifted:
                    self._take(history, places)

    def end(self) -> None:
        """Make the history whole until the next step."""
        self._put_back()
        self._taken = []

    def _put_back(self) -> None:
        history, self._history = self._history, None
        if history is None:
            return
        for each in self._taken:
            place = _place(history, each.following, each.place)
            place = min(each.place, len(history)) if place is None else place
            history[place:place] = each.messages

    def _take(self, history: list[ModelMessage], places: Sequence[tuple[int, int]]) -> None:
        self._taken = [_Taken(start, history[start:end], history[end]) for start, end in places]
        self._history = history if places else None
        for start, end in reversed(places):
            del history[start:end]

    def _joined(self, messages: list[ModelMessage]) -> list[ModelMessage] | None:
        """Messages with what was taken out; None if they aren't those of the step."""
        joined: list[ModelMessage] = []
        start = 0
        for each in self._taken:
            place = _place(messages, each.following, start)
            if place is None:
                return None
            joined += messages[start:place]
            if not joined or joined[-1] is not each.messages[-1]:
                joined += each.messages
            start = place
        return joined + messages[start:]


@contextmanager
def whole_history() -> Generator[None]:
    """Show functions of the project, which prepare a request, the whole history."""
    window = _CURRENT.get()
    if window is None:
        yield
        return
    with window.lifted():
        yield


def _continues(messages: Sequence[ModelMessage]) -> bool:
    """Whether PydanticAI asks again for the rest of a response that the provider has paused."""
    last = messages[-1] if messages else None
    return isinstance(last, ModelResponse) and last.state == "suspended"


def _seen(messages: Sequence[ModelMessage]) -> SeenMessages:
    seen = SeenMessages()
    seen.replace(0, messages)
    return seen


def _place(messages: Sequence[ModelMessage], message: ModelMessage, start: int) -> int | None:
    """Where a message is, from a place on; None if it isn't there."""
    return next((place for place in range(start, len(messages)) if messages[place] is message), None)
