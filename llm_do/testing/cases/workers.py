"""Processes that run cases, one case at a time each, so that a case that hangs or crashes harms no other.

A worker is a fork where that is safe: then it starts in milliseconds, with everything imported.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.temporary_folders import temporary_folder
from llm_do.runtime.record.redaction import redactor
from llm_do.testing.cases.case import Case, Plan
from llm_do.testing.cases.results import CaseResult, Failure
from llm_do.testing.cases.running import CaseRun, run_case

__all__ = ["Job", "run_jobs"]

_GRACE = 15.0
"""Seconds beyond the time of its runs that a case may take: to copy and link the project, and to check."""

_MOST_PRINTED = 4_000


@frozen
class Job:
    """A case to run, and how."""

    case: Case
    plan: Plan

    @property
    def repeats(self) -> int:
        """How many times it is run."""
        return self.plan.repeats(self.case)

    @property
    def seconds(self) -> float:
        """How long it may take before its process is ended."""
        return self.repeats * (self.case.seconds + _GRACE)


def run_jobs(project: Path, jobs: Sequence[Job], processes: int) -> Iterator[tuple[int, CaseRun]]:
    """Run jobs in processes, and yield each one's number with what came of it, as they end."""
    with temporary_folder("tests") as folder:
        pool = _Pool(project, jobs, folder, max(1, min(processes, len(jobs))))
        try:
            yield from pool.run()
        finally:
            pool.close()


@dataclass(eq=False, slots=True)
class _Worker:
    process: Any
    connection: Connection
    printed: Path
    job: int = -1
    deadline: float = 0.0

    def kill(self) -> None:
        """End the process and what it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


class _Pool:
    def __init__(self, project: Path, jobs: Sequence[Job], folder: Path, size: int) -> None:
        self._project = project
        self._jobs = jobs
        self._folder = folder
        self._size = size
        self._waiting = list(range(len(jobs) - 1, -1, -1))
        self._workers: list[_Worker] = []
        self._started = 0
        # With other threads, a fork may wait forever for a lock that one of them held.
        forks = sys.platform == "linux" and threading.active_count() == 1
        self._context: Any = multiprocessing.get_context("fork" if forks else "spawn")

    def run(self) -> Iterator[tuple[int, CaseRun]]:
        """Hand out jobs until all are done."""
        gc.collect()
        gc.freeze()  # what is there now stays: a collection in a worker would copy its pages
        for _ in range(self._size):
            self._give(self._start())
        while self._workers:
            nearest = min(worker.deadline for worker in self._workers)
            ready = wait([worker.connection for worker in self._workers], max(0.0, nearest - time.monotonic()))
            now = time.monotonic()
            for worker in list(self._workers):
                if worker.connection in ready:
                    yield worker.job, self._received(worker)
                elif now >= worker.deadline:
                    yield worker.job, self._ended(worker)

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        self._started += 1
        printed = self._folder / f"printed-{self._started}"
        arguments = (theirs, self._project, self._jobs, printed, self._folder)
        process = self._context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours, printed)
        self._workers.append(worker)
        return worker

    def _give(self, worker: _Worker) -> None:
        """Give a worker its next job, or let it go."""
        if not self._waiting:
            self._workers.remove(worker)
            worker.kill()
            return
        worker.job = self._waiting.pop()
        worker.deadline = time.monotonic() + self._jobs[worker.job].seconds
        worker.printed.write_bytes(b"")
        worker.connection.send(worker.job)

    def _received(self, worker: _Worker) -> CaseRun:
        try:
            run: CaseRun = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            code = worker.process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
            run = self._lost(worker, f"the process of the test {how}")
            self._replace(worker)
            return run
        if not run.result.ok:
            run = replace(run, result=_with_printed(run.result, worker.printed))
        self._give(worker)
        return run

    def _ended(self, worker: _Worker) -> CaseRun:
        """End a worker whose job doesn't end by itself."""
        case = self._jobs[worker.job].case
        run = self._lost(worker, f"the test didn't end: it was stopped after {case.seconds + _GRACE:g} s", failed=True)
        self._replace(worker)
        return run

    def _replace(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.kill()
        if self._waiting:
            self._give(self._start())

    def _lost(self, worker: _Worker, what: str, *, failed: bool = False) -> CaseRun:
        job = self._jobs[worker.job]
        case, limit = job.case, job.case.limit("seconds")
        failure = Failure(case.file, case.line if limit is None else limit[1], what)
        status = "failed" if failed else "error"
        column = job.plan.column.name
        result = CaseResult(case.id, case.name, case.file, case.line, column, status, (failure,))
        return CaseRun(_with_printed(result, worker.printed))


def _with_printed(result: CaseResult, printed: Path) -> CaseResult:
    """A result whose first failure shows what was printed, if anything was."""
    try:
        with printed.open("rb") as stream:
            stream.seek(max(0, printed.stat().st_size - _MOST_PRINTED))
            text = stream.read(_MOST_PRINTED).decode("utf-8", "replace").rstrip()
    except OSError:
        return result
    if not text or not result.failures:
        return result
    first, *others = result.failures
    lines = ["printed:", *(f"  {line}" for line in redactor()(text).splitlines())]
    block = "\n".join([*([first.block] if first.block else []), *lines])
    return replace(result, failures=(replace(first, block=block), *others))


def _end_with_parent() -> None:
    """Wait until the process that started this one has ended, then end, with what has been started here."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _serve(connection: Connection, project: Path, jobs: Sequence[Job], printed: Path, folder: Path) -> None:
    """What a worker does: run the jobs whose numbers come, until the other end is closed."""
    os.setsid()  # an interruption at the terminal is for the process that started it, which ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, name="llm-do-parent", daemon=True).start()
    tempfile.tempdir = str(folder)
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, target in ((0, nothing), (1, output), (2, output)):
        os.dup2(target, stream)
    with contextlib.suppress(EOFError, OSError):
        while True:
            number: int = connection.recv()
            job = jobs[number]
            run = run_case(project, job.case, job.plan)
            sys.stdout.flush()
            sys.stderr.flush()
            connection.send(run)
    os._exit(0)
