"""Model requests over real connections: transient failures are retried, others raise typed errors."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import httpx
import pytest
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelQuotaExceededError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from llm_do import AgentSpec, HookPoint, ModelError, ProviderError, RunResult, Runtime, RuntimeConfig
from llm_do.errors import ModelUnavailableError
from tests.support.history import strict
from tests.support.openai_server import Request, serve
from tests.support.runs import Heard, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def over_http(
    turns: list[dict[str, Any]],
    *,
    streaming: bool,
    retry_delay: float = 0.0,
    model: str = "openai-chat:m",
    **fields: Any,
) -> tuple[RunResult, list[Request], Heard]:
    """Run one agent against a local server that answers with these turns."""
    with serve({"m": turns}) as (url, log):
        spec = AgentSpec("main", model=model, tools=[add], model_settings={"base_url": url})
        project = project_of([spec], **fields)
        runtime = Runtime(project, config=RuntimeConfig.of(project, approvals="approve_all", retry_delay=retry_delay))
        ear = heard(runtime)

        async def once() -> RunResult:
            stop = runtime.on("text", lambda event: None) if streaming else lambda: None
            try:
                return await runtime.execute("go")
            finally:
                stop()
                await runtime.aclose()

        return asyncio.run(once()), log, ear


both = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@both
def test_transient_failures_are_retried_until_the_answer_comes(streaming: bool) -> None:
    turns = [
        {"status": 429, "times": 1},
        {"tools": [{"name": "add", "args": {"a": 1, "b": 2}}]},
        {"status": 503, "times": 1},
        {"status": 500, "times": 1},
        {"cut": True, "times": 1},
        {"text": "all the words of it", "chunks": 4, "usage": [7, 5]},
    ]
    result, log, ear = over_http(turns, streaming=streaming)

    assert (result.status, result.output) == ("completed", "all the words of it")
    assert len(log) == result.usage.requests == 6
    assert result.steps == 2
    assert [event.attempt for event in ear.of("retry")] == [1, 1, 2, 3]
    assert ear.types.count("model_request") == ear.types.count("usage") == 6
    assert [event.attempt for event in ear.of("usage")] == [1, 2, 1, 2, 3, 4]
    assert all(request.body["stream"] is streaming for request in log)
    assert "".join(event.text for event in ear.of("text_done")) == "all the words of it"
    strict(result.messages)


@both
def test_a_truncated_response_is_retried_and_never_taken_as_complete(streaming: bool) -> None:
    result, log, _ = over_http([{"cut": True, "times": 2}, {"text": "whole", "chunks": 3}], streaming=streaming)

    assert result.output == "whole"
    assert len(log) == 3


@both
def test_the_providers_retry_after_is_honoured(streaming: bool) -> None:
    started = time.perf_counter()
    result, _, ear = over_http(
        [{"status": 429, "times": 1, "retry_after": 0.2}, {"text": "x"}], streaming=streaming, retry_delay=30
    )

    assert result.output == "x"
    assert [event.delay for event in ear.of("retry")] == [0.2]
    assert 0.2 <= time.perf_counter() - started < 10


@both
@pytest.mark.parametrize("status", [429, 503])
def test_exhausted_retries_raise_the_providers_error(status: int, streaming: bool) -> None:
    result, log, ear = over_http([{"status": status, "times": 99}], streaming=streaming, max_retries=2)

    assert isinstance(result.error, ProviderError)
    assert result.error.status_code == status
    assert (result.status, result.exit_code) == ("provider_failed", 7)
    assert result.error.agent_path == "main"
    assert len(log) == result.usage.requests == 3
    assert result.steps == 0
    assert ear.types.count("retry") == 2
    strict(result.error.messages)


@both
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_bad_request_is_never_retried(status: int, streaming: bool) -> None:
    result, log, ear = over_http([{"status": status, "times": 99}], streaming=streaming)

    assert isinstance(result.error, ModelError)
    assert result.status == "provider_failed"
    assert len(log) == 1
    assert "retry" not in ear.types
    if status in (401, 404):
        assert isinstance(result.error, ModelUnavailableError)


def test_retries_can_be_disabled() -> None:
    _, log, _ = over_http([{"status": 503, "times": 99}], streaming=False, max_retries=0)

    assert len(log) == 1


def test_a_refused_connection_is_retried() -> None:
    with serve({"m": []}) as (url, _):
        pass
    spec = AgentSpec("main", model="openai-chat:m", model_settings={"base_url": url})
    project = project_of([spec], max_retries=2)
    runtime = Runtime(project, config=RuntimeConfig.of(project, retry_delay=0.0))
    ear = heard(runtime)
    result = carry_out(runtime)

    assert isinstance(result.error, ProviderError)
    assert ear.types.count("retry") == 2
    assert result.usage.requests == 3


@both
def test_each_attempt_is_counted_against_the_budget(streaming: bool) -> None:
    result, log, _ = over_http([{"status": 503, "times": 99}], streaming=streaming, budget={"requests": 2})

    assert result.status == "limited"
    assert len(log) == 2


@both
def test_unset_settings_are_not_sent(streaming: bool) -> None:
    _, log, _ = over_http([{"text": "x"}], streaming=streaming)

    sent = set(log[0].body) - {"model", "messages", "tools", "stream", "stream_options", "tool_choice"}
    assert sent == set()


def test_settings_are_sent() -> None:
    with serve({"m": [{"text": "x"}]}) as (url, log):
        spec = AgentSpec(
            "main", model="openai-chat:m", model_settings={"base_url": url, "top_p": 0.5}, temperature=0.0, max_tokens=7
        )
        runtime = Runtime(project_of([spec], model_settings={"seed": 3, "top_p": 0.9}))
        carry_out(runtime)

    body = log[0].body
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.0, 0.5, 3)
    assert 7 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert "base_url" not in body


def test_a_history_that_ended_early_is_valid_for_a_real_provider() -> None:
    turns = [
        {"tools": [{"name": "add", "args": {"a": 1, "b": 2}}, {"name": "add", "args": {"a": 3, "b": 4}}]},
        {"text": "after"},
    ]
    with serve({"m": turns}) as (url, log):
        spec = AgentSpec("main", model="openai-chat:m", tools=[add], model_settings={"base_url": url}, max_steps=1)
        runtime = Runtime(project_of([spec]), approvals="approve_all")
        first = carry_out(runtime)
        spec.max_steps = None
        second = carry_out(runtime, "and now?", messages=first.error.messages)

    assert first.status == "limited"
    assert second.output == "after"
    roles = [message["role"] for message in log[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user"]


def own_model(error: Exception, times: int, *, streaming: bool) -> tuple[RunResult, Heard]:
    """Run an agent on a custom model that fails this many times, then answers."""
    project = project_of([agent("main", script(*[error] * times, "x"))], max_retries=2)
    runtime = Runtime(project, config=RuntimeConfig.of(project, retry_delay=0.0))
    ear = heard(runtime)
    stop = runtime.on("text", lambda event: None) if streaming else lambda: None
    result = carry_out(runtime)
    stop()
    return result, ear


def broken_off() -> list[Exception]:
    request = httpx.Request("POST", "http://model.example")
    return [
        httpx.RemoteProtocolError("peer closed connection without sending complete message body", request=request),
        httpx.ReadError("", request=request),
        httpx.ConnectTimeout("timed out", request=request),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError(),
        ModelConnectionError("m", "gone"),
    ]


@both
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_transient_failures_of_a_custom_model_are_retried(status: int, streaming: bool) -> None:
    result, ear = own_model(ModelHTTPError(status, "mine", None), 2, streaming=streaming)

    assert result.output == "x"
    assert [event.attempt for event in ear.of("retry")] == [1, 2]
    assert result.usage.requests == 3


@both
@pytest.mark.parametrize("error", broken_off(), ids=lambda error: type(error).__name__)
def test_a_broken_connection_in_a_custom_model_is_retried(error: Exception, streaming: bool) -> None:
    result, ear = own_model(error, 1, streaming=streaming)

    assert result.output == "x"
    assert len(ear.of("retry")) == 1


def test_a_custom_models_retry_after_is_honoured() -> None:
    error = ModelHTTPError(429, "mine", None, headers={"Retry-After": "0.05"})
    _, ear = own_model(error, 1, streaming=False)

    assert [event.delay for event in ear.of("retry")] == [0.05]


def test_a_custom_model_that_keeps_failing_ends_the_run_with_its_status() -> None:
    result, ear = own_model(ModelHTTPError(503, "mine", {"message": "down"}), 9, streaming=False)

    assert isinstance(result.error, ProviderError)
    assert result.error.status_code == 503
    assert len(ear.of("retry")) == 2


@both
@pytest.mark.parametrize(
    "error",
    [
        ModelHTTPError(400, "mine", None),
        ModelHTTPError(401, "mine", None),
        ModelHTTPError(422, "mine", None),
        ModelHTTPError.for_category(ModelQuotaExceededError, status_code=429, model_name="mine"),
        ModelQuotaExceededError("mine", "out of credit"),
        ValueError("no"),
    ],
    ids=repr,
)
def test_other_failures_of_a_custom_model_are_not_retried(error: Exception, streaming: bool) -> None:
    result, ear = own_model(error, 1, streaming=streaming)

    assert result.status == "provider_failed"
    assert ear.of("retry") == []


def test_a_hook_that_fails_before_a_request_is_not_retried() -> None:
    calls: list[int] = []

    def broken(agent: Any, messages: Any) -> None:
        calls.append(1)
        raise ModelHTTPError(503, "mine", None)

    model = script("x")
    result = carry_out(runtime_of([agent("main", model, hooks=[(HookPoint.PRE_LLM_CALL, broken)])]))

    assert isinstance(result.error, ModelHTTPError)
    assert calls == [1]
    assert model.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("Yes", "the answer is a str, not a ModelResponse"),
        (ModelResponse([TextPart(cast("str", 7))]), "a text in the answer is an int"),
        (ModelResponse([call(cast("str", None))]), "the name of a tool call in the answer is null"),
        (ModelResponse([call("add", cast("Any", [1, 2]))]), "the arguments of a tool call in the answer are a list"),
    ],
)
def test_an_answer_of_another_type_is_the_models_failure_and_is_not_kept(answer: Any, words: str) -> None:
    class Own(TestModel):
        async def request(self, *args: Any, **options: Any) -> Any:
            return answer

    result = carry_out(runtime_of([agent("main", Own(), tools=[add])], max_retries=0))

    assert isinstance(result.error, ProviderError)
    assert words in result.error.message
    assert [message.kind for message in result.messages] in ([], ["request"])


def test_a_model_that_raises_is_a_provider_error() -> None:
    result = carry_out(
        runtime_of([agent("main", script(call("add", a=1, b=1), RuntimeError("gpu on fire")), tools=[add])])
    )

    assert isinstance(result.error, ProviderError)
    assert "gpu on fire" in result.error.message
    assert isinstance(result.error.__cause__, RuntimeError)
    strict(result.error.messages)


def test_a_run_that_ended_early_has_its_last_text_as_output() -> None:
    model = script([TextPart("thinking aloud"), call("add", a=1, b=1)], RuntimeError("gone"))
    result = carry_out(runtime_of([agent("main", model, tools=[add])]))

    assert result.output == "thinking aloud"


def test_text_of_a_retried_response_is_not_output() -> None:
    attempts = iter(range(9))

    async def streaming(messages: Any, info: Any) -> Any:
        if next(attempts) == 0:
            yield "half an ans"
            raise ModelConnectionError("m", "gone")
        yield {0: DeltaToolCall("add", '{"a": 1, "b": 1}', tool_call_id="c")}

    project = project_of([agent("main", FunctionModel(stream_function=streaming), tools=[add], max_steps=1)])
    runtime = Runtime(project, config=RuntimeConfig.of(project, approvals="approve_all", retry_delay=0.0))
    runtime.on("text", lambda event: None)
    result = carry_out(runtime)

    assert (result.status, result.output) == ("limited", None)


def test_a_missing_key_is_reported_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    result = carry_out(Runtime(project_of([AgentSpec("main", model="openai-chat:m")])))

    assert isinstance(result.error, ModelUnavailableError)
    assert "OPENAI_API_KEY" in f"{result.error.message} {result.error.hint}"
    assert result.status == "provider_failed"


def test_no_more_requests_are_in_flight_than_the_project_allows() -> None:
    flying = most = 0

    async def turn(messages: Any, info: Any) -> str:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        for _ in range(3):
            await asyncio.sleep(0)
        flying -= 1
        return "x"

    workers = [agent(f"w{n}", script(turn)) for n in range(8)]
    main = agent("main", script([call(worker.name, input="go") for worker in workers], "done"), toolsets=workers)
    result = carry_out(runtime_of([main, *workers], max_concurrency=2))

    assert result.output == "done"
    assert most == 2
