"""An exchange: one request to a model with what came back, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from llm_do._startup.frozen import frozen

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from llm_do.runtime.record.request_outcome import RequestOutcome
    from llm_do.runtime.record.sent_request import SentRequest

__all__ = ["Exchange", "ModelFacts", "Purpose", "RequestPlace"]

Purpose = Literal["step", "summary"]
"""Who makes a request: an agent's step, or compaction for its summary."""


@frozen
class RequestPlace:
    """Where in a run a request is made.

    Args:
        run_id: The run.
        call_id: The call that makes it.
        path: Its call path.
        agent: Its agent.
        number: The number of the agent's request in this call, from 1.
        attempt: How often it has been made, from 1.
        purpose: Who makes it.
    """

    run_id: str
    call_id: str
    path: str
    agent: str
    number: int
    attempt: int = 1
    purpose: Purpose = "step"

    @property
    def call(self) -> str:
        """The call's id without that of its run: equal in every run that makes the same calls."""
        return self.call_id.removeprefix(self.run_id).removeprefix(".")


@frozen
class ModelFacts:
    """What a run needs to know of a model that isn't asked.

    Args:
        system: The provider, as PydanticAI names it.
        name: The model, as its provider names it.
        profile: The parts of its profile that are data.
    """

    system: str
    name: str
    profile: Mapping[str, Any]

    @classmethod
    def of(cls, model: Model) -> ModelFacts:
        """The facts of a model."""
        from pydantic_ai.profiles import DEFAULT_PROFILE, ModelProfile

        try:
            profile: Mapping[str, Any] = {
                name: value
                for name, value in model.profile.items()
                # What only its provider's own client reads is of no use to a model that is never asked.
                if name in ModelProfile.__annotations__
                and isinstance(value, bool | int | float | str)
                and DEFAULT_PROFILE.get(name) != value
            }
        except NotImplementedError:
            profile = {}
        return cls(model.system, model.model_name, dict(sorted(profile.items())))


@frozen
class Exchange:
    """One attempt of a request.

    Args:
        place: Where it was made.
        model: The model, as events name it.
        sent: What was sent, in the form that cassettes have too: a request as it was before a budget changed it.
        outcome: How it ended.
        begun: When it was sent, in seconds since the epoch.
        ended: When it ended.
        first_token: When the first text came, if it was streamed.
        partial: The text of a streamed answer that broke off.
        tool_calls: What the response's tool calls are called in later requests, in their order, such as `call_1`.
        max_tokens: The `max_tokens` that a budget allowed; None if it left the settings alone.
        facts: What is known of the model; None if nothing is.
    """

    place: RequestPlace
    model: str
    sent: SentRequest
    outcome: RequestOutcome
    begun: float
    ended: float
    first_token: float | None = None
    partial: str = ""
    tool_calls: tuple[str, ...] = ()
    max_tokens: int | None = None
    facts: ModelFacts | None = None
