"""PydanticAI's model of OpenAI's chat protocol, which leaves types of other protocols unimported.

To tell what an answer has used, PydanticAI asks of each answer and each chunk whether it belongs to the Responses API.
Importing what it asks about would take a tenth of a short run.
"""

from __future__ import annotations

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.usage import RequestUsage

from llm_do._startup.deferred_packages import asking_about

__all__ = ["ChatModel"]

OTHERS = frozenset({"openai.types.responses.Response", "openai.types.responses.ResponseUsage"})
"""What PydanticAI asks about."""


class ChatStreamedResponse(OpenAIStreamedResponse):
    """A streamed answer of `ChatModel`."""

    def _map_usage(self, response: ChatCompletionChunk) -> RequestUsage:
        return asking_about(OTHERS, super()._map_usage, response)


class ChatModel(OpenAIChatModel):
    """The model for providers whose answers PydanticAI reads as OpenAI's own."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return ChatStreamedResponse

    def _map_usage(self, response: ChatCompletion) -> RequestUsage:
        return asking_about(OTHERS, super()._map_usage, response)
