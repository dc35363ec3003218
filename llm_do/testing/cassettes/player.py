"""Answers the requests of a session from a cassette; no model is built and nothing leaves the machine."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import TextPart
from pydantic_ai.models import Model

from llm_do.errors import CassetteMissError
from llm_do.formats.server_listings import ListedTool
from llm_do.runtime.record.request_outcome import RequestOutcome
from llm_do.runtime.record.sent_request import SentRequest, read_request
from llm_do.runtime.record.transport import Answer, Transport
from llm_do.testing.cassettes.call_readers import CallReaders
from llm_do.testing.cassettes.differences import explain_miss, explain_missing_result
from llm_do.testing.cassettes.recorded_model import RecordedModel
from llm_do.testing.cassettes.recorded_tools import RecordedTool, answer_of
from llm_do.text.globs import matches_any
from llm_do.text.json_data import to_json_data
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.record.transport import Ask, OutgoingRequest, ToolPlace
    from llm_do.testing.cassettes.cassette import Cassette, Recorded
    from llm_do.testing.cassettes.masks import Masks
    from llm_do.testing.cassettes.sources import Sources

__all__ = ["CassettePlayer"]


class CassettePlayer(Transport):
    """A transport that answers each request with its recording.

    A request is answered by the first unused recording of its call that has its key, else by the first of its agent's
    path that does; anything else ends the run with a `CassetteMissError`.

    Args:
        cassette: The cassette.
        masks: Cleans requests as the recorder did, and puts the project's folder back into answers.
        sources: Where the parts of a request are written, for the error of a miss.
        again: The command that records the cassette again.
        tools: Names or patterns of tools whose results are in the cassette.
    """

    def __init__(
        self, cassette: Cassette, masks: Masks, sources: Sources, again: str, tools: Sequence[str] = ()
    ) -> None:
        self._patterns = tools
        self._used_tools: set[int] = set()
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
    def unused(self) -> list[Recorded | RecordedTool]:
        """The recordings that no request and no tool call has asked for."""
        requests = [each for number, each in enumerate(self._recorded) if number not in self._used]
        tools = [each for number, each in enumerate(self._cassette.tools) if number not in self._used_tools]
        return [*requests, *tools]

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

    def carries(self, tool: str) -> bool:
        """Whether a tool's calls are answered from the cassette."""
        return matches_any(tool, self._patterns)

    async def call_tool(self, place: ToolPlace, args: Mapping[str, Any], run: Callable[[], Awaitable[Any]]) -> Any:
        """Return or raise what the tool did when it was recorded.

        Raises:
            CassetteMissError: The call wasn't recorded.
        """
        text = self._masks.portable(json.dumps(to_json_data(dict(args)), ensure_ascii=False))
        call, number = self._readers.call(place), self._readers.tool_call(place)
        asked = RecordedTool(call, place.path, place.tool, number, json.loads(text), {})
        fitting = [
            (at, each)
            for at, each in enumerate(self._cassette.tools)
            if at not in self._used_tools and each.key == asked.key
        ]
        tests: Sequence[Callable[[RecordedTool], bool]] = (
            lambda each: (each.call, each.tool_call) == (call, number),
            lambda each: each.path == place.path,
        )
        for test in tests:
            for at, each in fitting:
                if test(each):
                    self._used_tools.add(at)
                    return answer_of(json.loads(self._masks.here(json.dumps(each.ended, ensure_ascii=False))))
        error = explain_missing_result(self._cassette.tools, asked, self._sources)
        error.hint = f"{error.hint} {self._cost()}" if error.hint else self._cost()
        self.misses.append(error)
        raise error

    def listed(self, server: str) -> Sequence[ListedTool] | None:
        """The tools that a server had when it was recorded; None if it was not."""
        kept = self._cassette.servers.get(server)
        if kept is None:
            return None
        text = self._masks.here(json.dumps([asdict(tool) for tool in kept], ensure_ascii=False))
        return [ListedTool(**each) for each in json.loads(text)]

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
        return f"Record again with `{self._again}` ({with_count(usage.requests, 'request')}{cost} last time)."


def _remasked(recorded: Recorded, masks: Masks) -> Recorded:
    """A recording as today's `ignore` patterns leave it."""
    sent = recorded.sent
    messages = [masks.without_ignored(message) for message in sent.messages]
    setup = masks.without_ignored(sent.setup)
    return replace(recorded, sent=SentRequest.of(setup, messages)) if masks.ignores else recorded


def _text(outcome: RequestOutcome) -> str:
    """The text as a stream brings it, piece by piece."""
    parts = outcome.response.parts if outcome.response is not None else ()
    return "".join(part.content for part in parts if isinstance(part, TextPart))
