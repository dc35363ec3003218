"""A model that never has enough of adding, and how a run that a limit has ended goes on."""

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
    """A model that asks for another sum each time, `n` times."""

    def turn(messages: Any, info: Any) -> Any:
        done = sum(message.kind == "response" for message in messages)
        return [call("add", a=done, b=1)] if done < n else "counted"

    return script(turn)


def assert_continues(runtime: Any, error: RunError, *, model: Any = None) -> None:
    """The history that an error carries is strict, and a next run accepts it."""
    strict(error.messages)
    runtime.registry.agents()[0].model = model or script("continued")
    result = asyncio.run(runtime.run("go on", messages=error.messages))
    assert result.output == "continued"
    strict(result.messages)
    assert len(result.messages) > len(error.messages)
