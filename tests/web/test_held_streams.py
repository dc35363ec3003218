"""Streams of events that no one reads, that are very many, or that are open when the server ends."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from llm_do.runtime.record.store import following
from llm_do.runtime.record.stored_records import Filter, Observation
from llm_do.threads import SqliteStore
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script
from tests.web.served import ANN, QUIET_END, Served, ServeProcess, uvicorn, wait_for, write_desk


def count(number: int) -> int:
    """Count."""
    return number


async def long_run(root: Path) -> str:
    """Record a run of about a hundred events, and return its id."""
    turns = [call("count", number=number) for number in range(25)]
    spec = agent("main", script(*turns, "Done."), tools=[count], max_steps=30)
    runtime = runtime_of([spec], root=root, options={"record": True})
    result = await runtime.execute("go")
    await runtime.aclose()
    assert result.status == "completed", result.errors
    return result.run_id


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_a_long_run_is_followed_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A stream that no one reads therefore holds one portion of it."""
    sizes: list[int] = []
    read = SqliteStore.observations

    async def observed(self: SqliteStore, filter: Filter, **options: Any) -> list[Observation]:
        found = await read(self, filter, **options)
        sizes.append(len(found))
        return found

    async def follow() -> tuple[list[int], list[int]]:
        run_id = await long_run(tmp_path)
        async with aclosing(SqliteStore(tmp_path / ".llm-do" / "state.db")) as store:
            whole = [each.seq for each in await read(store, Filter(run_id=run_id))]
            monkeypatch.setattr(SqliteStore, "observations", observed)
            return whole, [each.seq async for each in following.follow_run(store, run_id, after=whole[2])]

    monkeypatch.setattr(following, "MOST_AT_ONCE", most)
    whole, followed = asyncio.run(follow())

    assert len(whole) > 50
    assert followed == whole[3:]
    assert max(sizes) == min(most, len(followed))


def test_a_user_can_follow_a_bounded_number_of_runs(desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.web.event_stream.MOST_STREAMS", 3)
    run = desk.start(input="Hello")
    others = {"Authorization": f"Bearer {ANN}"}
    theirs = desk.http.post("/api/runs", json={"input": "Hello"}, headers=others).json()["run_id"]
    with ExitStack() as stack:
        opened = [stack.enter_context(desk.http.stream("GET", f"/api/runs/{run}/events")) for _ in range(3)]
        assert [each.status_code for each in opened] == [200, 200, 200]
        refused = desk.http.get(f"/api/runs/{run}/events")
        assert refused.status_code == 429
        assert refused.json()["error"]["message"] == "you follow 3 runs already"
        with desk.http.stream("GET", f"/api/runs/{theirs}/events", headers=others) as other:
            assert other.status_code == 200

    def follows() -> bool:
        with desk.http.stream("GET", f"/api/runs/{run}/events") as again:
            return again.status_code == 200

    wait_for(follows)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, threading.Event]]:
    """A server with an endless answer: its port, and an event that is set once it learns that its client has gone."""
    from llm_do.web import connections

    monkeypatch.setattr(connections, "PATIENCE", 0.2)
    ended = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not ended.is_set():
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            await asyncio.sleep(0)
            cycle = send.__self__
            if cycle.disconnected:
                ended.set()

    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=connections.BoundedConnection, log_level="critical", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        yield listening.getsockname()[1], ended
    finally:
        ended.set()
        server.should_exit = True
        thread.join(30)
        listening.close()


def test_a_client_that_stops_reading_is_disconnected(endless: tuple[int, threading.Event]) -> None:
    port, ended = endless
    with socket.create_connection(("127.0.0.1", port), timeout=60) as held:
        held.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert held.recv(10) == b"HTTP/1.1 2"
        assert ended.wait(60)


@pytest.mark.slow
def test_a_server_with_open_streams_ends_quietly_and_at_once(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    process = ServeProcess(root)
    base, key = process.base, process.key
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    asked = urllib.request.Request(f"{base}/api/runs", json.dumps({"input": "Hello"}).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        run = json.load(answer)["run_id"]
    followed = urllib.request.Request(f"{base}/api/runs/{run}/events", headers=headers)
    with urllib.request.urlopen(followed, timeout=60) as stream:
        assert stream.readline() == b"retry: 1000\n"
        process.interrupt()
        rest = stream.read()  # which ends well
        ended = process.wait_for_end()

    assert b"event: end" not in rest
    assert ended == QUIET_END


@pytest.mark.slow
def test_an_answer_that_is_not_ready_when_the_server_ends_says_so(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    (root / "shop.yaml").write_text("- {text: Tea is 4.20., delay: 600}\n", encoding="utf-8")
    process = ServeProcess(root)
    base, key = process.base, process.key
    body = json.dumps({"model": "shop", "messages": [{"role": "user", "content": "Tea?"}]}).encode()
    with socket.create_connection(process.place, timeout=60) as client:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)

        def runs() -> Any:
            asked = urllib.request.Request(f"{base}/api/runs", headers={"Authorization": f"Bearer {key}"})
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return json.load(answer)["runs"]

        wait_for(runs)
        process.interrupt()
        answer = b""
        while part := client.recv(65536):
            answer += part
        code, _, err = process.wait_for_end()

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"the server is ending" in answer
    assert code == 0
    assert "Traceback" not in err
