"""Durable runs of other processes, for the tests of those that a server shows."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.cli_processes import run_forked
from tests.web.served import Served, httpx


def suspended(root: Path, run_id: str, *words: str) -> None:
    """Begin a durable run in another process, which ends as the run waits for a person."""
    ended = run_forked("run", ".", "--durable", "--run-id", run_id, *words, "Hello", cwd=root)
    assert ended.code == 5, ended.err


@contextmanager
def command(root: Path, *words: str, end: signal.Signals = signal.SIGINT) -> Iterator[Served]:
    """Serve with `llm-do serve` in a process of its own, which a signal ends."""
    line = [sys.executable, "-m", "llm_do", "serve", ".", "--port", "0", "--no-browser", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            base, _, key = process.stdout.readline().strip().partition("/#key=")
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
                yield Served(base, None, http)
        finally:
            process.send_signal(end)
            process.wait(60)


def status_of(desk: Served, run: str) -> str:
    return desk.http.get(f"/api/runs/{run}").json()["run"]["status"]


def events_of(desk: Served, run: str, kind: str) -> list[Any]:
    return [each for each in desk.ended(run)["events"] if each["type"] == kind]
