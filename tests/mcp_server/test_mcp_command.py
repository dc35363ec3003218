"""`llm-do mcp` as a client starts it: a process that speaks the protocol on stdout, and nothing else."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from tests.cli.cli_processes import LLM_DO, environment, run_forked, write_project
from tests.mcp_server.clients import accepts, text_of

ANSWERS = """\
- tools: [{name: shout, args: {}}]
- text: done
"""


@pytest.mark.slow
def test_a_client_starts_it_and_nothing_that_a_project_prints_is_in_its_way(tmp_path: Path) -> None:
    root = write_project(tmp_path, ANSWERS)
    (root / "tools.py").write_text("print('at import')\n" + (root / "tools.py").read_text())
    person = accepts("once")

    async def use(errors: TextIO) -> str:
        started = StdioServerParameters(
            command=sys.executable,
            args=[*LLM_DO[1:], "mcp", str(root), "--store", "runs.db"],
            env=environment(),
            cwd=str(tmp_path),
        )
        async with Client(stdio_client(started, errlog=errors), elicitation_callback=person) as client:
            return text_of(await client.call_tool("main", {"input": "go"}))

    with (tmp_path / "stderr").open("w") as errors:
        assert asyncio.run(asyncio.wait_for(use(errors), 60)) == "done"
    assert "main wants to call shout" in person.message
    printed = (tmp_path / "stderr").read_text()
    assert all(text in printed for text in ("at import", "by print", "by write", "by child"))
    listed = run_forked("runs", "list", str(root), "--store", "runs.db", "--json", cwd=tmp_path).json
    assert [each["status"] for each in listed] == ["completed"]


@pytest.mark.slow
def test_it_ends_when_its_client_does_and_at_a_signal(tmp_path: Path) -> None:
    root = write_project(tmp_path, ANSWERS)
    command = [*LLM_DO, "mcp", str(root)]
    closed = subprocess.run(command, input=b"", capture_output=True, timeout=60, env=environment(), check=False)
    assert (closed.returncode, closed.stdout) == (0, b"")

    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"test","version":"1"}}}\n'
    )
    process.stdin.flush()
    assert b"serverInfo" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (143, b"", b"")


@pytest.mark.slow
def test_what_is_wrong_before_it_serves_is_reported_on_stderr(tmp_path: Path) -> None:
    root = write_project(tmp_path, ANSWERS)
    for args, code, text in (
        (["--only", "mian"], 2, "nothing named 'mian'"),
        (["--approve-all", "--reject-all"], 2, "exclude each other"),
        (["--allow", "send("], 2, "the parenthesis is not closed"),
        (["--timeout", "soon"], 2, "--timeout"),
    ):
        ended = run_forked("mcp", str(root), *args, cwd=tmp_path)
        assert (ended.code, ended.out) == (code, ""), args
        assert text in ended.err
