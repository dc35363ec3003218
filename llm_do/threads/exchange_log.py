"""`ExchangeLog`: the exchanges of one run as the rows that store them, and what its requests have used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llm_do.runtime.record.redaction import Redactor
from llm_do.runtime.record.store.store_writes import ExchangeRow, HistoryNode, SpentRow, StoredObject
from llm_do.text.surrogates import replace_surrogates
from llm_do.threads.store.stored_exchanges import answer_text, setup_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llm_do.runtime.record.events.model_events import UsageEvent
    from llm_do.runtime.record.exchanges import Exchange, ModelFacts
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.record.sent_request import KnownSetups, RequestReader

__all__ = ["ExchangeLog", "SessionSetups"]

MOST_OBJECTS = 50
"""Setups whose objects a session remembers."""


class SessionSetups:
    """The setups that the runs of a session have in common, each read and made an object once.

    Args:
        redact: Removes secrets.
    """

    def __init__(self, redact: Redactor) -> None:
        from llm_do.runtime.record.sent_request import KnownSetups

        self.redact = redact
        self.known: KnownSetups = KnownSetups(lambda text: replace_surrogates(redact(text)))
        self._objects: dict[int, tuple[Mapping[str, Any], StoredObject]] = {}

    def reader(self) -> RequestReader:
        """A reader of the requests of one call."""
        from llm_do.runtime.record.sent_request import RequestReader

        return RequestReader(self.known.clean, setups=self.known)

    def object_of(self, setup: Mapping[str, Any], facts: ModelFacts | None) -> StoredObject:
        """The object of a setup that `known` has read."""
        found = self._objects.get(id(setup))
        if found is None or found[0] is not setup:
            while len(self._objects) >= MOST_OBJECTS:
                self._objects.pop(next(iter(self._objects)), None)
            found = self._objects[id(setup)] = setup, setup_object(setup, facts)
        return found[1]


class ExchangeLog:
    """The exchanges of one run.

    Args:
        setups: The setups of the session; None if exchanges aren't kept.
    """

    def __init__(self, setups: SessionSetups | None) -> None:
        self._setups = setups
        self._written: set[str] = set()
        self._rows: list[ExchangeRow] = []
        self._spent: list[SpentRow] = []
        self.models: list[str] = []

    def reader(self) -> RequestReader | None:
        """A reader of the requests of one call; None if exchanges aren't kept."""
        return self._setups.reader() if self._setups is not None else None

    def add(self, exchange: Exchange) -> None:
        """Queue an exchange."""
        if self._setups is not None:
            self._rows.append(self._row(exchange, self._setups))

    def count(self, event: UsageEvent) -> None:
        """Queue what an attempt has used."""
        from llm_do.runtime.record.results import Usage

        usage: Usage = Usage.from_dict(event.usage)
        if usage.requests or usage.total_tokens:  # or it was never made
            self._spent.append(SpentRow(event.agent_name, event.model, usage))
            if event.model not in self.models:
                self.models.append(event.model)

    def take(self) -> tuple[Sequence[ExchangeRow], Sequence[SpentRow]]:
        """Return the rows to write, since the last time."""
        taken = self._rows, self._spent
        self._rows, self._spent = [], []
        return taken

    def put_back(self, rows: Sequence[ExchangeRow], spent: Sequence[SpentRow]) -> None:
        """Queue again what couldn't be written."""
        self._rows[:0] = rows
        self._spent[:0] = spent

    def _row(self, exchange: Exchange, setups: SessionSetups) -> ExchangeRow:
        sent, digests = exchange.sent, exchange.sent.digests
        start = len(digests)
        while start > 0 and digests[start - 1] not in self._written:
            start -= 1
        nodes = [
            HistoryNode(bytes.fromhex(digest), message)
            for digest, message in zip(digests[start:], sent.messages[start:], strict=True)
        ]
        self._written.update(digests[start:])
        return ExchangeRow(
            exchange.place,
            exchange.model,
            setups.object_of(sent.setup, exchange.facts),
            bytes.fromhex(digests[-1]) if digests else b"",
            bytes.fromhex(digests[start - 1]) if start else b"",
            nodes,
            exchange.begun,
            exchange.ended,
            exchange.first_token,
            setups.known.clean(answer_text(exchange)),
        )
