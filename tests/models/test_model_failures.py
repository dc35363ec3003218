"""Failed requests become typed errors that name the model, agent, file and variable."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.test import TestModel

from llm_do import Project, RunResult, Runtime
from llm_do.errors import LlmDoError, ModelUnavailableError, ProviderError
from llm_do.models import ModelPool, explain_failure, is_transient, register_model_factory
from tests.models.asking import say
from tests.support.openai_server import serve
from tests.support.tables import each_row


def failure_of(turn: dict[str, Any], name: str = "openai-chat:gpt-test") -> LlmDoError:
    with serve({"gpt-test": [turn]}) as (url, _), pytest.raises(ModelAPIError) as raised:
        say(ModelPool(), name, settings={"base_url": url})
    return explain_failure(raised.value, name, agent="main", file="main.agent")


def test_an_unknown_model_is_reported_in_one_line() -> None:
    error = failure_of({"text": "x"}, "openai-chat:absent")
    assert isinstance(error, ModelUnavailableError)
    assert "there is no model 'openai-chat:absent' for agent 'main'" in error.message
    assert error.file == "main.agent"


def test_an_error_for_a_rejected_key_names_the_variable() -> None:
    error = failure_of({"status": 401, "times": 9, "body": {"error": {"message": "bad\nkey"}}})
    assert isinstance(error, ModelUnavailableError)
    assert error.message.endswith("refused the key: HTTP 401: bad key")
    assert error.hint == "check OPENAI_API_KEY"


def test_an_error_calls_the_model_by_its_requested_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "answers.yaml").write_text("- text: x", encoding="utf-8")
    register_model_factory("named", lambda _: TestModel())
    pool = ModelPool()
    names = ["openai:a", "openai-chat:a", "named:b"]
    assert [pool.name_of(pool.get(name)) for name in names] == names
    assert pool.name_of(pool.get(f"script:{tmp_path / 'answers.yaml'}")) == "script:answers.yaml"
    assert pool.name_of(TestModel()) == "test"


def test_a_failed_request_carries_its_status() -> None:
    error = failure_of({"status": 500, "times": 9})
    assert isinstance(error, ProviderError)
    assert error.status_code == 500


def test_a_broken_connection_is_a_transient_failure() -> None:
    with serve({"gpt-test": [{"cut": True, "times": 9}]}) as (url, _), pytest.raises(ModelAPIError) as raised:
        say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url})
    assert is_transient(raised.value)


def test_a_stream_that_ends_without_a_finish_reason_is_a_transient_failure() -> None:
    async def stream(url: str) -> None:
        pool = ModelPool()
        try:
            async with Agent(pool.get("openai-chat:gpt-test", settings={"base_url": url})).run_stream("Hi") as answer:
                await answer.get_output()
        finally:
            await pool.aclose()

    with serve({"gpt-test": [{"cut": "quietly"}]}) as (url, _), pytest.raises(ModelAPIError) as raised:
        asyncio.run(stream(url))
    assert is_transient(raised.value)


@each_row("status, passing", [(429, True), (500, True), (503, True), (408, True), (400, False)])
def test_which_failures_are_transient(status: int, passing: bool) -> None:
    turn = {"status": status, "times": 9, "retry_after": 2}
    with serve({"gpt-test": [turn]}) as (url, _), pytest.raises(ModelAPIError) as raised:
        say(ModelPool(), "openai-chat:gpt-test", settings={"base_url": url})
    assert is_transient(raised.value) is passing
    assert raised.value.retry_after == 2


def test_an_llm_do_error_is_not_converted_again() -> None:
    error = ProviderError("it failed")
    assert explain_failure(error, "openai:a") is error


def test_failures_of_every_model_of_a_list_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"a": [{"status": 500, "times": 9}], "b": [{"status": 400, "times": 9}]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(ExceptionGroup) as raised:
            say(ModelPool(), ["openai-chat:a", "openai-chat:b"])
    names = ["openai-chat:a", "openai-chat:b"]
    error = explain_failure(raised.value, names, agent="main", file="main.agent")
    assert "'openai-chat:a' for agent 'main' failed: HTTP 500" in error.message
    assert "'openai-chat:b' for agent 'main' failed: HTTP 400" in error.message
    assert error.file == "main.agent"


async def ended(runtime: Runtime) -> RunResult:
    try:
        return await runtime.execute("Hi")
    finally:
        await runtime.aclose()


@pytest.mark.parametrize(
    ("model", "says", "hint"),
    [
        (
            "openai-chat:closed",
            "the provider of 'openai-chat:closed' for agent 'main' refused the key",
            "OPENAI_API_KEY",
        ),
        ("openai-chat:absent", "there is no model 'openai-chat:absent' for agent 'main'", "another model"),
        ("[openai-chat:closed, openai-chat:absent]", "'openai-chat:closed' for agent 'main' refused the key", ""),
    ],
)
def test_a_runs_failure_names_model_agent_file_and_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, says: str, hint: str
) -> None:
    (tmp_path / "main.agent").write_text(f"---\nname: main\nmodel: {model}\n---\nHi.\n", encoding="utf-8")
    manifest = '{"version": 1, "agent_files": ["*.agent"], "entry": {"agent": "main"}, "record": false}'
    (tmp_path / "project.json").write_text(manifest, encoding="utf-8")
    with serve({"closed": [{"status": 401, "times": 9}]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        error = asyncio.run(ended(Runtime(Project.load(tmp_path)))).error
    assert isinstance(error, LlmDoError)
    assert says in error.message
    assert hint in (error.hint or "")
    assert error.file == "main.agent"
