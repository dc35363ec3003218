"""A model that keeps requesting sums, and a check that a run ended by a limit can be continued."""

from __future__ import annotations

import asyncio
from typing import Any

from llm_do import RunError
from tests.support.history import strict
from tests.support.scripted import call, script

__all__ = ["add", "assert_continues", "counting"]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def counting(*, n: int = 10**6) -> Any:
    """A model that requests another sum, `n` times."""

    def turn(messages: Any, info: Any) -> Any:
        done = sum(message.kind == "response" for message in messages)
        return [call("add", a=done, b=1)] if done < n else "counted"

    return script(turn)


def assert_continues(runtime: Any, error: RunError, *, model: Any = None) -> None:
    """Check that the error's history is valid and that a next run accepts it."""
    strict(error.messages)
    runtime.registry.agents()[0].model = model or script("continued")
    result = asyncio.run(runtime.run("continue", messages=error.messages))
    assert result.output == "continued"
    strict(result.messages)
    assert len(result.messages) > len(error.messages)
