"""One run ends alike however it is looked at, whatever its provider answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm_do import AgentSpec, Project, Runtime
from tests.models import odd_chat_answers, odd_google, odd_messages, odd_responses
from tests.models.odd_chat_answers import Row
from tests.support.raw_server import serve_raw
from tests.support.runs import project_of
from tests.support.tables import sampled
from tests.support.views import (
    VIEWS,
    Ending,
    plain,
    recorded,
    run_sync,
    runtime_for,
    stream,
    streamed,
    terminal,
    text_subscriber,
)

IN_EVERY_VIEW = (
    "null id, model, usage and created",
    "a call without a name",
    "a name with a dot",
    "a name of 70 characters",
    "calls that share a number",
    "thinking in the text",
    "an unknown finish reason",
    "filtered half-way",
    "calls from a server that can't stream",
    "HTTP 400, list of errors",
    "HTTP 200, error as an event",
    "a cut stream",
    "refusal",
    "control characters in an error",
)
"""One answer of each kind."""


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def ping() -> str:
    """Ping."""
    return "pong"


TABLES = {
    "openai-chat": odd_chat_answers.ROWS,
    "openai": odd_responses.ROWS,
    "anthropic": odd_messages.ROWS,
    "google": odd_google.ROWS,
}
"""Odd answers by the prefix of the models that give them."""

ROWS = TABLES["openai-chat"]
EVERY_ROW = [(prefix, name) for prefix, rows in TABLES.items() for name in rows]
AGENTS = {row: f"a{number}" for number, row in enumerate(EVERY_ROW)}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    answers = {f"{prefix} {name}": row.answers for prefix, rows in TABLES.items() for name, row in rows.items()}
    with serve_raw(answers) as (url, _):
        yield url


def set_environment(environ: pytest.MonkeyPatch, url: str) -> None:
    environ.setenv("OPENAI_API_KEY", "sk-test")
    environ.setenv("OPENAI_BASE_URL", f"{url}/v1")
    environ.setenv("ANTHROPIC_API_KEY", "sk-test")
    environ.setenv("ANTHROPIC_BASE_URL", url)
    environ.setenv("GOOGLE_API_KEY", "test-key")
    environ.setenv("GOOGLE_GEMINI_BASE_URL", url)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    set_environment(monkeypatch, server)


@pytest.fixture(scope="module")
def runtime(server: str) -> Iterator[tuple[asyncio.Runner, Runtime]]:
    """One runtime with an agent for each row, in one loop: to start one for each takes most of the time."""
    specs = [AgentSpec(agent, model=model(name, prefix), tools=[add, ping]) for (prefix, name), agent in AGENTS.items()]
    with pytest.MonkeyPatch.context() as environ, asyncio.Runner() as runner:
        set_environment(environ, server)
        shared = runtime_for(project_of(specs, max_retries=1))
        yield runner, shared
        runner.run(shared.aclose())


def check(ending: Ending, row: Row) -> None:
    assert ending.status == row.status, ending
    assert ending.output in (row.output, row.partial or row.output), ending
    assert row.error in ending.error, ending
    assert row.hint in ending.hint, ending
    assert [True] * (row.warning is not None) == [(row.warning or "") in warning for warning in ending.warnings], ending
    assert row.requests in (None, ending.requests), ending


def run(folder: Path, view: Callable[[Project, Path], Ending], *models: str) -> Ending:
    named = models[0] if len(models) == 1 else list(models)
    return view(project_of([AgentSpec("main", model=named, tools=[add, ping])], root=folder, max_retries=1), folder)


def model(name: str, prefix: str = "openai-chat") -> str:
    return f"{prefix}:{prefix} {name}"


@pytest.mark.sample(24)
@pytest.mark.parametrize("view", ["whole", "streamed"])
@pytest.mark.parametrize(("prefix", "name"), sampled(EVERY_ROW))
def test_an_answer_ends_a_run_alike_whole_and_streamed(
    runtime: tuple[asyncio.Runner, Runtime], prefix: str, name: str, view: str
) -> None:
    runner, shared = runtime
    entry = AGENTS[prefix, name]
    result = runner.run(shared.execute("go", entry=entry) if view == "whole" else streamed(shared, entry=entry))

    check(Ending.of(result), TABLES[prefix][name])


@pytest.mark.sample(4)
@pytest.mark.parametrize("view", [text_subscriber, terminal, recorded, run_sync], ids=lambda view: view.__name__)
@pytest.mark.parametrize("name", sampled(IN_EVERY_VIEW))
def test_an_answer_ends_a_run_alike_in_every_view(
    tmp_path: Path, name: str, view: Callable[[Project, Path], Ending]
) -> None:
    check(run(tmp_path, view, model(name)), ROWS[name])


@pytest.mark.sample(4)
@pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "name", sampled([name for name, row in ROWS.items() if row.status != "completed" and row.falls_back])
)
def test_the_next_model_of_a_list_answers_when_one_fails(
    tmp_path: Path, name: str, view: Callable[[Project, Path], Ending]
) -> None:
    ending = run(tmp_path, view, model(name), model("an ordinary answer"))

    assert (ending.status, ending.output, ending.requests) == ("completed", "Yes", 2), ending


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_list_falls_back_in_every_view_when_a_stream_is_cut(
    tmp_path: Path, view: Callable[[Project, Path], Ending]
) -> None:
    ending = run(tmp_path, view, model("a cut stream"), model("an ordinary answer", "anthropic"))

    assert (ending.status, ending.output) == ("completed", "Yes"), ending


@pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])
def test_a_list_of_which_all_fail_says_what_each_said(tmp_path: Path, view: Callable[[Project, Path], Ending]) -> None:
    ending = run(tmp_path, view, model("HTTP 400, detail"), model("HTTP 200, error"))

    assert ending.status == "provider_failed"
    assert f"{model('HTTP 400, detail')!r} for agent 'main' failed: HTTP 400: no GPU is free" in ending.error
    assert f"{model('HTTP 200, error')!r} for agent 'main' failed: no GPU is free" in ending.error
    assert ending.requests == 4
