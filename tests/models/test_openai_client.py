"""Compares the lean OpenAI client with the SDK's own over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from llm_do.models.providers.chat.client import LeanOpenAI
from tests.support.openai_server import Request, serve

SCRIPTS = {
    "calls": [
        {"tools": [{"name": "add", "args": {"a": 1, "b": 2}, "id": "call-1"}]},
        {"text": "It is {tool}.", "chunks": 3},
    ],
    "fails": [{"status": 500, "times": 9}],
}
CHANGING = ("x-stainless-retry-count", "host", "idempotency-key")


@pytest.fixture
def server() -> Iterator[tuple[str, list[Request]]]:
    with serve(SCRIPTS) as served:
        yield served


async def run(client: AsyncOpenAI, *, streamed: bool, **settings: Any) -> str:
    agent = Agent(
        OpenAIChatModel("calls", provider=OpenAIProvider(openai_client=client)),
        instructions="Add.",
        model_settings={"temperature": 0.5, "max_tokens": 9, "stop_sequences": ["x"], **settings},  # type: ignore[typeddict-item]
    )

    @agent.tool_plain
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    async def drain(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    result = await agent.run("1 + 2 = ? äöü \u2028", event_stream_handler=drain if streamed else None)
    await client.close()
    return result.output


@pytest.mark.sample(2)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"timeout": 7.5, "extra_headers": {"x-own": "1"}, "extra_body": {"own": {"deep": [1, None]}}},
        {"parallel_tool_calls": False, "seed": 3, "logit_bias": {"5": 1}},
    ],
)
def test_both_clients_send_the_same_bodies_and_headers(
    server: tuple[str, list[Request]], streamed: bool, settings: dict[str, Any]
) -> None:
    url, log = server
    for kind in (AsyncOpenAI, LeanOpenAI):
        client = kind(base_url=url, api_key="k", max_retries=0)
        assert asyncio.run(run(client, streamed=streamed, **settings)) == "It is 3."
    sent = [(r.path, {k: v for k, v in r.headers.items() if k not in CHANGING}, json.loads(r.raw)) for r in log]
    assert len(sent) == 4
    assert sent[:2] == sent[2:]


def test_a_copy_with_other_options_is_also_lean(server: tuple[str, list[Request]]) -> None:
    url, log = server
    client = LeanOpenAI(base_url=url, api_key="k").with_options(max_retries=0, default_headers={"x-own": "1"})
    assert isinstance(client, LeanOpenAI)
    assert asyncio.run(run(client, streamed=False)) == "It is 3."
    assert log[0].headers["x-own"] == "1"


def test_a_status_error_is_the_sdks_and_is_not_retried(server: tuple[str, list[Request]]) -> None:
    url, log = server
    client = LeanOpenAI(base_url=url, api_key="k", max_retries=0)
    agent = Agent(OpenAIChatModel("fails", provider=OpenAIProvider(openai_client=client)))

    async def fail() -> None:
        async with client:
            await agent.run("x")

    with pytest.raises(ModelHTTPError) as raised:
        asyncio.run(fail())
    assert raised.value.status_code == 500
    assert len(log) == 1


def test_the_lean_client_leaves_everything_else_to_the_sdk(server: tuple[str, list[Request]]) -> None:
    client = LeanOpenAI(base_url=server[0], api_key="k", max_retries=0)

    async def ask() -> str | None:
        async with client:
            raw = await client.chat.completions.with_raw_response.create(
                model="calls", messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
            )
            return raw.parse().choices[0].message.content

    assert asyncio.run(ask()) == "It is ."
