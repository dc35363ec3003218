"""`OwnStream`: the base class for the streamed answers of the built-in models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic_ai.models import StreamedResponse

__all__ = ["OwnStream"]


@dataclass
class OwnStream(StreamedResponse):
    """The metadata of a streamed answer that comes from no provider's server."""

    name: str
    system: str
    """The provider's name in responses."""

    def __post_init__(self) -> None:
        self._started = datetime.now().astimezone()

    async def close_stream(self) -> None:
        """Do nothing: there is no connection to close."""

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
