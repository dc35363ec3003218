"""A provider's library sends each request once, whoever made the model; only the runtime retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from llm_do import AgentSpec, ModelError, ProviderError, Runtime, RuntimeConfig, register_model_factory, run
from llm_do.models.providers import factories
from tests.support.loopback import serve_handler
from tests.support.runs import carry_out, heard, project_of


@contextmanager
def unavailable() -> Iterator[tuple[str, list[str]]]:
    """A server that answers 503 in any protocol; yields its URL and the requested paths."""
    log: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            log.append(self.path)
            body = b'{"error": {"message": "later", "code": 503, "status": "UNAVAILABLE"}}'
            self.send_response(503)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serve_handler(Handler) as address:
        yield f"{address}/v1", log


both = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@pytest.mark.sample(3)
@both
@pytest.mark.parametrize(
    "name",
    [
        *("openai:m", "openai-chat:m", "vllm:m", "alibaba:m"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("anthropic:m", "google:m", "ollama:m", "litellm:m")),
    ],
)
def test_a_named_model_sends_each_request_once(name: str, streaming: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI", "ANTHROPIC", "GOOGLE", "LITELLM", "ALIBABA"):
        monkeypatch.setenv(f"{key}_API_KEY", "k")
    with unavailable() as (url, log):
        project = project_of([AgentSpec("main", model=name, model_settings={"base_url": url})], max_retries=1)
        runtime = Runtime(project, config=RuntimeConfig.of(project, retry_delay=0.0))
        ear = heard(runtime, "text" if streaming else "retry")
        result = carry_out(runtime)

    assert isinstance(result.error, ProviderError)
    assert len(log) == result.usage.requests == 2
    assert streaming or ear.types == ["retry"]


class Wrapping(WrapperModel):
    """A custom model that wraps another."""


class Unable(FunctionModel):
    """A failing model whose retries can't be configured."""

    unsupported_settings: ClassVar[Any] = frozenset({"max_retries"})

    def __init__(self) -> None:
        super().__init__(self._fail)

    async def _fail(self, *_: object) -> Any:
        raise ProviderError("no")


GIVEN: dict[str, Callable[[OpenAIProvider], dict[str, Any]]] = {
    "provider": lambda provider: {"model": "openai-chat:m", "provider": provider},
    "model": lambda provider: {"model": OpenAIChatModel("m", provider=provider)},
    "responses": lambda provider: {"model": OpenAIResponsesModel("m", provider=provider)},
    "setting": lambda provider: {"model": OpenAIChatModel("m", provider=provider, settings={"max_retries": 2})},
    "setting over a client without": lambda provider: {
        "model": OpenAIChatModel("m", provider=_patient(provider), settings={"max_retries": 2})
    },
    "wrapped": lambda provider: {"model": Wrapping(OpenAIChatModel("m", provider=provider))},
    "list": lambda provider: {"model": FallbackModel(OpenAIChatModel("m", provider=provider))},
    "list of lists": lambda provider: {
        "model": FallbackModel(Wrapping(FallbackModel(OpenAIChatModel("m", provider=provider))))
    },
    "list with one that can't be configured": lambda provider: {
        "model": FallbackModel(Unable(), OpenAIChatModel("m", provider=provider), fallback_on=(ModelError, Exception))
    },
    "factory": lambda provider: {"model": _registered(lambda name: OpenAIChatModel(name, provider=provider))},
}


def _patient(provider: OpenAIProvider) -> OpenAIProvider:
    return OpenAIProvider(openai_client=provider.client.with_options(max_retries=0))


def _registered(factory: Callable[[str], Any]) -> str:
    register_model_factory("own", factory)
    return "own:m"


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", list(GIVEN))
@pytest.mark.parametrize("retries", [0, 1])
def test_the_callers_client_sends_each_request_once_and_is_not_modified(
    kind: str, retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "_factories", {})

    async def failing(url: str) -> int:
        async with httpx2.AsyncClient() as connections:
            client = AsyncOpenAI(base_url=url, api_key="k", http_client=connections)
            given = GIVEN[kind](OpenAIProvider(openai_client=client))
            with pytest.raises(ModelError):
                await run(AgentSpec("main"), "go", max_retries=retries, **given)
            return client.max_retries

    with unavailable() as (url, log):
        assert asyncio.run(failing(url)) == 2

    assert len(log) == retries + 1


@pytest.mark.parametrize("name", ["openai-chat:m", "vllm:m"])
def test_an_agents_settings_do_not_reenable_a_librarys_retries(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with unavailable() as (url, log):
        spec = AgentSpec("main", model=name, model_settings={"base_url": url, "max_retries": 2})
        carry_out(Runtime(project_of([spec], max_retries=0)))

    assert len(log) == 1
