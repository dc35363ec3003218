"""`llm-do worker` in a process of its own, whose stderr can be read at any time."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.cli_processes import LLM_DO, environment

PATIENCE = 120
"""Seconds that anything may take on a busy machine."""


_started: list[WorkerProcess] = []


class WorkerProcess(subprocess.Popen[bytes]):
    """A worker that runs.

    What it writes goes to a file: of a pipe, `communicate` would lose the lines that waiting for one has read ahead.

    Args:
        root: The folder of its project.
        args: The options of the worker.
    """

    def __init__(self, root: Path, *args: str) -> None:
        with tempfile.NamedTemporaryFile(dir=root.parent, prefix="worker-", delete=False) as file:
            self._output_file = Path(file.name)
            command = [*LLM_DO, "worker", "--approve-all", *args]
            super().__init__(command, cwd=root, stdout=file, stderr=file, env=environment())
        _started.append(self)

    @property
    def output(self) -> str:
        """All that it has written to stderr; it writes nothing to stdout."""
        return self._output_file.read_text()

    def wait_for(self, part: str, times: int = 1) -> None:
        """Wait until it has written something so many times, while it runs."""
        wait_until(lambda: self.output.count(part) >= times or self.poll() is not None)
        assert self.output.count(part) >= times, self.output

    def wait_for_end(self) -> str:
        """Wait until it has ended, and return what it has written."""
        self.wait(PATIENCE)
        return self.output


def kill_workers() -> None:
    """End what a test that has failed leaves running: a worker waits for its store for as long as it takes."""
    for worker in _started:
        worker.kill()
        worker.wait()
    _started.clear()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it didn't happen"
        time.sleep(0.02)
