"""Other providers that speak OpenAI's chat protocol: their answers are mended, too, and their settings stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.providers import infer_provider_class

from llm_do import AgentSpec
from llm_do.models.providers.chat.client import LeanOpenAI
from llm_do.models.providers.provider_models import Address, make_provider
from tests.models.odd_chat_answers import ROWS
from tests.support.raw_server import serve_raw
from tests.support.runs import project_of
from tests.support.views import plain, stream

ODD = (
    "null id, model, usage and created",
    "thinking in the text",
    "an unknown finish reason",
    "HTTP 200, error as text",
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_raw({name: ROWS[name].answers for name in ODD}) as (url, _):
        yield f"{url}/v1"


@pytest.mark.sample(5)
@pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])
@pytest.mark.parametrize("prefix", ["litellm", "vllm"])
@pytest.mark.parametrize("name", ODD)
def test_odd_answers_of_other_providers(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, prefix: str, view: object
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", server)
    spec = AgentSpec("main", model=f"{prefix}:{name}", model_settings={"base_url": server})
    ending = (plain if view is plain else stream)(project_of([spec], root=tmp_path, max_retries=0), tmp_path)

    row = ROWS[name]
    assert (ending.status, ending.output) == (row.status, row.output), ending
    assert row.error in ending.error


def texts(client: AsyncOpenAI) -> dict[str, str]:
    return {name: text for name, text in client.default_headers.items() if isinstance(text, str)}


@pytest.mark.sample(2)
@pytest.mark.parametrize("prefix", ["cerebras", "deepseek", "moonshotai", "together", "vercel", "alibaba", "heroku"])
def test_a_mending_client_sends_what_the_providers_own_does(prefix: str) -> None:
    client = httpx2.AsyncClient()
    own = infer_provider_class(prefix)(api_key="k").client  # type: ignore[call-arg]
    lean = make_provider(Address(prefix, None, "k"), lambda _: client).client

    assert isinstance(own, AsyncOpenAI)
    assert isinstance(lean, LeanOpenAI)
    assert (lean.base_url, lean.api_key) == (own.base_url, own.api_key)
    sent = [
        {name: text for name, text in each.default_headers.items() if isinstance(text, str)} for each in (lean, own)
    ]
    assert sent[0] == sent[1]
    assert lean.max_retries == 0
