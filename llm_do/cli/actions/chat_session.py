"""The conversation of `llm-do chat`: turns, what Ctrl-C means in them, how it ends. Its commands are elsewhere."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._frozen import frozen
from llm_do.cli.actions import failure
from llm_do.cli.actions.chat_commands import COMMANDS, carry_out
from llm_do.cli.actions.chat_memory import Memory
from llm_do.cli.actions.run_action import check_options, link, prepare, print_output, result_line, tell_errors
from llm_do.cli.arguments.run_input import attach_files, first_message, require_text_input
from llm_do.cli.arguments.target import resolve
from llm_do.cli.process import stdin
from llm_do.cli.process.signals import Interrupts, kill_children
from llm_do.cli.process.streams import PIPE_CLOSED, Results, claim_stdout, warn
from llm_do.errors import LlmDoError, StoreError, UsageError
from llm_do.files.local_folder import make_folder
from llm_do.ui.reports.error_text import error_text
from llm_do.ui.terminal.prompt import Leave, LinePrompt, Prompt, TerminalPrompt, candidates

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import RunOptions
    from llm_do.project.project import Project
    from llm_do.runtime.record.results import RunResult

__all__ = ["Chat", "ChatInput", "start"]

_COMMAND = re.compile(r"/[a-z]+(\s|$)")
"""What is a command, known or not; a path has another slash or a dot."""


def start(options: RunOptions, *, last: bool) -> int:
    """Talk until the person leaves."""
    results = claim_stdout()
    interrupts = Interrupts()
    interrupts.install()
    try:
        check_options(options)
        if last and options.thread is not None:
            raise UsageError("--continue and --thread exclude each other", hint="Keep one of them.")
        target = resolve(options.project, options.prompt, options.named)
        prepare(options)
        project = link(target.path, options)
        if not project.allow_cli_input:
            raise UsageError(
                "the project takes no input from the command line", hint="Set `allow_cli_input` in project.json."
            )
        require_text_input(project, options.entry)
        first = first_message(project, options, target.prompt)
        if options.dry_run:
            from llm_do.cli.actions.dry_run import show

            value = attach_files(project, options.entry, first, options.attach) if first is not None else None
            return show(project, options, value, results, needed=False)
        from llm_do.cli.actions.session import Session

        session = Session(project, options, results, interrupts)
        chat = Chat(project, options, results, interrupts, session)
        return session.serve(lambda: chat.talk(first, last=last))
    except KeyboardInterrupt:
        kill_children()
        return interrupts.exit_code
    except StoreError as error:
        return failure.report(error, "text", results, debug=options.debug)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is told in the form that was asked for)
        return failure.report(failure.as_llm_do_error(error), options.output, results, debug=options.debug)


@frozen
class ChatInput:
    """What a person said in a turn.

    Args:
        value: Text, or an object that the command line gave.
        attach: Files that the command line gave with it.
    """

    value: object
    attach: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The same, to be shown."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)


class Chat:
    """One conversation.

    Args:
        project: The project.
        options: The command line.
        results: Where answers go.
        interrupts: What signals do.
        session: Carries turns out.
    """

    def __init__(
        self, project: Project, options: RunOptions, results: Results, interrupts: Interrupts, session: Session
    ) -> None:
        self.project = project
        self.options = options
        self.session = session
        self.memory = Memory(project, options)
        self.said: list[ChatInput] = []
        self._attach = options.attach
        self._results = results
        self._interrupts = interrupts
        self._code = 0

    async def talk(self, first: object, *, last: bool) -> int:
        """Take turns until there are no more."""
        note = await self.memory.open(last=last)
        prompt = self._prompt()
        if self.session.animated:
            warn(f"{note} (/help, Ctrl-D leaves)")
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
                return PIPE_CLOSED if self.options.output == "events" and not self._code else self._code
            if self._interrupts.signum == 15:
                return 143

    async def _next(self, prompt: Prompt) -> str:
        """What is said next; a signal that comes meanwhile ends the conversation."""
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

    async def turn(self, said: ChatInput) -> None:
        """Carry out one turn, and show what came of it."""
        options = self.options
        self._interrupts.last_words = lambda: failure.print_last_words(
            options.output, self._results, self.session.heard
        )
        started = time.monotonic()
        try:
            await self.memory.mark()
            self.said.append(said)
            value = attach_files(self.project, options.entry, said.value, said.attach)
            result = await self.session.execute(value, **self.memory.options())
        except LlmDoError as error:
            self._code = failure.print_failure(error, debug=options.debug)
            self._results.write(failure.line(error, options.output))
        else:
            self.memory.keep(result)
            self._show(result, time.monotonic() - started)
        finally:
            self._interrupts.last_words = lambda: None

    def _show(self, result: RunResult, seconds: float) -> None:
        if self.options.output == "json":
            self._results.write(result_line(result))
        if result.status == "interrupted" and self._results.closed:
            return  # nobody listens any more
        if result.status == "interrupted" and self._interrupts.signum != 15:
            kill_children()
            self._interrupts.forget()
            warn("interrupted; the conversation goes on")
            return
        tell_errors(result, debug=self.options.debug)
        if result.exit_code:
            self._code = result.exit_code
        if result.error is None and self.options.output == "text":
            print_output(result, self._results, self.session)
        if self.options.verbosity >= 1 or (self.options.verbosity == 0 and self.session.animated):
            from llm_do.ui.live.event_lines import summary_line

            warn(summary_line(result, seconds))

    async def _command(self, text: str) -> bool:
        try:
            return await carry_out(self, text)
        except LlmDoError as error:
            failure.print_failure(error)
        except OSError as error:
            warn(error_text(error))
        return True

    def _prompt(self) -> Prompt:
        if not os.isatty(0):
            if not stdin.is_data():
                return _Nobody()
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
        """The file of what was said before, if there can be one."""
        if self.options.no_record or not self.project.record:
            return None
        try:
            file = make_folder(self.project.root) / "chat_history"
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        except OSError:
            return None
        return file


class _Nobody:
    """There is no stdin: what was said on the command line is all."""

    async def read(self) -> str:
        """Nothing."""
        raise Leave
