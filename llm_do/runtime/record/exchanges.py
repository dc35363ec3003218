"""An exchange: one request to a model with what came back, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llm_do._startup.frozen import frozen

if TYPE_CHECKING:
    from llm_do.runtime.record.request_outcome import RequestOutcome
    from llm_do.runtime.record.sent_request import SentRequest

__all__ = ["Exchange", "Purpose", "RequestPlace"]

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
class Exchange:
    """One attempt of a request.

    Args:
        place: Where it was made.
        sent: What was sent.
        outcome: How it ended.
        begun: When it was sent, in seconds since the epoch.
        ended: When it ended.
        first_token: When the first text came, if it was streamed.
        partial: The text of a streamed answer that broke off.
    """

    place: RequestPlace
    sent: SentRequest
    outcome: RequestOutcome
    begun: float
    ended: float
    first_token: float | None = None
    partial: str = ""
