"""`CallContext`: a call's view of its run, and the way to call others by name.

It is `RunContext.deps` inside tools, and the second argument of entry and flow functions.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import RunEndSignal
from llm_do.errors import AbortedError, PermissionDeniedError, ToolFailedError
from llm_do.runtime.record.events.run_events import WarningEvent
from llm_do.runtime.record.results import WarningRecord
from llm_do.runtime.tools.current_tool import CURRENT_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm_do.project.project import Project
    from llm_do.runtime.context.call_frame import CallFrame
    from llm_do.runtime.context.run_state import RunState
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.recording import ThreadView, UserView

__all__ = ["CURRENT_CALL", "CallContext", "current_call"]

CURRENT_CALL: ContextVar[CallContext] = ContextVar("llm_do_current_call")
"""The call whose agent is running in this task."""

ABORTS = (AbortedError, PermissionDeniedError, ToolFailedError)
"""Errors that end the whole run, even if the project's code that made the call would continue."""


class CallContext:
    """One call's view of its run.

    Args:
        runtime: The session that the call belongs to.
        run: The state that the run's whole tree of calls shares.
        frame: This call's own state.
        parent: The caller's context; None for the entry.
    """

    __slots__ = ("frame", "parent", "run", "runtime")

    def __init__(self, runtime: Session, run: RunState, frame: CallFrame, parent: CallContext | None = None) -> None:
        self.runtime = runtime
        self.run = run
        self.frame = frame
        self.parent = parent

    @property
    def project(self) -> Project:
        """The project of the run."""
        return self.runtime.project

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def call_id(self) -> str:
        """This call's id, derived from its caller's."""
        return self.frame.config.call_id

    @property
    def thread_id(self) -> str | None:
        """The id of the run's thread; None without one."""
        return self.run.thread_id

    @property
    def user_id(self) -> str | None:
        """The id of the run's user; None without one."""
        return self.run.user_id

    @property
    def thread(self) -> ThreadView:
        """The run's thread: its `state` is any JSON, changed in place or replaced, and saved with the run.

        Without a thread the state lives as long as the run, so that the same code works in both cases.
        """
        return self.run.thread

    @property
    def user(self) -> UserView:
        """The run's user; its `state` is shared by all of the user's threads."""
        return self.run.user

    @property
    def deps(self) -> Any:
        """The dependencies that this call's agent was given; in a function those of its caller, or else of the run.

        None if there are none: an agent has only its own, or those of the run that are of its `deps_type`.
        """
        if self.frame.deps is not None:
            return self.frame.deps[0]
        if self.frame.config.agent is not None:
            return None
        return self.parent.deps if self.parent is not None else self.run.deps

    @property
    def depth(self) -> int:
        """0 in the entry, 1 in what it calls, and so on."""
        return self.frame.config.depth

    @property
    def path(self) -> str:
        """Call path, such as `main/analyst`."""
        return self.frame.config.path or self.frame.config.name

    @property
    def cancelled(self) -> bool:
        """Whether the current work has been abandoned: the call has ended, or this tool call timed out.

        A long-running synchronous tool should check this and stop, since its thread can't be stopped from outside.
        """
        tool = CURRENT_TOOL.get()
        return self.frame.cancelled.is_set() or (tool is not None and tool.is_set())

    async def call(self, name: str, input: object, *, label: str = "") -> Any:
        """Call an agent, a flow or an exported function by name.

        Args:
            name: Its registered name.
            input: Its input: a mapping, an input model, or text (short for `{"input": text}`).
            label: What tells this call from others of the same name, such as a file, for people who watch the run.

        Returns:
            Its output: text, or a value of its output type.

        Raises:
            RunError: The name is unknown, the call is too deep, or it ended early; the error says which and where.
            InputError: The input doesn't fit its input model.

        Example:
            >>> async def main(input, ctx):
            ...     return await ctx.call("analyzer", {"input": "text"})
        """
        self.run.raise_if_ended()
        try:
            with self.run.tasks.open():
                return await self.run.call_by_name(self, name, input, label)
        except ABORTS as error:
            self.run.end_signal = RunEndSignal(error)
            raise self.run.end_signal from error
        except RunEndSignal as signal:
            self.run.end_signal = signal
            raise

    async def step(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Do something once over all attempts at a durable run, such as reading the clock or a random number.

        When the run is resumed, the result of the first time is returned. In any other run the function is called.

        Args:
            name: What it is, for people.
            function: The function, sync or async; it returns JSON data.
            args: Its arguments, JSON data too.

        Returns:
            What it returned, as the type that its annotation says.

        Raises:
            EntryError: The result can't be written as JSON data.

        Example:
            >>> async def main(input, ctx):
            ...     return await ctx.step("today", lambda: "2031-05-02")
        """
        self.run.raise_if_ended()
        with self.run.tasks.open():
            return await self.run.run_code_step(self, name, function, args)

    async def call_agent(self, name: str, input: object) -> Any:
        """Call an agent by name; equivalent to `call`."""
        return await self.call(name, input)  # 0.3's name: see llm_do.compat

    def warn(self, message: str) -> None:
        """Emit a warning, which doesn't end the run.

        Args:
            message: A sentence. A warning from an abandoned call is discarded.
        """
        if not self.cancelled:
            self.run.run_in_loop(partial(self._warn, message))

    def _warn(self, message: str) -> None:
        if not self.frame.cancelled.is_set():
            record = WarningRecord(message, self.path or None)
            if record not in self.run.warnings:
                self.run.warnings.append(record)
            self.run.emit(WarningEvent, self.frame.config, message=message)


def current_call() -> CallContext:
    """Return the call that runs in this task or thread, for code that isn't passed its `CallContext`.

    Raises:
        LookupError: No run of llm-do calls this code.

    Example:
        >>> from llm_do import AgentSpec, run
        >>> def where() -> str:
        ...     return current_call().path
        >>> run.sync(AgentSpec("scout", tools=[where]), "Go", model="test", approvals="approve_all").output
        '{"where":"scout"}'
    """
    return CURRENT_CALL.get()
