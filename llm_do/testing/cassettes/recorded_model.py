"""The model of a replay: it has the name and the profile of the one that was recorded, and is never asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic_ai.models import Model, ModelRequestParameters

from llm_do.errors import UsageError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.settings import ModelSettings

    from llm_do.runtime.record.exchanges import ModelFacts

__all__ = ["RecordedModel"]


class RecordedModel(Model):
    """Stands for a recorded model.

    Args:
        name: The name that it was requested by.
        facts: What is known of it; None if the cassette has no such model.
    """

    def __init__(self, name: str, facts: ModelFacts | None) -> None:
        super().__init__(profile=cast("ModelProfile", dict(facts.profile)) if facts is not None else None)
        self._name = facts.name if facts is not None else name.partition(":")[2] or name
        self._system = facts.system if facts is not None else name.partition(":")[0]

    @property
    def model_name(self) -> str:
        """The name, as its provider names it."""
        return self._name

    @property
    def system(self) -> str:
        """The provider."""
        return self._system

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Raise an error: answers come from the cassette.

        Raises:
            UsageError: Something other than the run has asked.
        """
        raise UsageError(
            f"{self._system}:{self._name} can't be asked: the run is replayed from a cassette",
            hint="ask models only in the run itself, or run without the cassette",
        )
