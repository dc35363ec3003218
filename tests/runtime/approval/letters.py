"""An agent that sends letters and a record of what was sent, for the approval tests."""

from __future__ import annotations

from typing import Any

from tests.support.runs import agent
from tests.support.scripted import call, script

__all__ = ["RAN", "send", "sender"]

RAN: list[Any] = []
"""What ran, in order; the tests that look at it empty it first."""


def send(to: str) -> str:
    """Send a letter."""
    RAN.append(to)
    return f"sent to {to}"


def sender(*calls: Any, **fields: Any) -> Any:
    """Return an agent that makes these calls at once and then ends."""
    return agent("main", script(list(calls) or [call("send", to="ann")], "fin"), tools=[send], **fields)
