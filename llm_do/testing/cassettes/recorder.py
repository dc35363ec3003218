"""Records the requests of a session in a cassette."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.files.root import FileRefusedError, Root
from llm_do.runtime.record.exchanges import ModelFacts
from llm_do.runtime.record.sent_request import read_request
from llm_do.runtime.record.transport import Answer
from llm_do.testing.cassettes.call_readers import CallReaders
from llm_do.testing.cassettes.cassette import Cassette, Recorded
from llm_do.testing.cassettes.outcome_data import portable_outcome

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.transport import Ask, OutgoingRequest
    from llm_do.testing.cassettes.masks import Masks

__all__ = ["CassetteRecorder", "write_cassette"]


class CassetteRecorder:
    """A transport that asks the models and records what was sent and what came back.

    Args:
        masks: Take secrets and what depends on the machine out of JSON text.
        version: The version of llm-do, for the cassette's first lines.
    """

    def __init__(self, masks: Masks, version: str) -> None:
        self._masks = masks
        self._version = version
        self._readers = CallReaders(masks)
        self._exchanges: list[Recorded] = []
        self._models: dict[str, ModelFacts] = {}

    def stand_in(self, agent: str, named: Sequence[str] | None) -> Sequence[tuple[Model, str]]:
        """None: every agent uses its own model."""
        return ()

    async def send(
        self, place: RequestPlace, request: OutgoingRequest, ask: Ask, show: Callable[[str], None] | None
    ) -> Answer:
        """Ask the model, and record the exchange."""
        reader = self._readers.of(place)
        sent = read_request(reader, request)
        call = self._readers.call(place)
        answer = await ask()
        name = str(sent.setup["model"])
        if name not in self._models:
            self._models[name] = ModelFacts.of(request.model)
        outcome = portable_outcome(answer.outcome, reader, self._masks.portable)
        self._exchanges.append(
            Recorded(
                call,
                place.path,
                place.agent,
                place.number,
                place.attempt,
                place.purpose,
                sent,
                outcome,
                json.loads(self._masks.portable(json.dumps(answer.partial, ensure_ascii=False))),
            )
        )
        return answer

    def cassette(self) -> Cassette:
        """What has been recorded so far."""
        day = datetime.now(UTC).date()
        exchanges = sorted(self._exchanges, key=lambda each: each.order)
        return Cassette(exchanges, self._models, f"{day} by llm-do {self._version}")


def write_cassette(path: Path, cassette: Cassette) -> None:
    """Write a cassette in one step: whoever is killed while recording keeps the old one.

    Raises:
        UsageError: The file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Root(path.parent).write(path.name, cassette.to_text().encode("utf-8", "backslashreplace"))
    except (FileRefusedError, OSError) as error:
        raise UsageError(
            f"the cassette {path} can't be written: {error}", hint="Choose another file.", file=str(path)
        ) from error
