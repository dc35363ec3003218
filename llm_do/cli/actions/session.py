"""Runs in this process: their event loop, their signals, and what they show while they last."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from llm_do._startup.process import resume_collector
from llm_do.cli.actions.cassette import SessionCassette
from llm_do.cli.process.signals import guard_children
from llm_do.cli.process.streams import Capture, Results, warn, write_all, write_stderr
from llm_do.errors import StoreError, UsageError
from llm_do.formats.lock import FILE
from llm_do.models.providers.model_names import parse_override
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.model_events import TextDoneEvent
from llm_do.runtime.record.events.run_events import RunStartedEvent
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.runtime import Runtime
from llm_do.runtime.session.runtime_config import RuntimeConfig
from llm_do.text.json_data import to_json_data
from llm_do.text.output_text import output_text
from llm_do.text.sanitizer import sanitize
from llm_do.ui.live.display import Display
from llm_do.ui.terminal.screen import can_animate, draws_lines, in_ci, wants_color
from llm_do.ui.terminal.size import terminal_size
from llm_do.ui.terminal.terminal import find_terminal

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import OutputOptions, SessionOptions
    from llm_do.cli.process.signals import Interrupts
    from llm_do.project.project import Project
    from llm_do.runtime.context.user_questions import AskUser
    from llm_do.runtime.record.results import RunResult
    from llm_do.runtime.record.transport import Transport
    from llm_do.runtime.session.run_options import EntryOptions, RuntimeOptions
    from llm_do.runtime.steps.durable_run import InFlightAnswers
    from llm_do.ui.approval.asker import Asker

__all__ = ["Session", "log_to_stderr", "runtime_config"]

T = TypeVar("T")

TICK = 0.1
"""Seconds between two updates of the live tree."""

CLOSING = 0.5
"""Seconds that connections and remaining tasks have to close after a run."""


class Session:
    """The runtime of this process, with its display, its approvals and its signals.

    Args:
        project: The project.
        options: Its models, approvals and limits.
        output: What is shown of it.
        results: Where events go, if they are the output.
        interrupts: Learns how to end the run.
        asks: Whether a person at the terminal watches a single run, and is asked.

    Raises:
        UsageError: An option's value is invalid.
    """

    def __init__(
        self,
        project: Project,
        options: SessionOptions,
        output: OutputOptions,
        results: Results,
        interrupts: Interrupts,
        *,
        asks: bool = True,
    ) -> None:
        self._streams_events = output.output == "events"
        self._results = results
        self._interrupts = interrupts
        self.events_to_close: tuple[Event, ...] = ()
        verbosity = output.verbosity
        if verbosity == 0 and options.approve_all and in_ci(os.environ):
            verbosity = 1
        self.animated = verbosity >= 0 and can_animate(os.environ)
        self.color = self.animated and wants_color(os.environ, no_color=output.no_color)
        self._live = self.animated and verbosity == 0 and asks
        self._verbosity = verbosity
        # Its own way to the terminal: while the tree is drawn, stderr is caught and shown above it.
        self._screen = os.dup(2) if self._live else 2
        self.display = Display(
            partial(write_all, self._screen) if self._live else write_stderr,
            verbosity,
            animate=self._live,
            color=self.color,
            lines=draws_lines(os.environ),
            size=partial(terminal_size, self._screen),
        )
        self.show_notice: Callable[[str], None] = self.display.line
        self._terminal = find_terminal(os.environ, self._screen) if asks else None
        self.asker: Asker | None = None
        if self._terminal is not None:
            from llm_do.ui.approval.asker import Asker  # a run that asks no one needs nothing to draw questions with

            self.asker = Asker(self._terminal, self.display, color=self.color, lines=draws_lines(os.environ))
        self._write_error: StoreError | None = None
        self._texts: set[str] = set()
        self._notices: set[str] = set()
        self._cassette = SessionCassette(project, options.record_to, options.replay)
        self._was_interrupted = False
        self.runtime = Runtime(project, config=self._config(project, options))
        if options.record_approvals:
            self.runtime.approver.granted = []
        log_to_stderr(output)

    def _config(self, project: Project, options: SessionOptions) -> RuntimeConfig:
        if options.record_approvals and self._terminal is None:
            raise UsageError(
                "--record-approvals asks on a terminal, and there is none",
                hint=f"A denied call's entry for {FILE} is printed at the end.",
            )
        return runtime_config(
            project,
            options,
            RunApprovalPolicy("prompt", self.asker),
            ask_user=self.asker.ask_user if self.asker is not None else None,
            notice=self._notice,
            transport=self._cassette.transport,
        )

    def _notice(self, text: str) -> None:
        if self._verbosity >= 0 and text not in self._notices:
            self._notices.add(text)
            self.show_notice(sanitize(" ".join(text.split())))

    def serve(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in an event loop of its own, then close what runs have opened."""
        if self.runtime.project.python_files:
            guard_children()
        resume_collector()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)

        async def work_and_close() -> T:
            try:
                done = await work()
                (self._cassette.discard if self._was_interrupted else self._cassette.save)(self._notice)
                return done
            finally:
                await _briefly(self.runtime.aclose())
                await _end_others()

        return loop.run_until_complete(work_and_close())

    async def execute(self, value: object, promise: str | None = None, **options: Unpack[EntryOptions]) -> RunResult:
        """Carry out one run and show its progress; `promise` is said of a durable one once the store has it."""
        return await self._show(partial(self.runtime.execute, value, **options), promise)

    async def resume(self, run_id: str, in_flight: InFlightAnswers, *, accept_changes: bool) -> RunResult:
        """Continue a durable run and show its progress."""
        again = partial(self.runtime.execute_again, run_id, in_flight=in_flight, accept_changes=accept_changes)
        return await self._show(again)

    async def _show(self, work: Callable[..., Awaitable[RunResult]], promise: str | None = None) -> RunResult:
        loop = asyncio.get_running_loop()
        text = self._verbosity >= 2 or self._live or self._streams_events
        said = partial(self.display.line, sanitize(promise)) if promise is not None and self._verbosity >= 0 else None
        subscription = Subscription(self._on_event, text=text, on_durable=said)
        ticking = asyncio.ensure_future(self._tick()) if self._live else None
        capture = Capture(lambda text: _soon(loop, self.display.foreign, text)) if self._live else None
        self._interrupts.stop = self.runtime.interrupt
        output: str | None = None
        if self._terminal is not None and self._live:
            self._interrupts.restore = self._terminal.unmute
            self._terminal.mute()
        try:
            result = await work(subscription=subscription)
            output = output_text(result.output) if result.error is None else None
            self._was_interrupted |= result.status == "interrupted"
            if self._write_error is not None:
                raise self._write_error
            return result
        finally:
            if ticking is not None:
                ticking.cancel()
            if capture is not None:
                capture.close()
                await asyncio.sleep(0)
            if self._terminal is not None:
                self._terminal.unmute()
            self.display.end(output=output)

    async def ask(self, text: str) -> str:
        """Ask whoever started the run, and return the line that is typed; empty without a terminal."""
        if self._terminal is None:
            return ""
        self._terminal.write(text)
        return (await self._terminal.read_line() or "").strip()

    def wrote(self, text: str) -> bool:
        """Whether a model of the last run wrote exactly this text, so that it may be Markdown."""
        return text.strip() in self._texts

    def _on_event(self, event: Event) -> None:
        if isinstance(event, RunStartedEvent):
            self._texts.clear()
        elif isinstance(event, TextDoneEvent):
            self._texts.add(event.text.strip())
        if event.type == "run_started" and self._interrupts.signum is not None:
            # The signal came when there was nothing to interrupt yet.
            asyncio.get_running_loop().call_soon(self.runtime.interrupt)
        self.display.on_event(event)
        if self._streams_events and not self._results.closed:
            self.events_to_close = (event,) if event.type == "run_started" else (*self.events_to_close[:1], event)
            try:
                line = json.dumps(to_json_data(event.to_dict()), ensure_ascii=False)
                self._results.write(f"{redactor()(line)}\n")
            except StoreError as error:
                self._write_error = error
            if self._results.closed:
                # Once this call is over: the run's task may be just beginning.
                asyncio.get_running_loop().call_soon(self.runtime.interrupt)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.display.tick()


def runtime_config(
    project: Project,
    options: SessionOptions,
    asked: RunApprovalPolicy,
    *,
    ask_user: AskUser | None,
    notice: Callable[[str], None],
    transport: Transport | None = None,
) -> RuntimeConfig:
    """The configuration of a session that a command line asks for.

    Args:
        project: The project.
        options: The session's options.
        asked: Who answers questions, unless the options or the project answer all of them.
        ask_user: Puts an agent's question to a person.
        notice: Shows a notice.
        transport: Records or replays model requests.
    """
    override = parse_override(options.models)
    budget = project.settings.budget
    approvals = asked
    if options.approve_all or options.reject_all:
        approvals = RunApprovalPolicy("approve_all" if options.approve_all else "reject_all")
    elif project.settings.approval_mode != "prompt":
        approvals = RunApprovalPolicy(project.settings.approval_mode)
    changes: RuntimeOptions = {
        **options.shared,
        "approvals": approvals,
        "model": override.everyone,
        "models": override.agents,
        "ask_user": ask_user,
        "record": project.record and not options.no_record,
        "transport": transport,
    }
    return RuntimeConfig.of(
        project,
        **changes,
        budget=budget if options.budget_usd is None else replace(budget, cost_usd=options.budget_usd),
        notice=notice,
    )


def _soon(loop: asyncio.AbstractEventLoop, show: Callable[[str], None], text: str) -> None:
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(show, text)


async def _briefly(closing: Coroutine[Any, Any, None]) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSING):
            await closing


async def _end_others() -> None:
    """Cancel tasks that the project's code has left running; the process is about to end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=CLOSING)


def log_to_stderr(output: OutputOptions) -> None:
    """Let libraries' log messages look like everything else on stderr."""
    level = logging.ERROR if output.verbosity < 0 else logging.WARNING
    logging.basicConfig(level=level, handlers=[_Log(output.debug)])


class _Log(logging.Handler):
    """Log records as lines, so that libraries' messages look like everything else on stderr.

    Args:
        debug: Show their tracebacks.
    """

    def __init__(self, debug: bool) -> None:
        super().__init__()
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            text = str(record.msg)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            text += f": {type(error).__name__}: {error}"
        warn(sanitize(f"{record.levelname.lower()}: {record.name}: {' '.join(text.split())}"))
        if self._debug and error is not None:
            import traceback

            warn("".join(traceback.format_exception(error)))
