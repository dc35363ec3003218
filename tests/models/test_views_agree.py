"""One run ends alike however it is looked at, whatever its provider answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, Project
from tests.models.odd_chat_answers import ROWS, Row
from tests.support.raw_server import serve_raw
from tests.support.runs import project_of
from tests.support.views import VIEWS, Ending, plain, recorded, run_sync, stream, terminal, text_subscriber

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


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_raw({name: row.answers for name, row in ROWS.items()}) as (url, _):
        yield url


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def check(ending: Ending, row: Row) -> None:
    assert ending.status == row.status, ending
    assert ending.output in (row.output, row.partial or row.output), ending
    assert row.error in ending.error, ending
    assert row.hint in ending.hint, ending
    assert [True] * (row.warning is not None) == [(row.warning or "") in said for said in ending.warnings], ending
    assert row.requests in (None, ending.requests), ending


def run(server: str, folder: Path, model: Any, view: Callable[[Project, Path], Ending]) -> Ending:
    spec = AgentSpec("main", model=model, tools=[add, ping], model_settings={"base_url": f"{server}/v1"})
    return view(project_of([spec], root=folder), folder)


@pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ROWS)
def test_an_answer_ends_a_run_alike_whole_and_streamed(
    server: str, tmp_path: Path, name: str, view: Callable[[Project, Path], Ending]
) -> None:
    check(run(server, tmp_path, f"openai-chat:{name}", view), ROWS[name])


@pytest.mark.parametrize("view", [text_subscriber, terminal, recorded, run_sync], ids=lambda view: view.__name__)
@pytest.mark.parametrize("name", IN_EVERY_VIEW)
def test_an_answer_ends_a_run_alike_in_every_view(
    server: str, tmp_path: Path, name: str, view: Callable[[Project, Path], Ending]
) -> None:
    check(run(server, tmp_path, f"openai-chat:{name}", view), ROWS[name])


@pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.status != "completed" and row.falls_back])
def test_the_next_model_of_a_list_answers_when_one_fails(
    server: str, tmp_path: Path, name: str, view: Callable[[Project, Path], Ending]
) -> None:
    ending = run(server, tmp_path, [f"openai-chat:{name}", "openai-chat:an ordinary answer"], view)

    assert (ending.status, ending.output, ending.requests) == ("completed", "Yes", 2), ending


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_list_falls_back_in_every_view_when_a_stream_is_cut(
    server: str, tmp_path: Path, view: Callable[[Project, Path], Ending]
) -> None:
    ending = run(server, tmp_path, ["openai-chat:a cut stream", "openai-chat:an ordinary answer"], view)

    assert (ending.status, ending.output) == ("completed", "Yes"), ending


@pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])
def test_a_list_of_which_all_fail_says_what_each_said(
    server: str, tmp_path: Path, view: Callable[[Project, Path], Ending]
) -> None:
    ending = run(server, tmp_path, ["openai-chat:HTTP 400, detail", "openai-chat:HTTP 200, error"], view)

    assert ending.status == "provider_failed"
    assert "'openai-chat:HTTP 400, detail' for agent 'main' failed: HTTP 400: no GPU is free" in ending.error
    assert "'openai-chat:HTTP 200, error' for agent 'main' failed: no GPU is free" in ending.error
    assert ending.requests == 8
