"""A real server of projects on loopback, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

KEY, ANN = "the key of the machine", "ann's own key"

FILES = {
    "project.json": """{"version": 1, "name": "desk", "entry": {"agent": "clerk"}, "agent_files": ["*.agent"],
 "python_files": ["tools.py"], "model": "script:answers.yaml"}""",
    "clerk.agent": "---\nname: clerk\ntools: [send]\n---\nSend letters.\n",
    "shop.agent": "---\nname: shop\nmodel: script:shop.yaml\n---\nAnswer.\n",
    "asker.agent": "---\nname: asker\nmodel: script:asker.yaml\ntoolsets: [ask_user]\n---\nAsk.\n",
    "answers.yaml": "- tools: [{name: send, args: {to: ann}}]\n- text: 'The letter: {tool}.'\n",
    "shop.yaml": "- text: Tea is 4.20.\n- text: Coffee is 5.00.\n",
    "asker.yaml": "- tools: [{name: ask_user, args: {question: Which colour?}}]\n- text: 'So {tool}.'\n",
    "tools.py": 'def send(to: str) -> str:\n    """Send a letter."""\n    return f"sent to {to}"\n\n\nTOOLS = [send]\n',
}


def write_desk(root: Path) -> Path:
    """Write a project whose entry sends a letter, for which it needs approval."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


class ServeProcess:
    """`llm-do serve` in a process of its own, which has printed its address.

    Args:
        root: The project that it serves.
        program: What the interpreter runs.
    """

    def __init__(self, root: Path, *program: str) -> None:
        words = [sys.executable, *(program or ("-m", "llm_do")), "serve", str(root), "--port", "0", "--no-browser"]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._process: Any = subprocess.Popen(words, **pipes, text=True)
        self.base, _, self.key = self._process.stdout.readline().strip().partition("/#key=")
        self.place = ("127.0.0.1", int(self.base.rpartition(":")[2]))

    def interrupt(self) -> None:
        """Let it end."""
        self._process.send_signal(signal.SIGINT)

    def wait_for_end(self) -> tuple[int, str, str]:
        """Return its exit code and what it printed after its address, on each stream."""
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, out, err


QUIET_END = (0, "", "serving desk; end it with Ctrl-C\n")
"""How the process of a desk ends when it is interrupted."""


@dataclass
class Served:
    """A server and a client of it."""

    url: str
    service: Any
    http: Any

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def start(self, **body: Any) -> str:
        """Begin a run and return its id."""
        answer = self.http.post("/api/runs", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["run_id"]

    def question(self, run_id: str) -> dict[str, Any]:
        """Wait for a run's question."""
        found = wait_for(lambda: self.http.get(f"/api/runs/{run_id}/questions").json()["questions"])
        return found[0]

    def answer(self, run_id: str, question: dict[str, Any], answer: str, **more: Any) -> Any:
        body = {"answer": answer, "digest": question["digest"], **more}
        return self.http.post(f"/api/runs/{run_id}/questions/{question['id']}", json=body)

    def ended(self, run_id: str) -> dict[str, Any]:
        """Wait for a run's end and return its document."""
        wait_for(lambda: self.http.get(f"/api/runs/{run_id}").json()["run"]["finished"])
        return self.http.get(f"/api/runs/{run_id}").json()

    def stream(
        self, run_id: str, *, headers: dict[str, str] | None = None, most: int = 1000, **query: Any
    ) -> list[tuple[str, Any]]:
        """The server-sent events of a run: id or name, and data."""
        found: list[tuple[str, Any]] = []
        with self.http.stream("GET", f"/api/runs/{run_id}/events", headers=headers, params=query) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            name = ""
            for text in answer.iter_lines():
                key, _, value = text.partition(": ")
                if key in ("id", "event"):
                    name = value
                elif key == "data":
                    found.append((name, json.loads(value)))
                    if len(found) >= most:
                        break
        return found


def wait_for(look: Any, seconds: float = 30.0) -> Any:
    """Wait until something is there, and return it."""
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)
    return found


@contextmanager
def serving(roots: Sequence[Path], **options: Any) -> Iterator[Served]:
    """Serve projects."""
    from llm_do.web.service import Service

    service = Service([Project.load(root) for root in roots], **{"keys": {KEY: None, ANN: "ann"}, **options})
    listening = socket.create_server(("127.0.0.1", 0))
    settings = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none", "lifespan": "on"}
    server = uvicorn.Server(uvicorn.Config(service, timeout_graceful_shutdown=2, **settings))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        wait_for(lambda: server.started)
        with httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as http:
            yield Served(url, service, http)
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive()
