"""What `llm-do worker` does: it carries out what is on the queue, and says on stderr what it does."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from llm_do._startup.frozen import frozen
from llm_do.cli.actions.run_action import carry_out, link, prepare
from llm_do.cli.arguments.target import project_at
from llm_do.cli.process.signals import PATIENCE, kill_children
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import CommandOptions
    from llm_do.cli.process.signals import Interrupts
    from llm_do.cli.process.streams import Results
    from llm_do.durable.progress import FailureKind, InputFailure
    from llm_do.durable.worker import Worker, WorkerCounts
    from llm_do.runtime.record.store.batches import BatchRecord

__all__ = ["EngineOptions", "WorkerOptions", "start"]

GRACE = 30.0
"""Seconds that requests and calls have to end after a signal."""

REPORT = 10.0
"""Seconds between two lines that say what has been done."""

SHOWN_FAILURES = 3
"""Failures of a kind that are shown one by one."""


@frozen
class EngineOptions:
    """What hands out the runs.

    Args:
        name: The engine: `rows` of the store, or `dbos`.
        total: Runs at once in all workers; only an engine knows of the others.
        per_minute: Runs that begin within a minute, in all workers.
    """

    name: Literal["rows", "dbos"] = "rows"
    total: int | None = None
    per_minute: int | None = None


@frozen
class WorkerOptions:
    """What a worker works on.

    Args:
        project: The project, as an argument.
        concurrency: Runs at once.
        batch: The only batch to work on.
        exit_when_empty: Whether it ends when nothing is left to do.
        engine: What hands out the runs.
    """

    project: str | None
    concurrency: int
    batch: str | None
    exit_when_empty: bool
    engine: EngineOptions = EngineOptions()


def start(what: WorkerOptions, options: CommandOptions) -> int:
    """Work until a signal comes or, with `exit_when_empty`, nothing is left to do."""
    return carry_out(options, partial(_work, what), owes_result=False)


def _work(what: WorkerOptions, options: CommandOptions, results: Results, interrupts: Interrupts) -> int:
    if what.batch == "":
        raise UsageError("--batch is empty", hint="Leave it out to work on every batch of the project.")
    _check_engine(what.engine)
    prepare(otel=options.otel)
    project = link(project_at(what.project, options.input.named, quiet=options.output.quiet), options, continues=True)
    from llm_do.cli.actions.session import Session

    session = Session(project, options.session, options.output, results, interrupts, asks=False)
    return session.serve(_Working(session, what, interrupts, quiet=options.output.quiet).carry_out)


def _check_engine(engine: EngineOptions) -> None:
    if engine.name == "rows" and (engine.total is not None or engine.per_minute is not None):
        option = "--total" if engine.total is not None else "--per-minute"
        raise UsageError(
            f"{option} is a limit over all workers, which only an engine knows of",
            hint="Add `--engine dbos`, or limit each worker with --concurrency.",
        )


class _Working:
    """One call of the command.

    Args:
        session: The session.
        what: What is worked on.
        interrupts: Learns how to stop.
        quiet: Whether only errors are shown.
    """

    def __init__(self, session: Session, what: WorkerOptions, interrupts: Interrupts, *, quiet: bool) -> None:
        self._session = session
        self._what = what
        self._interrupts = interrupts
        self._quiet = quiet
        self._cut_off = False

    async def carry_out(self) -> int:
        """Work, and return the exit code."""
        worker = self._worker()
        await worker.check()
        loop = asyncio.get_running_loop()
        self._interrupts.patience = GRACE + PATIENCE
        self._interrupts.stop = lambda: _soon(loop, partial(self._stop, loop, worker))
        if self._interrupts.signum is not None:
            self._stop(loop, worker)
        self._tell(f"working on {self._work_name()}, {self._limits()}")
        reporting = asyncio.ensure_future(self._report(worker.counts))
        try:
            await worker.work()
        finally:
            reporting.cancel()
        self._tell(_ended(worker.counts))
        if self._cut_off:
            kill_children()
            return self._interrupts.exit_code
        return 0

    def _worker(self) -> Worker:
        from llm_do.durable.worker import Worker

        what, runtime = self._what, self._session.runtime
        options: dict[str, Any] = {
            "session": runtime,
            "store": runtime.shared.recorder().batches(),
            "concurrency": what.concurrency,
            "batch": what.batch,
            "until_empty": what.exit_when_empty,
            "notice": self._say,
            "on_failure": self._fail,
        }
        if what.engine.name == "rows":
            return Worker(**options)
        from llm_do.cli.actions.batches.dbos_worker import dbos_worker

        return dbos_worker(what.engine, options)

    def _work_name(self) -> str:
        root = self._session.runtime.project.root
        return f"batch {self._what.batch} of {root}" if self._what.batch is not None else f"batches of {root}"

    def _limits(self) -> str:
        engine = self._what.engine
        parts = [f"{with_count(self._what.concurrency, 'run')} at once"]
        parts += [f"{engine.total} in all workers"] if engine.total is not None else []
        parts += [f"{engine.per_minute} begun a minute"] if engine.per_minute is not None else []
        return ", ".join(parts)

    def _stop(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        worker.stop()
        running = worker.counts.running
        if running:
            self._tell(f"{self._interrupts.description}; {_runs(running)} may end what they are doing")
        loop.call_later(GRACE, self._cut)

    def _cut(self) -> None:
        self._cut_off = True
        self._session.runtime.interrupt()

    async def _report(self, counts: WorkerCounts) -> None:
        before = ""
        while True:
            await asyncio.sleep(REPORT)
            line = _done(counts)
            if line != before:
                self._tell(f"{line}, {counts.running} running")
            before = line

    def _fail(self, batch: BatchRecord, failure: InputFailure, kind: FailureKind) -> None:
        if kind.count <= SHOWN_FAILURES:
            self._tell(f"{failure.run_id} failed: {failure.error.message}")
        if kind.count == SHOWN_FAILURES:
            self._tell("more failures of this kind are only counted")

    def _tell(self, line: str) -> None:
        if not self._quiet:
            self._say(line)

    def _say(self, line: str) -> None:
        warn(sanitize(" ".join(line.split())))


def _done(counts: WorkerCounts) -> str:
    parts = [f"{counts.completed:,} completed", f"{counts.failed:,} failed" if counts.failed else ""]
    parts += [f"{counts.waiting:,} wait for a person" if counts.waiting else ""]
    return ", ".join(part for part in parts if part)


def _ended(counts: WorkerCounts) -> str:
    left = f"; {_runs(counts.left)} left to other workers" if counts.left else ""
    return f"ended: {_done(counts)}{left}"


def _runs(count: int) -> str:
    return with_count(count, "run")


def _soon(loop: asyncio.AbstractEventLoop, work: partial[None]) -> None:
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(work)
