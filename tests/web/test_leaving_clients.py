"""The service of docs/fastapi.md, on a real server: a client that goes away ends its run."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.runs import project_of

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

PAGE = Path(__file__).parents[2] / "docs/fastapi.md"


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve on the loopback interface until the block ends."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=10))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def documented_app() -> types.ModuleType:
    """The module `desk/app.py` of the page."""
    found = re.search(r"```python desk/app\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    module = types.ModuleType("documented_app")
    exec(compile(found[1], "desk/app.py", "exec"), module.__dict__)  # noqa: S102
    return module


@pytest.mark.parametrize("path", ["/ask", "/stream"])
def test_a_client_that_goes_away_ends_its_run(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGE.parents[1])
    begun, ended, ends = threading.Event(), threading.Event(), []

    async def main(input: Any, ctx: Any) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            ends.append(type(error).__name__)
            raise
        finally:
            ended.set()
        return "never"

    module = documented_app()
    module.__dict__["runtime"] = module.__dict__["Runtime"](project_of([], main))

    with served(module.__dict__["app"]) as url:
        body = b'{"text": "Go"}'
        client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
        client.sendall(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        assert begun.wait(60)
        client.close()
        assert ended.wait(60)
        assert ends == ["CancelledError"]
        answered = httpx.post(f"{url}/ask", json={"text": ""}, timeout=60)

    assert answered.status_code == 422
