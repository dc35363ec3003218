from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel

from llm_do._extras import install_command
from llm_do.errors import ModelUnavailableError, UsageError
from llm_do.models import ModelPool, register_model_factory, resolve_model
from llm_do.models.connections import http_clients as connections_module
from llm_do.models.providers import provider_models as build_module
from tests.models.asking import HELLO, say
from tests.support.loopback import serve_handler
from tests.support.openai_server import serve
from tests.support.tables import each_row


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> list[ssl.SSLContext]:
    """Every SSL context made during the test."""
    made: list[ssl.SSLContext] = []
    new = ssl.SSLContext.__new__

    def counted(cls: type[ssl.SSLContext], *args: Any, **kwargs: Any) -> ssl.SSLContext:
        made.append(new(cls, *args, **kwargs))
        return made[-1]

    monkeypatch.setattr(ssl.SSLContext, "__new__", counted)
    monkeypatch.setattr(connections_module, "_ssl_context", None)
    return made


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, llm_do.models, llm_do.models.pool\n"
        "import llm_do.models.providers.model_names, llm_do.models.providers.factories\n"
        "llm_do.models.ModelPool(), llm_do.models.choose_model\n"
        "heavy = {'pydantic', 'pydantic_ai', 'yaml', 'httpx2', 'openai', 'xllamacpp'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_server_from_the_environment_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(HELLO) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        assert say(ModelPool(), "openai-chat:gpt-test") == "Hello"
        assert log[0].headers["authorization"] == "Bearer secret"


def test_a_server_from_the_settings_needs_no_key() -> None:
    with serve(HELLO) as (url, log):
        assert say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url}) == "Hello"
        assert log[0].headers["authorization"] == "Bearer unused"


def test_an_address_in_the_settings_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with serve(HELLO) as (url, _):
        assert say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url}) == "Hello"


def test_a_key_sent_to_another_address_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    messages: list[str] = []
    pool = ModelPool(messages.append)
    for name in ("openai-chat:a", "openai-chat:b"):
        pool.get(name, file="main.agent", settings={"base_url": "https://gateway.example/v1"})
    assert messages == [
        "the key of the provider 'openai-chat' is sent to https://gateway.example/v1, set in main.agent"
    ]


def test_a_custom_server_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with serve(HELLO) as (url, log):
        assert say(ModelPool(), f"local:{url}#gpt-test") == "Hello"
        monkeypatch.setenv("LLM_DO_LOCAL_MODEL", f"{url}#other")
        assert say(ModelPool(), "local") == "Other"
        assert {request.headers["authorization"] for request in log} == {"Bearer unused"}


def test_ollama_is_found_at_the_address_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(HELLO) as (url, _):
        monkeypatch.setenv("OLLAMA_BASE_URL", url)
        assert say(ModelPool(), "ollama:gpt-test") == "Hello"


def test_one_pool_serves_several_event_loops_in_turn() -> None:
    pool = ModelPool()
    with serve(HELLO) as (url, _):
        for _ in range(3):
            assert say(pool, "openai-chat:gpt-test", settings={"base_url": url}) == "Hello"


def test_one_pool_serves_two_event_loops_at_once() -> None:
    pool = ModelPool()
    answers: list[str] = []
    with serve({"gpt-test": [{"text": "Hello", "delay": 0.05}]}) as (url, _):

        def work() -> None:
            answers.append(say(pool, "openai-chat:gpt-test", settings={"base_url": url}))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["Hello"] * 4


def test_the_sdk_retries_nothing() -> None:
    with serve({"gpt-test": [{"status": 503, "times": 5}]}) as (url, log):
        with pytest.raises(ModelAPIError):
            say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url})
        assert len(log) == 1


def test_no_client_of_ours_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "k")
    names = ("openai:a", "openai-chat:a", "anthropic:a", "ollama:a")
    pool = ModelPool()
    for name in names:
        provider = pool.get(name).provider
        assert provider is not None
        assert provider.client.max_retries == 0, name


def test_an_http_address_creates_no_ssl_context(contexts: list[ssl.SSLContext]) -> None:
    with serve(HELLO) as (url, _):
        assert say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url}) == "Hello"
    assert contexts == []


def test_many_agents_share_one_ssl_context_and_one_client(
    contexts: list[ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    pool = ModelPool()

    async def many() -> None:
        models = [pool.get(f"openai-chat:m{n % 10}", agent=f"agent{n}") for n in range(1000)]
        models += [pool.get(f"openai:m{n % 10}", agent=f"agent{n}") for n in range(1000)]
        assert len({id(model) for model in models}) == 20
        assert len({id(model.provider.client._client) for model in models if model.provider}) == 1
        await pool.aclose()

    asyncio.run(many())
    asyncio.run(many())
    assert len(contexts) == 1


@pytest.mark.slow
def test_hundreds_of_concurrent_requests_all_get_an_answer() -> None:
    pool = ModelPool()

    async def many(url: str) -> set[str]:
        agent = Agent(pool.get("openai-chat:gpt-test", settings={"base_url": url}))
        results = await asyncio.gather(*(agent.run("Hi") for _ in range(150)))
        await pool.aclose()
        return {result.output for result in results}

    with serve({"gpt-test": [{"text": "Hello", "delay": 0.1}]}) as (url, _):
        assert asyncio.run(many(url)) == {"Hello"}


class Proxy(BaseHTTPRequestHandler):
    """Records the addresses it was asked to forward."""

    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Don't log."""

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.send_error(418)


def test_proxies_from_the_environment_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    Proxy.asked = []
    with serve_handler(Proxy) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with pytest.raises(ModelAPIError):
            say(ModelPool(), "openai-chat:m", settings={"base_url": "http://api.example/v1"})
        with serve(HELLO) as (url, _):
            assert say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url}) == "Hello"
    assert Proxy.asked == ["http://api.example/v1/chat/completions"]


def test_unusable_certificates_are_a_typed_error(
    contexts: list[ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    with pytest.raises(ModelUnavailableError) as raised:
        ModelPool().get("openai:a")
    assert "SSL_CERT_FILE" in (raised.value.hint or "")


@each_row(
    "name, missing",
    [
        ("openai:a", "OPENAI_API_KEY"),
        ("openai-chat:a", "OPENAI_API_KEY"),
        ("anthropic:a", "ANTHROPIC_API_KEY"),
        ("google:a", "GOOGLE_API_KEY"),
        ("groq:a", "GROQ_API_KEY"),
        ("vllm:a", "VLLM_BASE_URL"),
    ],
)
def test_a_missing_key_is_one_line_that_names_agent_file_and_variable(name: str, missing: str) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        ModelPool().get(name, agent="main", file="main.agent")
    error = raised.value
    assert missing in error.message
    assert "'main'" in error.message
    assert error.file == "main.agent"
    assert "\n" not in error.message


def test_a_provider_without_its_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")
    with pytest.raises(ModelUnavailableError) as raised:
        ModelPool().get("groq:a")
    assert raised.value.hint == f"Install it with `{install_command(package='pydantic-ai-slim[groq]')}`."


NO_ADDRESSES = ("localhost:1", "http://", "http://localhost:port/v1", "http://[::1", "ftp://localhost")


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_invalid_address_is_rejected_from_any_source(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelUnavailableError, match="base_url of agent 'main' is not an HTTP address") as in_settings:
        ModelPool().get("openai-chat:a", agent="main", file="main.agent", settings={"base_url": address})
    assert in_settings.value.file == "main.agent"
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ModelUnavailableError, match="OPENAI_BASE_URL is not an HTTP address"):
        ModelPool().get("openai-chat:a")


def test_a_custom_server_must_have_an_http_address() -> None:
    with pytest.raises(ModelUnavailableError, match="has no HTTP address"):
        ModelPool().get("local:http://#qwen")


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secret\r", "sk-schlüssel"])
def test_an_invalid_key_is_reported_before_it_is_sent_and_never_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY contains a character") as raised:
        ModelPool().get("openai:a", file="main.agent")
    assert raised.value.file == "main.agent"
    assert "sk-" not in f"{raised.value.message} {raised.value.hint}"


def test_a_credentials_error_of_a_providers_library_becomes_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_for_credentials(*_: object) -> None:
        raise LookupError("no credentials\nwere found")

    monkeypatch.setattr(build_module, "infer_provider_class", look_for_credentials)
    with pytest.raises(ModelUnavailableError) as raised:
        ModelPool().get("google-cloud:a", agent="main", file="main.agent")
    assert raised.value.message == "the provider 'google-cloud' can't be used: no credentials were found"
    assert (raised.value.file, raised.value.agent_path) == ("main.agent", "main")


def test_a_provider_with_a_fixed_address_accepts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
    with pytest.raises(ModelUnavailableError, match="has a fixed address"):
        ModelPool().get("deepseek:a", settings={"base_url": "http://localhost/v1"})


def test_a_lists_models_are_tried_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"bad": [{"status": 500, "times": 9}], "good": [{"text": "Good"}]}) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        assert say(ModelPool(), ["openai-chat:bad", "openai-chat:good"]) == "Good"
        assert [request.body["model"] for request in log] == ["bad", "good"]


def test_an_llm_do_error_falls_back_to_the_next_model(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("[]")
    answer = say(ModelPool(), [f"script:{tmp_path / 'empty.yaml'}", "test"], agent="main")
    assert answer == "success (no tool calls)"


def test_an_unavailable_model_of_a_list_is_skipped_with_a_notice() -> None:
    messages: list[str] = []
    pool = ModelPool(messages.append)
    assert isinstance(pool.get(["openai:a", "test"], agent="main"), TestModel)
    assert [sentence.partition(":")[0] for sentence in messages] == ["left out a model"]
    assert "OPENAI_API_KEY" in messages[0]


def test_a_list_without_an_available_model_is_an_error_with_the_reasons() -> None:
    with pytest.raises(ModelUnavailableError, match=r"none of the models openai:a, anthropic:b.*ANTHROPIC_API_KEY"):
        ModelPool().get(["openai:a", "anthropic:b"])


def test_a_misspelt_model_in_a_list_is_an_error() -> None:
    with pytest.raises(ModelUnavailableError, match="unknown provider"):
        ModelPool().get(["tset:a", "test"])


def test_the_same_list_is_one_model() -> None:
    pool = ModelPool()
    pool.get("test")
    both = ["test", "ollama:a"]
    assert isinstance(pool.get(both), FallbackModel)
    assert pool.get(both) is pool.get(both)


def test_a_registered_prefix_uses_its_factory_until_it_is_replaced() -> None:
    register_model_factory("echo", lambda name: TestModel(custom_output_text=name))
    pool = ModelPool()
    assert say(pool, "echo:first") == "first"
    register_model_factory("echo", lambda name: TestModel(custom_output_text=name.upper()))
    assert say(pool, "echo:second") == "SECOND"
    assert say(pool, "echo:first") == "FIRST"


@each_row("prefix", ["openai", "voyageai", "local", "script", "test", "grok", "a:b", ""])
def test_a_prefix_that_is_taken_or_malformed_is_refused(prefix: str) -> None:
    with pytest.raises(UsageError):
        register_model_factory(prefix, lambda _: TestModel())


@pytest.mark.parametrize("factory", [lambda _: 1 / 0, lambda _: "model"])
def test_a_factory_that_fails_is_a_typed_error(factory: Any) -> None:
    register_model_factory("broken", factory)
    with pytest.raises(ModelUnavailableError, match="the factory of the model 'broken:x'"):
        ModelPool().get("broken:x")


def test_resolving_returns_the_same_model_again_and_passes_models_through() -> None:
    assert resolve_model("test") is resolve_model("test")
    model = TestModel()
    assert resolve_model(model) is model
