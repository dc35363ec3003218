"""The conversation of `llm-do chat`: its turns, what Ctrl-C does in them, and how it ends."""

from __future__ import annotations

import json
import os
import re
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.cli.actions import failure
from llm_do.cli.actions.chat.chat_commands import COMMANDS, run_command
from llm_do.cli.actions.chat.chat_memory import Memory
from llm_do.cli.actions.run_action import carry_out, open_target, prepare
from llm_do.cli.actions.run_output import print_errors, print_output, print_summary, result_line, same_options
from llm_do.cli.arguments.run_input import attach_files, first_message, require_text_input
from llm_do.cli.arguments.target import resolve, say_if_bare
from llm_do.cli.process import stdin
from llm_do.cli.process.signals import Interrupts, kill_children
from llm_do.cli.process.streams import PIPE_CLOSED, Results, warn
from llm_do.errors import LlmDoError, UsageError
from llm_do.files.local_folder import make_folder
from llm_do.ui.reports.error_text import error_text
from llm_do.ui.terminal.prompt import Leave, LinePrompt, Prompt, TerminalPrompt, candidates

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import CommandOptions
    from llm_do.project.project import Project
    from llm_do.runtime.record.results import RunResult

__all__ = ["Chat", "ChatInput", "start"]

_COMMAND = re.compile(r"/[a-z]+(\s|$)")
"""A command, known or not; a path has another slash or a dot."""


def start(options: CommandOptions, *, last: bool) -> int:
    """Converse until the person leaves."""
    return carry_out(options, partial(_converse, last=last), owes_result=False)


def _converse(options: CommandOptions, results: Results, interrupts: Interrupts, *, last: bool) -> int:
    if last and options.call.get("thread_id") is not None:
        raise UsageError("--continue and --thread exclude each other", hint="Keep one of them.")
    if options.call.get("run_id") is not None:
        raise UsageError(
            "--run-id names one run, and each turn is a run of its own", hint="Name the thread: --thread ID."
        )
    arguments, entry = options.input, options.entry
    target = resolve(arguments.project, arguments.prompt, arguments.named, models=options.session.models)
    prepare(otel=options.otel)
    project = open_target(target, options, last=last)
    say_if_bare(target, options.output, options.session)
    if not project.allow_cli_input:
        raise UsageError(
            "the project takes no input from the command line", hint="Set `allow_cli_input` in project.json."
        )
    require_text_input(project, entry)
    first = first_message(project, arguments, target.prompt, entry)
    if options.dry_run:
        from llm_do.cli.actions.dry_run import show

        value = attach_files(project, entry, first, arguments.attach) if first is not None else None
        return show(project, options, value, results, needed=False)
    from llm_do.cli.actions.session import Session

    session = Session(project, options.session, options.output, results, interrupts)
    chat = Chat(project, options, results, interrupts, session)
    code = session.serve(lambda: chat.talk(first, last=last))
    if options.session.record_approvals:
        from llm_do.cli.actions.lock.recorded_approvals import record_approvals

        record_approvals(session)
    return code


@frozen
class ChatInput:
    """A person's message in a turn.

    Args:
        value: Text, or an object from the command line.
        attach: The files attached on the command line.
    """

    value: object
    attach: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The message, for display."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)


class Chat:
    """One conversation.

    Args:
        project: The project.
        options: The command line.
        results: Where answers go.
        interrupts: What signals do.
        session: Runs the turns.
    """

    def __init__(
        self, project: Project, options: CommandOptions, results: Results, interrupts: Interrupts, session: Session
    ) -> None:
        self.project = project
        self.entry = options.entry
        self.session = session
        record = not options.session.no_record
        self.memory = Memory(project, options.call, record=record, same=same_options(options))
        self.turns: list[ChatInput] = []
        self._output = options.output
        self._no_record = options.session.no_record
        self._attach = options.input.attach
        self._results = results
        self._interrupts = interrupts
        self._code = 0

    async def talk(self, first: object, *, last: bool) -> int:
        """Take turns until the person leaves or the input ends."""
        note = await self.memory.open(last=last)
        prompt = self._prompt()
        if self.session.animated:
            warn(f"{note} (/help, Ctrl-D leaves)")
        await self.say_what_waits()
        while True:
            try:
                value = first if first is not None else await self._next(prompt)
            except Leave as leave:
                return 130 if leave.interrupted else self._code
            first = None
            if isinstance(value, str) and _COMMAND.match(value):
                if not await self._command(value):
                    return self._code
            else:
                attach, self._attach = self._attach, ()
                await self.turn(ChatInput(value, attach))
            if self._results.closed:
                return PIPE_CLOSED if self._output.output == "events" and not self._code else self._code
            if self._interrupts.ends_process:
                return self._interrupts.exit_code

    async def say_what_waits(self) -> None:
        """Say that a run on the thread has stopped, and how to continue or drop it."""
        if (waiting := await self.memory.waiting()) is not None:
            warn(waiting)

    async def _next(self, prompt: Prompt) -> str:
        """The next message; a signal that arrives meanwhile ends the conversation."""
        import asyncio

        reading = asyncio.ensure_future(prompt.read())
        loop = asyncio.get_running_loop()
        self._interrupts.stop = lambda: loop.call_soon_threadsafe(reading.cancel) and None
        try:
            return await reading
        except asyncio.CancelledError:
            if self._interrupts.signum is None:
                raise
            raise KeyboardInterrupt from None

    async def turn(self, message: ChatInput) -> None:
        """Run one turn and show its result."""
        output = self._output
        self._interrupts.last_words = lambda: failure.print_last_words(
            output.output, self._results, self._interrupts.description, self.session.events_to_close
        )
        started = time.monotonic()
        try:
            await self.memory.mark()
            self.turns.append(message)
            value = attach_files(self.project, self.entry, message.value, message.attach)
            result = await self.session.execute(value, **self.memory.options())
        except LlmDoError as error:
            self._code = failure.print_failure(error, debug=output.debug)
            self._results.write(failure.line(error, output.output))
        else:
            self.memory.keep(result)
            self._show(result, time.monotonic() - started)
        finally:
            self._interrupts.last_words = lambda: None

    def _show(self, result: RunResult, seconds: float) -> None:
        if self._output.output == "json":
            self._results.write(result_line(result))
        if result.status == "interrupted" and self._results.closed:
            return  # the reader has gone away
        if result.status == "interrupted" and not self._interrupts.ends_process:
            kill_children()
            self._interrupts.forget()
            warn("interrupted; you can continue the conversation")
            return
        print_errors(result, debug=self._output.debug)
        if result.exit_code:
            self._code = result.exit_code
        if result.error is None and self._output.output == "text":
            print_output(result, self._results, self.session)
        print_summary(result, seconds, self._output, self.session)

    async def _command(self, text: str) -> bool:
        try:
            return await run_command(self, text)
        except LlmDoError as error:
            failure.print_failure(error)
        except OSError as error:
            warn(error_text(error))
        return True

    def _prompt(self) -> Prompt:
        if not os.isatty(0):
            if not stdin.is_data():
                return _EndOfInput()
            return LinePrompt()
        if not self.session.animated:
            return LinePrompt()
        agents = [spec.name for spec in self.project.registry.agents()]
        return TerminalPrompt(
            "> ",
            lambda before: candidates(before, list(COMMANDS), agents, Path.cwd()),
            self._history(),
            warn,
        )

    def _history(self) -> Path | None:
        """The file of earlier messages, if there can be one."""
        if self._no_record or not self.project.record:
            return None
        try:
            file = make_folder(self.project.root) / "chat_history"
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        except OSError:
            return None
        return file


class _EndOfInput:
    """There is no stdin: the command line's message is the only one."""

    async def read(self) -> str:
        """End the conversation."""
        raise Leave
