"""Calls that were running when a durable run stopped: whether they had an effect isn't known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_do.errors import SuspendedError
from llm_do.text.sanitizer import format_arguments

__all__ = ["call_text", "in_flight_error"]

LONGEST = 100
"""Characters of the arguments that are shown."""


def call_text(data: Mapping[str, Any]) -> str:
    """A call in one line, such as `pay(amount=7)`.

    Example:
        >>> call_text({"tool_name": "pay", "args": {"amount": 7}})
        'pay(amount=7)'
    """
    args = ", ".join(f"{name}={value}" for name, value in format_arguments(data["args"], lines=False))
    return f"{data['tool_name']}({args if len(args) <= LONGEST else f'{args[:LONGEST]}…'})"


def in_flight_error(run_id: str, calls: Mapping[str, Mapping[str, Any]]) -> SuspendedError:
    """The error of a run that can't continue until a person has decided about these calls."""
    names = " and ".join(f"{data['path']}: {call_text(data)}" for data in calls.values())
    were = "was running" if len(calls) == 1 else "were running"
    return SuspendedError(
        f"{names} {were} when run {run_id} stopped; whether {'it' if len(calls) == 1 else 'they'} had an effect isn't"
        " known",
        hint=f"Find out, then continue with `llm-do resume {run_id} --in-flight repeat`, `--in-flight done` or"
        " `--in-flight fail`, which tells the model that it isn't known.",
        calls=calls,
    )
