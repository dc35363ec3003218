"""The service example as it is used: a server process, clients, answers by a second request, one that leaves."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
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


async def events_of(response: Any) -> AsyncIterator[tuple[str, Any]]:
    """The events of a stream: name and data."""
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


async def until(events: AsyncIterator[tuple[str, Any]], expected: str) -> tuple[list[Any], Any]:
    """Read up to an event of that name; return the events before it and its data."""
    before: list[Any] = []
    async for name, data in events:
        if name == expected:
            return before, data
        before.append(data)
    raise AssertionError(f"the stream ended without {expected}: {before}")


def client(server: str) -> Any:
    return httpx.AsyncClient(base_url=server, timeout=120, trust_env=False)


@pytest.mark.slow
def test_a_run_streams_its_events_and_is_answered_by_a_second_request(server: str) -> None:
    async def main() -> None:
        async with client(server) as http, http.stream("POST", "/runs", json={"input": "Hello"}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = events_of(response)
            before, question = await until(events, "question")
            assert (question["tool"], question["agent"]) == ("send_letter", "letter/2/clerk")
            assert question["args"] == {"text": "Dear neighbours, Hello Kindly, the house"}
            assert before[-1]["type"] == "approval_requested"

            wrong = await http.post("/answers/q1", json={"answer": "once"})
            nonsense = await http.post(f"/answers/{question['id']}", json={"answer": "maybe"})
            lasting = await http.post(f"/answers/{question['id']}", json={"answer": "always"})
            assert (wrong.status_code, nonsense.status_code, lasting.status_code) == (404, 422, 422)
            answered = await http.post(f"/answers/{question['id']}", json={"answer": "once"})
            assert answered.status_code == 204

            after, ended = await until(events, "run_finished")
            assert ended["output"] == "Done: a letter of 6 words is in the post"
            received = [*before, *after, ended]
            assert [item["seq"] for item in received] == list(range(len(received)))
            assert [item async for item in events] == []
            late = await http.post(f"/answers/{question['id']}", json={"answer": "once"})
            assert late.status_code == 404

    asyncio.run(main())


@pytest.mark.slow
def test_a_client_that_disconnects_ends_only_its_own_run(server: str) -> None:
    async def main() -> None:
        async with client(server) as http:
            async with http.stream("POST", "/runs", json={"input": "stays"}) as stays:
                staying = events_of(stays)
                _, mine = await until(staying, "question")
                async with client(server) as other, other.stream("POST", "/runs", json={"input": "goes"}) as goes:
                    # Its question is put although the first one is still open: neither keeps the other waiting.
                    _, theirs = await until(events_of(goes), "question")
                    assert len((await http.get("/runs")).json()["runs"]) == 2
                async with asyncio.timeout(120):
                    while len((await http.get("/runs")).json()["runs"]) != 1:
                        pass
                gone = await http.post(f"/answers/{theirs['id']}", json={"answer": "once"})
                assert gone.status_code == 404

                await http.post(f"/answers/{mine['id']}", json={"answer": "deny", "note": "not today"})
                _, ended = await until(staying, "run_finished")
                assert "not today" in ended["output"]
            async with asyncio.timeout(120):
                while (await http.get("/runs")).json()["runs"]:
                    pass

    asyncio.run(main())


@pytest.mark.slow
def test_an_invalid_request_is_refused_before_anything_runs(server: str) -> None:
    async def main() -> None:
        async with client(server) as http, http.stream("POST", "/runs", content=b"not JSON") as response:
            assert [name async for name, _ in events_of(response)] == ["refused"]

    asyncio.run(main())


def test_the_notebook_runs_inside_a_running_event_loop(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = compile((folder / "notebook.py").read_text(encoding="utf-8"), "notebook.py", "exec")

    async def kernel() -> None:
        exec(code, {"__file__": str(folder / "notebook.py")})  # noqa: S102

    asyncio.run(kernel())

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "denied ['send_letter']"
    assert lines[2] == "Done: a letter of 9 words is in the post"
    assert lines[-1] == "assistant: Done: a letter of 9 words is in the post"
