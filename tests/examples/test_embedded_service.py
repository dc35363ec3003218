"""The service example as it is used: a server process, two users, and answers by another request."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).parents[2]
IGNORED = shutil.ignore_patterns("__pycache__", ".llm-do")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example."""
    return Path(shutil.copytree(ROOT / "examples" / "embedded_service", tmp_path / "service", ignore=IGNORED))


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """The address of a server process that runs the example."""
    listening = socket.create_server(("127.0.0.1", 0))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("LLM_DO_MODEL", None)
    environment["SERVICE_KEYS"] = "ann=ann-key,bob=bob-key"
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "service:app", "--fd", str(listening.fileno()), "--log-level", "warning"],
        cwd=folder,
        env=environment,
        pass_fds=[listening.fileno()],
    )
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()
        process.terminate()
        assert process.wait(120) in (0, -15)


def client(server: str, key: str) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=server, timeout=120, trust_env=False, headers=headers)


def wait_for(look: Callable[[], Any]) -> Any:
    """Wait until something is there, and return it."""
    until = time.monotonic() + 120
    while not (found := look()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.05)
    return found


def events_of(client: Any, run: str) -> list[dict[str, Any]]:
    """The events of a run up to its end."""
    found: list[dict[str, Any]] = []
    with client.stream("GET", f"/api/runs/{run}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        found += [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    return found[:-1]


@pytest.mark.slow
def test_a_run_streams_its_events_and_is_answered_by_another_request(server: str) -> None:
    with client(server, "ann-key") as ann, client(server, "bob-key") as bob:
        wait_for(lambda: _answers(ann))
        run = ann.post("/api/runs", json={"input": "Hello"}).json()["run_id"]
        question = wait_for(lambda: ann.get(f"/api/runs/{run}/questions").json()["questions"])[0]
        assert (question["tool"], question["agent"]) == ("send_letter", "letter/2/clerk")
        assert question["args"] == {"text": "Dear neighbours, Hello Kindly, the house"}

        place = f"/api/runs/{run}/questions/{question['id']}"
        assert bob.post(place, json={"answer": "once", "digest": question["digest"]}).status_code == 404
        assert bob.get("/api/runs").json()["runs"] == []
        assert ann.post(place, json={"answer": "always", "digest": question["digest"]}).status_code == 422
        assert ann.post(place, json={"answer": "once", "digest": question["digest"]}).status_code == 200

        events = events_of(ann, run)
        assert [each["seq"] for each in events] == list(range(len(events)))
        assert events[-1]["output"] == "Done: a letter of 6 words is in the post"
        assert {each["user_id"] for each in ann.get("/api/runs").json()["runs"]} == {"ann"}


def _answers(http: Any) -> bool:
    try:
        return http.get("/api/projects").status_code == 200
    except httpx.TransportError:
        return False


def test_keys_are_read_with_their_users(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_KEYS", "ann=one, bob=two=2,,nothing")
    names: dict[str, Any] = {"__file__": str(folder / "service.py"), "__name__": "service"}
    exec(compile((folder / "service.py").read_text(encoding="utf-8"), "service.py", "exec"), names)  # noqa: S102

    assert names["KEYS"] == {"one": "ann", "two=2": "bob"}
    assert names["app"].key == "one"


def test_the_notebook_runs_inside_a_running_event_loop(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = compile((folder / "notebook.py").read_text(encoding="utf-8"), "notebook.py", "exec")

    async def kernel() -> None:
        exec(code, {"__file__": str(folder / "notebook.py")})  # noqa: S102

    asyncio.run(kernel())

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "denied ['send_letter']"
    assert lines[2] == "Done: a letter of 9 words is in the post"
    assert lines[-1] == "assistant: Done: a letter of 9 words is in the post"
