"""What may stand between a run's requests and its models, to record or to replay them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from llm_do._startup.frozen import frozen

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from llm_do.formats.server_listings import ListedTool
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.request_outcome import RequestOutcome

__all__ = ["Answer", "Ask", "OutgoingRequest", "ToolPlace", "ToolTimedOutError", "Transport"]


@frozen
class OutgoingRequest:
    """What is sent to a model.

    Args:
        model: The model.
        name: The name that the model was requested by; of a list, which is asked one by one, the names.
        messages: The history.
        settings: The model settings.
        parameters: Tools and output schema.
        streams: Whether the text is emitted as it comes.
        own_settings: The settings before a budget lowered `max_tokens`; None if it hasn't.
    """

    model: Model
    name: str | Sequence[str]
    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters
    streams: bool = False
    own_settings: ModelSettings | None = None


@frozen
class Answer:
    """What one attempt brought.

    Args:
        outcome: How it ended.
        partial: The text of a streamed answer that broke off.
        first_token: When the first text came, in seconds since the epoch.
    """

    outcome: RequestOutcome
    partial: str = ""
    first_token: float | None = None


Ask: TypeAlias = Callable[[], Awaitable[Answer]]
"""Asks the model."""


@frozen
class ToolPlace:
    """Where in a run a tool is called.

    Args:
        run_id: The run.
        call_id: The call that makes it.
        path: Its call path.
        tool: The tool.
        tool_call_id: The tool call.
    """

    run_id: str
    call_id: str
    path: str
    tool: str
    tool_call_id: str

    @property
    def call(self) -> str:
        """The call's id without that of its run."""
        return self.call_id.removeprefix(self.run_id).removeprefix(".")


class ToolTimedOutError(TimeoutError):
    """A recorded tool call took too long."""


class Transport(Protocol):
    """Carries a session's requests, by asking the model or without; whoever inherits from it runs every tool."""

    def stand_in(self, agent: str, named: Sequence[str] | None) -> Sequence[tuple[Model, str]]:
        """The models, with their names, that an agent uses instead of building its own; none if it uses those.

        `named` are the models named by the caller, the agent or the project, if there are any.
        """
        ...

    async def send(
        self, place: RequestPlace, request: OutgoingRequest, ask: Ask, show: Callable[[str], None] | None
    ) -> Answer:
        """Make one attempt of a request; whoever doesn't `ask` shows the text with `show`, if it is streamed.

        Raises:
            LlmDoError: The request can't be carried; the run ends with this error, whatever its code catches.
        """
        ...

    def carries(self, tool: str) -> bool:
        """Whether calls of a tool that may run go through `call_tool`."""
        return False

    async def call_tool(self, place: ToolPlace, args: Mapping[str, Any], run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a tool, or answer its call without; returns or raises what the tool does.

        Raises:
            LlmDoError: The call can't be answered; the run ends with this error, whatever its code catches.
        """
        return await run()

    def listed(self, server: str) -> Sequence[ListedTool] | None:
        """The tools of a server that needn't be asked; None to ask it."""
        return None

    def keep_listing(self, server: str, tools: Sequence[ListedTool], names: Collection[str]) -> None:
        """Take notice of a server's tools, which agents know by these names."""
