"""`llm-do serve`: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from llm_do._extras import install_command
from llm_do.cli.actions.serving.serve_action import serve_projects
from llm_do.errors import UsageError
from tests.cli.cli_processes import run_forked
from tests.web.served import QUIET_END, ServeProcess, wait_for, write_desk


@pytest.mark.parametrize("host", ["a/b", "a@b", "a b", "http://a", "a:80", ""])
def test_a_host_that_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="--allow-host takes a host's name"):
        serve_projects([], port=0, open_browser=False, hosts=[host], trust=False)


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    with pytest.raises(UsageError, match="`llm-do serve` needs the extra `service`") as raised:
        serve_projects([], port=0, open_browser=False, hosts=[], trust=False)
    assert raised.value.hint == f"Install it with `{install_command('service')}`."


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_forked("serve", ".", "--port", str(port), "--no-browser", cwd=write_desk(tmp_path / "desk"))

    assert (ended.code, ended.out) == (2, "")
    assert f"port {port} can't be used" in ended.err
    assert "--port 0" in ended.err


def test_its_project_may_be_named_as_for_every_command(tmp_path: Path) -> None:
    write_desk(tmp_path / "desk")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = ["--port", str(taken.getsockname()[1]), "--no-browser"]
        named = run_forked("serve", "-p", "desk", *line, cwd=tmp_path)
        twice = run_forked("serve", "desk", "-p", "desk", *line, cwd=tmp_path)

    assert (named.code, "can't be used" in named.err) == (2, True), named.err  # it has been linked
    assert (twice.code, "the project is named twice" in twice.err) == (2, True)


@pytest.mark.slow
def test_it_prints_one_address_and_ends_its_runs_when_it_is_interrupted(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    process = ServeProcess(root)
    base, key = process.base, process.key

    def ask(path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(base + path, data, headers)) as answer:
            return json.load(answer)

    run = ask("/api/runs", {"input": "Hello"})["run_id"]
    wait_for(lambda: ask(f"/api/runs/{run}/questions")["questions"])
    process.interrupt()

    assert process.wait_for_end() == QUIET_END
    listed = run_forked("runs", "list", "--format", "json", cwd=root).json
    assert [(each["run_id"], each["status"]) for each in listed] == [(run, "interrupted")]


@pytest.mark.slow
def test_it_collects_what_runs_leave(tmp_path: Path) -> None:
    """It may serve for months: with the collector off, as while a command starts, runs would stay in memory."""
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"function": "work.py:main"}, "python_files": ["work.py"]}'
    )
    (tmp_path / "work.py").write_text(
        "import gc\nfrom pathlib import Path\n\n\nasync def main(input, ctx):\n"
        "    Path('collects.new').write_text(str(gc.isenabled()))\n"
        "    Path('collects.new').rename('collects')\n    return 'done'\n"
    )
    words = [sys.executable, "-m", "llm_do", "serve", ".", "--port", "0", "--no-browser", "--trust"]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process: Any = subprocess.Popen(words, **pipes, cwd=tmp_path, text=True)
    try:
        base, _, key = process.stdout.readline().strip().partition("/#key=")
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{base}/api/runs", b'{"input": "go"}', headers)
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 201
        wait_for((tmp_path / "collects").exists)
    finally:
        process.kill()
        process.communicate()

    assert (tmp_path / "collects").read_text() == "True"


@pytest.mark.slow
def test_connections_that_never_finish_a_request_keep_no_one_out(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    limited = "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)); "
    start = f"{limited}runpy.run_module('llm_do', run_name='__main__', alter_sys=True)"
    process = ServeProcess(root, "-c", start)
    held: list[socket.socket] = []
    try:
        begun = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
        body = b"POST /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        body += f"Authorization: Bearer {process.key}\r\nContent-Length: 1000\r\n\r\n{{".encode()
        for sent in (begun, body, b""):
            for _ in range(200):
                held.append(socket.create_connection(process.place, timeout=60))
                held[-1].sendall(sent)
        with urllib.request.urlopen(f"{process.base}/", timeout=60) as answer:
            assert answer.status == 200
        with suppress(ConnectionResetError):
            assert held[0].recv(1) == b""
    finally:
        for each in held:
            each.close()
        process.interrupt()
        ended = process.wait_for_end()
    assert ended == QUIET_END
