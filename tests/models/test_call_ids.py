"""Ids of tool calls that one provider's model chose are sent to another as ids that it takes."""

from __future__ import annotations

import pytest

from tests.models import odd_messages
from tests.support.history import strict
from tests.support.raw_server import serve_raw
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize("own", ["functions.add:0", "call_0", "", "a" * 70, "é|1"])
def test_a_conversation_of_another_provider_is_continued_with_anthropic(
    monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    turns = [[call("add", {"a": n, "b": 1}, own), call("add", {"a": n, "b": 2}, own + "-2")] for n in range(3)]
    first = carry_out(runtime_of([agent("main", script(*turns, "fin"), tools=[add])]))

    with serve_raw({"m": [odd_messages.YES]}) as (url, log):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        second = carry_out(runtime_of([agent("main", "anthropic:m", tools=[add])]), messages=first.messages)

    assert (second.status, second.output) == ("completed", "Yes"), second.error
    assert len(log) == 1
    strict(second.messages)
