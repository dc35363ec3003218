"""Answers the requests of a session from a cassette; no model is built and nothing leaves the machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai.models import Model

from llm_do.errors import CassetteMissError
from llm_do.runtime.record.request_outcome import RequestOutcome
from llm_do.runtime.record.sent_request import SentRequest, read_request
from llm_do.runtime.record.transport import Answer
from llm_do.testing.cassettes.call_readers import CallReaders
from llm_do.testing.cassettes.differences import Sources, explain_miss
from llm_do.testing.cassettes.recorded_model import RecordedModel

if TYPE_CHECKING:
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.record.transport import Ask, OutgoingRequest
    from llm_do.testing.cassettes.cassette import Cassette, Recorded
    from llm_do.testing.cassettes.masks import Masks

__all__ = ["CassettePlayer"]


class CassettePlayer:
    """A transport that answers each request with its recording.

    A request is answered by the first unused recording of its call that has its key, else by the first of its agent's
    path that does; anything else ends the run with a `CassetteMissError`.

    Args:
        cassette: The cassette.
        masks: Cleans requests as the recorder did, and puts the project's folder back into answers.
        sources: Where the parts of a request are written, for the error of a miss.
        again: The command that records the cassette again.
    """

    def __init__(self, cassette: Cassette, masks: Masks, sources: Sources, again: str) -> None:
        self._cassette = cassette
        self._masks = masks
        self._sources = sources
        self._again = again
        self._readers = CallReaders(masks)
        self._recorded = [_remasked(each, masks) for each in cassette.exchanges]
        self._models: dict[str, RecordedModel] = {}
        self._used: set[int] = set()
        self.misses: list[CassetteMissError] = []

    @property
    def recorded_usage(self) -> Usage:
        """What recording the cassette has used."""
        return self._cassette.usage

    @property
    def unused(self) -> list[Recorded]:
        """The recordings that no request has asked for."""
        return [each for number, each in enumerate(self._recorded) if number not in self._used]

    def stand_in(self, agent: str, named: Sequence[str] | None) -> Sequence[tuple[Model, str]]:
        """Models that are never asked, with the names and profiles that an agent's requests were recorded with.

        Of a list only the models that were asked are there: the others couldn't be used, or weren't needed.
        """
        asked = list(dict.fromkeys(str(each.sent.setup["model"]) for each in self._recorded if each.agent == agent))
        written = {name: str(json.loads(self._masks(json.dumps(name, ensure_ascii=False)))) for name in named or asked}
        names = [name for name in written if written[name] in asked] or list(written) or ["not recorded"]
        return [(self._model(name, written.get(name, name)), name) for name in names]

    def _model(self, name: str, written: str) -> RecordedModel:
        if name not in self._models:
            self._models[name] = RecordedModel(name, self._cassette.models.get(written))
        return self._models[name]

    async def send(
        self, place: RequestPlace, request: OutgoingRequest, ask: Ask, show: Callable[[str], None] | None
    ) -> Answer:
        """Answer from the cassette.

        Raises:
            CassetteMissError: It has no answer.
        """
        reader = self._readers.of(place)
        sent = read_request(reader, request)
        call = self._readers.call(place)
        number = self._find(call, place, sent)
        if number is None:
            error = explain_miss(self._recorded, self._used, call, place, sent, self._sources)
            error.hint = f"{error.hint} {self._cost()}" if error.hint else self._cost()
            self.misses.append(error)
            raise error
        self._used.add(number)
        recorded = self._recorded[number]
        outcome = self._here(recorded.outcome)
        if outcome.failure is not None and self._is_followed(recorded):
            # It was sent again then, so it is now, without the wait.
            outcome = replace(outcome, failure=replace(outcome.failure, retry_after=0.0))
        if show is not None and (text := recorded.partial or _text(outcome)):
            show(text)
        return Answer(outcome, recorded.partial)

    def _find(self, call: str, place: RequestPlace, sent: SentRequest) -> int | None:
        unused = [
            (number, each)
            for number, each in enumerate(self._recorded)
            if number not in self._used and each.sent.key == sent.key and each.purpose == place.purpose
        ]
        return next(
            (number for number, each in unused if each.call == call),
            next((number for number, each in unused if each.path == place.path), None),
        )

    def _is_followed(self, recorded: Recorded) -> bool:
        return any(
            (each.call, each.number, each.purpose) == (recorded.call, recorded.number, recorded.purpose)
            and each.attempt > recorded.attempt
            for each in self._recorded
        )

    def _here(self, outcome: RequestOutcome) -> RequestOutcome:
        text = json.dumps(outcome.to_dict(), ensure_ascii=False)
        here = self._masks.here(text)
        return outcome if here == text else RequestOutcome.from_dict(json.loads(here))

    def _cost(self) -> str:
        usage = self._cassette.usage
        cost = f", ${usage.cost_usd:.4f}" if usage.cost_usd is not None else ""
        return f"Record again with `{self._again}` ({usage.requests} requests{cost} last time)."


def _remasked(recorded: Recorded, masks: Masks) -> Recorded:
    """A recording as today's `ignore` patterns leave it."""
    sent = recorded.sent
    messages = [masks.without_ignored(message) for message in sent.messages]
    setup = masks.without_ignored(sent.setup)
    return replace(recorded, sent=SentRequest.of(setup, messages)) if masks.ignores else recorded


def _text(outcome: RequestOutcome) -> str:
    response = outcome.response
    return (response.text or "") if response is not None else ""
