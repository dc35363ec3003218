"""`OwnStream`: what the streamed answers of our own models share; each model makes its parts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic_ai.models import StreamedResponse

__all__ = ["OwnStream"]


@dataclass
class OwnStream(StreamedResponse):
    """The metadata of a streamed answer that comes from no provider's server.

    Args:
        name: The model's name.
        system: What stands in the place of a provider's name.
    """

    name: str
    system: str

    def __post_init__(self) -> None:
        self._started = datetime.now().astimezone()

    async def close_stream(self) -> None:
        """Do nothing: no connection is open."""

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def provider_name(self) -> str:
        return self.system

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._started
