"""What stands for a cassette where there is none: scripted models answer, and any other request ends the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llm_do.errors import CassetteMissError
from llm_do.models.providers.model_names import split_name
from llm_do.runtime.record.transport import Transport
from llm_do.testing.cassettes.recorded_model import RecordedModel

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.transport import Answer, Ask, OutgoingRequest

__all__ = ["OfflineTransport", "is_scripted"]

_SCRIPTED = ("script", "test")
"""Models that are part of the test, and answer alike each time."""


class OfflineTransport(Transport):
    """A transport that never asks a provider."""

    def __init__(self) -> None:
        self.misses: list[CassetteMissError] = []

    def stand_in(self, agent: str, named: Sequence[str] | None) -> Sequence[tuple[Model, str]]:
        """None for scripted models; for others, which aren't built, models that are never asked."""
        if named and all(map(is_scripted, named)):
            return ()
        return [(RecordedModel(name, None), name) for name in named or ("a model that isn't named",)]

    async def send(
        self, place: RequestPlace, request: OutgoingRequest, ask: Ask, show: Callable[[str], None] | None
    ) -> Answer:
        """Let a scripted model answer.

        Raises:
            CassetteMissError: It is another model.
        """
        names = (request.name,) if isinstance(request.name, str) else request.name
        if not isinstance(request.model, RecordedModel) and all(map(is_scripted, names)):
            return await ask()
        error = CassetteMissError(
            f"request {place.number} of {place.path} would ask {', '.join(names)}, and there is no cassette",
            agent_path=place.path,
            hint="record a cassette with `llm-do run --record FILE`, or use a `script:` model",
        )
        self.misses.append(error)
        raise error


def is_scripted(name: str) -> bool:
    """Whether a model needs no recording: it is part of the test."""
    return split_name(name)[0] in _SCRIPTED
