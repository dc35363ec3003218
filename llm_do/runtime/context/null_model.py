"""`NullModel`: the model of an entry, which may call others and never makes a request itself."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from llm_do.errors import ModelUnavailableError

__all__ = ["NULL_MODEL", "NullModel"]


class NullModel(Model):
    """Refuses every request: an entry has no model of its own.

    Example:
        >>> NullModel().model_name
        'null'
    """

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Raise an error.

        Raises:
            ModelUnavailableError: An entry has no model.
        """
        raise ModelUnavailableError(
            "an entry has no model of its own", hint="Call an agent by name: `await ctx.call(name, input)`."
        )

    @property
    def model_name(self) -> str:
        """`null`."""
        return "null"

    @property
    def system(self) -> str:
        """`null`."""
        return "null"


NULL_MODEL = NullModel()
"""The model of every call that has none."""
