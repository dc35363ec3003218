"""Run argument vectors without a shell: they get no input, their output is limited, and no process is left behind.

Each stage of a pipeline leads a session of its own. On a timeout, a cancellation or too much output, every process of
every session is terminated, then killed; so are processes that a command leaves running when it exits.
"""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.event_loops import complete
from llm_do.concurrency.lifeline import find_marked, guarded_environment
from llm_do.errors import ToolError
from llm_do.policy.commands.command_line import Stream
from llm_do.toolsets.shell.captured_output import Capture, OutputLimitError

__all__ = ["PipelineEnd", "Stage", "run_stages"]

_CHUNK = 65_536
_GRACE = 0.5
"""Seconds between terminating and killing a process, and to wait for output after a command has exited."""

_ROUNDS = 50
_BETWEEN = 0.01
_MARK = "LLM_DO_COMMAND"


@frozen
class Stage:
    """One process of a pipeline: its argument vector, with an absolute path to the program, and its environment.

    `stdout` and `stderr` say where its streams go.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    stdout: Stream = "stdout"
    stderr: Stream = "stderr"


@frozen
class PipelineEnd:
    """The end of a pipeline: the exit codes of its stages, negative for a signal.

    `why` is `timeout` or `output` if the pipeline was stopped, else empty.
    """

    codes: tuple[int, ...]
    why: str = ""


async def run_stages(
    stages: Sequence[Stage], cwd: Path, *, seconds: float, stdout: Capture, stderr: Capture
) -> PipelineEnd:
    """Run a pipeline, capturing the output of the last stage and the standard error of all stages.

    A program that can't be started raises `ToolError`.
    """
    mark = uuid.uuid4().hex
    running = _Running(mark)
    why = ""
    try:
        out, err = await running.start(stages, cwd)
        async with asyncio.timeout(seconds):
            await running.finish([_drain(out, stdout), _drain(err, stderr)])
    except TimeoutError:
        why = "timeout"
    except OutputLimitError:
        why = "output"
    finally:
        await complete(running.stop())
    return PipelineEnd(tuple(process.returncode or 0 for process in running.processes), why)


class _Running:
    """The processes of one pipeline and the pipes between them."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.processes: list[asyncio.subprocess.Process] = []
        self._transports: list[asyncio.ReadTransport] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, stages: Sequence[Stage], cwd: Path) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
        """Start all stages and return the readers of their output."""
        ends: list[int] = []
        try:
            err_read, err_write = _pipe(ends)
            previous = asyncio.subprocess.DEVNULL
            for stage in stages:
                read, write = _pipe(ends)
                await self._start_one(stage, cwd, previous, write, err_write)
                _close(ends, write)
                if previous >= 0:
                    _close(ends, previous)
                previous = read
            _close(ends, err_write)
            readers = await self._reader(previous, ends), await self._reader(err_read, ends)
        finally:
            for end in ends:
                os.close(end)
        return readers

    async def _start_one(self, stage: Stage, cwd: Path, stdin: int, stdout: int, stderr: int) -> None:
        ends = {"stdout": stdout, "stderr": stderr, "nowhere": asyncio.subprocess.DEVNULL}
        try:
            process = await asyncio.create_subprocess_exec(
                *stage.argv,
                stdin=stdin,
                stdout=ends[stage.stdout],
                stderr=ends[stage.stderr],
                cwd=cwd,
                env={**stage.environment, **guarded_environment(), _MARK: self.mark},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            name = Path(stage.argv[0]).name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolError(f"{name} could not be started: {reason or error}") from error
        self.processes.append(process)

    async def _reader(self, end: int, ends: list[int]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=_CHUNK)
        file = os.fdopen(end, "rb", buffering=0)
        ends.remove(end)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
        self._transports.append(transport)
        return reader

    async def finish(self, drains: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Wait for the processes, then for their output, but not for a left-over process that keeps a pipe open."""
        self._tasks = [asyncio.ensure_future(drain) for drain in drains]
        ends = [asyncio.ensure_future(process.wait()) for process in self.processes]
        try:
            waiting: set[asyncio.Task[Any]] = {*ends, *self._tasks}
            while not all(end.done() for end in ends):
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            done, _ = await asyncio.wait(self._tasks, timeout=_GRACE)
            for task in done:
                task.result()
        finally:
            for end in ends:
                end.cancel()

    async def stop(self) -> None:
        """Stop the processes that still run, and close the pipes."""
        if self._signal(signal.SIGTERM):
            waits = [asyncio.ensure_future(process.wait()) for process in self.processes]
            await asyncio.wait(waits, timeout=_GRACE)
            for _ in range(_ROUNDS):  # one that is about to be killed may start another
                if not self._signal(_KILL):
                    break
                await asyncio.sleep(_BETWEEN)
            await asyncio.wait(waits)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in self._transports:
            transport.close()

    def _signal(self, number: int) -> bool:
        """Signal every running process; return whether there was one."""
        reached = False
        for process in self.processes:
            if os.name == "posix":
                reached |= _send(os.killpg, process.pid, number)
            elif process.returncode is None:
                process.kill()
                reached = True
        for pid in find_marked(f"{_MARK}={self.mark}") if self.processes else ():
            reached |= _send(os.kill, pid, number)
        return reached


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _send(send: Callable[[int, int], None], pid: int, number: int) -> bool:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _pipe(ends: list[int]) -> tuple[int, int]:
    pair = os.pipe()
    ends.extend(pair)
    return pair


def _close(ends: list[int], end: int) -> None:
    ends.remove(end)
    os.close(end)


async def _drain(reader: asyncio.StreamReader, capture: Capture) -> None:
    while data := await reader.read(_CHUNK):
        capture.feed(data)
