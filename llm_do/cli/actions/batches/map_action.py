"""What `llm-do map` does: from its inputs to lines of results, with progress on stderr."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from llm_do._startup.frozen import frozen
from llm_do.cli.actions.batches.result_lines import Line, line_of_result, line_reader
from llm_do.cli.actions.lock.needed_approvals import print_needed
from llm_do.cli.actions.run_action import carry_out, link, prepare
from llm_do.cli.arguments.target import project_at, user_path
from llm_do.cli.process import stdin
from llm_do.cli.process.signals import kill_children
from llm_do.cli.process.streams import PIPE_CLOSED, Capture, warn, write_all, write_stderr
from llm_do.durable.progress import Failures
from llm_do.errors import EXIT_CODES, InputError, UsageError
from llm_do.text.sanitizer import shell_words

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import CommandOptions
    from llm_do.cli.process.signals import Interrupts
    from llm_do.cli.process.streams import Results
    from llm_do.durable.batch_run import BatchRun
    from llm_do.durable.json_lines import JsonLines, Scan
    from llm_do.durable.progress import Progress
    from llm_do.runtime.record.store.batches import BatchRecord, BatchSummary
    from llm_do.runtime.steps.durable_run import InFlight
    from llm_do.ui.live.batch_view import BatchView

__all__ = ["MapOptions", "start"]

TICK = 0.1
"""Seconds between two updates of the live line."""

SHOWN_NEEDED = 5
"""Entries of the lock that the summary shows."""

SHOWN_WAITING = 3
"""Runs that wait for a person of which the summary says what for."""


@frozen
class MapOptions:
    """Which inputs are mapped, and how.

    Args:
        project: The project, as an argument.
        file: The file with the inputs; None or `-` for stdin.
        entry: What to run instead of the project's entry, as an argument.
        named_entry: The same, as an option.
        concurrency: Runs at once.
        budget_usd: US dollars for all inputs together.
        budget_each_usd: US dollars for each.
        batch: The batch's id; None for the one of file and entry.
        retry: Whether failed inputs are run again.
        in_flight: What becomes of calls that were running when a run was stopped.
        accept_changes: Whether to continue though the project's files or the models have changed.
        detach: Whether inputs are only put on the queue.
    """

    project: str | None
    file: str | None
    entry: str | None
    named_entry: str | None
    concurrency: int | None
    budget_usd: float | None
    budget_each_usd: float | None
    batch: str | None
    retry: bool
    in_flight: InFlight | None
    accept_changes: bool
    detach: bool


def start(what: MapOptions, options: CommandOptions) -> int:
    """Run the inputs and print their results."""
    return carry_out(options, partial(_map, what), owes_result=False)


def _map(what: MapOptions, options: CommandOptions, results: Results, interrupts: Interrupts) -> int:
    quiet = options.output.quiet
    entry = _entry(what)
    with _opened(what.file) as (file, name):
        prepare(otel=options.otel)
        project = link(project_at(what.project, options.input.named, quiet=quiet), options, continues=True)
        if not project.allow_cli_input:
            raise UsageError(
                "the project takes no input from the command line",
                hint="Set `allow_cli_input` in project.json, or map inputs from Python with `Runtime.map`.",
            )
        from llm_do.cli.actions.session import Session
        from llm_do.durable.batch_start import BatchOptions, default_id
        from llm_do.durable.json_lines import JsonLines
        from llm_do.runtime.session.mapped_inputs import BatchBudget

        source = JsonLines(file, name)
        scan = source.scan()
        if not scan.total:
            raise InputError(f"{name} has no inputs", hint="Write one on each line: a JSON object, or a JSON string.")
        budget = None
        if what.budget_usd is not None or what.budget_each_usd is not None:
            budget = BatchBudget(what.budget_usd, what.budget_each_usd)
        place = scan.digest if what.file in (None, "-") else os.path.realpath(name)
        chosen = BatchOptions(
            what.batch if what.batch is not None else default_id(place, entry),
            entry,
            what.concurrency,
            budget,
            what.retry,
            what.accept_changes,
        )
        session = Session(project, options.session, options.output, results, interrupts, asks=False)
        mapping = _Mapping(session, what, options, results, interrupts)
        return session.serve(lambda: mapping.carry_out(chosen, source, scan))


def _entry(what: MapOptions) -> str | None:
    if what.entry is not None and what.named_entry is not None:
        raise UsageError("the entry is named twice, with --entry and as an argument", hint="Keep one of them.")
    if "" in (what.entry, what.named_entry):
        raise UsageError("the entry is empty", hint="Leave it out to run the project's entry.")
    return what.entry if what.entry is not None else what.named_entry


@contextmanager
def _opened(file: str | None) -> Generator[tuple[BinaryIO, str]]:
    """Open the inputs; what can't be read twice is copied first."""
    from llm_do.durable.json_lines import LONGEST

    if file is None and not stdin.is_data():
        raise UsageError("there are no inputs", hint="Name a file with an input on each line, or pipe one in.")
    name = "stdin" if file is None or file == "-" else str(user_path(file))
    try:
        with open(0 if name == "stdin" else name, "rb", closefd=name != "stdin") as found:
            if name != "stdin" and stat.S_ISREG(os.fstat(found.fileno()).st_mode):
                yield found, name
                return
            with tempfile.TemporaryFile() as copy:
                while line := found.readline(LONGEST + 1):
                    copy.write(line)
                    if len(line) > LONGEST:
                        break  # what has no lines may have no end either; the scan says so
                yield cast("BinaryIO", copy), name
    except OSError as error:
        hint = "Paths are relative to the current folder; - is stdin."
        if name != "stdin" and not os.path.lexists(name):
            hint += f" For an entry named {file!r}, name a file after it."
        raise InputError(f"{name} can't be read: {error.strerror or error}", hint=hint) from error


class _Mapping:
    """One call of the command.

    Args:
        session: The session.
        what: Which inputs are mapped, and how.
        options: The options of their runs.
        results: Where results go.
        interrupts: Learns how to stop.
    """

    def __init__(
        self, session: Session, what: MapOptions, options: CommandOptions, results: Results, interrupts: Interrupts
    ) -> None:
        self._session = session
        self._what = what
        self._output = options.output
        self._results = results
        self._interrupts = interrupts
        self._printed = Failures()
        self._needed: dict[str, Mapping[str, Any]] = {}
        self._frozen = bool(options.session.shared.get("frozen"))

    async def carry_out(self, chosen: Any, source: JsonLines, scan: Scan) -> int:
        """Work on the batch, print results as they are complete, and return the exit code."""
        from llm_do.durable.batch_run import BatchRun, ResultForm
        from llm_do.durable.batch_start import put_inputs, start_batch

        runtime = self._session.runtime
        store = runtime.shared.recorder().batches()
        record = await start_batch(runtime, store, chosen, scan, source.name)
        if self._what.detach:
            summary = await store.summary(record.id)
            async for _ in put_inputs(store, record.id, source, after=summary.last):
                pass
            if not self._output.quiet:
                for line in _detached(record, await store.summary(record.id)):
                    warn(line)
            return 0
        work: BatchRun[Line] = BatchRun(
            runtime,
            store,
            record,
            source,
            ResultForm(line_of_result, line_reader()),
            in_flight=self._what.in_flight,
            accept_changes=self._what.accept_changes,
            on_failure=lambda failure, kind: self._view.fail(failure, kind),
        )
        self._view = view = self._view_of(work.progress)
        self._session.show_notice = view.line
        loop = asyncio.get_running_loop()
        live = self._session.animated and not self._output.quiet
        capture = Capture(lambda text: _soon(loop, view.foreign, text)) if live else None
        ticking = asyncio.ensure_future(_tick(view))
        self._interrupts.stop = lambda: _soon(loop, self._stop, work)
        if self._interrupts.signum is not None:
            self._stop(work)
        try:
            await self._print(work, view)
        finally:
            ticking.cancel()
            if capture is not None:
                capture.close()
                await asyncio.sleep(0)
            view.end()
        return self._end(work.progress, record)

    def _view_of(self, progress: Progress) -> BatchView:
        from llm_do.ui.live.batch_view import BatchView
        from llm_do.ui.terminal.screen import draws_lines
        from llm_do.ui.terminal.size import terminal_size

        live = self._session.animated
        screen = os.dup(2) if live else 2
        return BatchView(
            progress,
            partial(write_all, screen) if live else write_stderr,
            partial(terminal_size, screen),
            live=live,
            quiet=self._output.quiet,
            color=self._session.color,
            lines=draws_lines(os.environ),
        )

    def _stop(self, work: BatchRun[Line]) -> None:
        work.stop()
        self._session.runtime.interrupt()

    async def _print(self, work: BatchRun[Line], view: BatchView) -> None:
        """Print each result when it and all before it are there."""
        results = work.results()
        try:
            async for ordinal, line in results:
                self._write(line.text, view)
                if line.error is not None:
                    self._printed.add(ordinal, line.error)
                self._needed |= {json.dumps(entry, sort_keys=True): entry for entry in line.needed}
                if self._results.closed:
                    self._stop(work)
                    return
        finally:
            await results.aclose()  # type: ignore[attr-defined]

    def _write(self, line: str, view: BatchView) -> None:
        if self._results.is_terminal and self._session.animated:
            view.aside(lambda: self._results.write(line))
        else:
            self._results.write(line)

    def _end(self, progress: Progress, record: BatchRecord) -> int:
        """Say what has come of the batch and how to continue, and return the exit code."""
        from llm_do.ui.live.batch_view import summary_lines

        interrupted = progress.reason == "stopped"
        if not self._output.quiet:
            # Results after one that isn't there aren't printed; then this process knows only its own failures.
            failures = self._printed if progress.done == progress.total else progress.failures
            for line in [*summary_lines(progress, failures), *_next_steps(progress, record)]:
                warn(line)
            print_needed([*islice(self._needed.values(), SHOWN_NEEDED)])
            if len(self._needed) > SHOWN_NEEDED:
                warn(f"and {len(self._needed) - SHOWN_NEEDED:,} more: each line of the results has its own as `needed`")
        if self._results.closed:
            return PIPE_CLOSED
        if interrupted:
            kill_children()
            return self._interrupts.exit_code
        if progress.reason == "budget":
            return EXIT_CODES["limited"]
        if progress.waiting:
            return EXIT_CODES["suspended"]
        if self._frozen and self._needed:
            return EXIT_CODES["denied"]
        return EXIT_CODES["failed"] if progress.failed else 0


async def _tick(view: BatchView) -> None:
    while True:
        view.tick()
        await asyncio.sleep(TICK)


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[..., object], *args: object) -> None:
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(work, *args)


def _detached(record: BatchRecord, summary: BatchSummary) -> list[str]:
    """What is on the queue now, and how to get it done."""
    queued = summary.statuses.get("queued", 0)
    again = [word for word in sys.argv[1:] if word != "--detach"]
    for at in [at for at, word in enumerate(again) if word == "--retry"]:  # else what fails would run again
        del again[at : at + 2]
    return [
        f"batch {record.id}: {queued:,} of {record.total:,} inputs are on the queue, for `llm-do worker`"
        " with the same project and store",
        f"print the results: {shell_words(['llm-do', *again])}",
    ]


def _next_steps(progress: Progress, record: BatchRecord) -> list[str]:
    """What to do about what hasn't completed."""
    again = shell_words(["llm-do", *sys.argv[1:]])
    steps: list[str] = []
    if progress.reason == "stopped":
        steps.append(f"interrupted; the same command continues batch {record.id}")
    elif progress.reason == "budget":
        steps.append(
            f"the budget lets no other input start; the same command with a larger --budget-usd continues"
            f" batch {record.id}"
        )
    for run_id, error in list(progress.waits.items())[:SHOWN_WAITING]:
        steps.append(f"{run_id} waits: {error.message}. {error.hint or ''}".rstrip())
    if progress.waiting:
        steps.append(f"{progress.waiting:,} wait for a person; afterwards the same command continues them")
    if progress.failed and progress.reason == "done" and "--retry" not in sys.argv:
        steps.append(f"run what has failed again: {again} --retry failed")
    return steps
