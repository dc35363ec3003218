"""A project whose agents call each other three levels deep, two of them side by side."""

from __future__ import annotations

from llm_do import Runtime
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script

__all__ = ["add", "three_deep"]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def three_deep() -> Runtime:
    """A project where main calls scout, scout calls digger twice in parallel, and all use `add`."""
    digger = agent("digger", script(call("add", {"a": 1, "b": 1}, "d1"), "dug"), tools=[add])
    scout = agent(
        "scout",
        script([call("digger", {"input": "left"}, "s1"), call("digger", {"input": "right"}, "s2")], "scouted"),
        toolsets=[digger],
    )
    main = agent(
        "main",
        script([call("add", {"a": 2, "b": 2}, "m1"), call("scout", {"input": "go"}, "m2")], "done"),
        tools=[add],
        toolsets=[scout],
    )
    return runtime_of([main, scout, digger])
