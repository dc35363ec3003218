"""What answers of the chat protocol have used is read as PydanticAI reads it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openrouter import OpenRouterModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage

from llm_do.models.providers.chat.client import LeanOpenAI
from llm_do.models.providers.chat.model import ChatModel
from llm_do.models.providers.provider_models import Address, make_model, make_provider

USED: dict[str, Any] = {
    "none": None,
    "counts": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    "details": {
        "prompt_tokens": 30,
        "completion_tokens": 4,
        "total_tokens": 34,
        "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5, "audio_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 1},
        "own": 9,
    },
}


@pytest.mark.parametrize("used", USED.values(), ids=USED)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_both_models_read_the_same_from_an_answer(used: Any, streamed: bool) -> None:
    ours, theirs = (asyncio.run(_used(kind, used, streamed)) for kind in (ChatModel, OpenAIChatModel))
    assert ours == theirs
    assert (ours.requests, ours.output_tokens) == (1, 4 if used else 0)


@pytest.mark.parametrize(
    ("prefix", "kind"),
    [("openai-chat", ChatModel), ("deepseek", ChatModel), ("vllm", ChatModel), ("openrouter", OpenRouterModel)],
)
def test_each_provider_whose_answers_are_read_as_openais_has_this_model(
    monkeypatch: pytest.MonkeyPatch, prefix: str, kind: type[OpenAIChatModel]
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://localhost/v1")
    instance = make_provider(Address(prefix, None, "k"), lambda _: httpx2.AsyncClient())
    model = make_model(prefix, "openai/some-model", instance)
    assert type(model) is kind
    assert (model.model_name, model.system) == ("openai/some-model", instance.name)


async def _used(kind: type[OpenAIChatModel], used: Any, streamed: bool) -> RunUsage:
    def answer(request: httpx2.Request) -> httpx2.Response:
        text = {"role": "assistant", "content": "Three."}
        choice = {"index": 0, "finish_reason": "stop", "delta" if streamed else "message": text}
        body = {"id": "1", "created": 1, "model": "m", "choices": [choice], "usage": used}
        if streamed:
            events = f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n"
            return httpx2.Response(200, text=events, headers={"content-type": "text/event-stream"})
        return httpx2.Response(200, json=body)

    async def drain(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    async with LeanOpenAI(base_url="http://localhost/v1", api_key="k", max_retries=0, http_client=http) as client:
        agent = Agent(kind("m", provider=OpenAIProvider(openai_client=client)))
        result = await agent.run("1 + 2 = ?", event_stream_handler=drain if streamed else None)
    return result.usage
