"""When a call's history is shortened before it is sent; how is `llm_do.threads.compaction`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from llm_do._extensions import ExtensionPoint
from llm_do.models.token_estimates import estimate_tool_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model, ModelRequestParameters

    from llm_do.runtime.context.call_context import CallContext

__all__ = ["COMPACTOR", "Compaction", "Compactor", "compaction_of"]


class Compactor(Protocol):
    """Shortens the histories of one agent's call."""

    async def __call__(
        self, ctx: CallContext, model: Model, messages: list[ModelMessage], tools: int
    ) -> list[ModelMessage]:
        """The history as it is sent; the same list where it is short enough."""
        ...


COMPACTOR: ExtensionPoint[Callable[[Mapping[str, Any]], Compactor]] = ExtensionPoint("compactor")
"""What shortens histories by an agent's settings."""


@dataclass(slots=True, eq=False)
class Compaction:
    """One call's compaction.

    Args:
        settings: `max_tokens` or `fraction`, `strategies`, `preserve_recent`, `summary_model`.
    """

    settings: Mapping[str, Any]
    _compactor: Compactor | None = field(default=None, init=False, repr=False)

    async def shortened(
        self, ctx: CallContext, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> list[ModelMessage]:
        """The history as it is sent."""
        if self._compactor is None:
            self._compactor = COMPACTOR.get()(self.settings)
        return await self._compactor(ctx, model, messages, estimate_tool_tokens(parameters))


def compaction_of(settings: Mapping[str, Any] | None) -> Compaction | None:
    """A call's compaction; None where nothing is set."""
    return Compaction(settings) if settings else None
