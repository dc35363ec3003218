"""The state that one run's whole tree of calls shares: its budget, records and events. One per `Runtime.run`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from llm_do.concurrency.open_tasks import OpenTasks
from llm_do.concurrency.run_end import RunEndSignal
from llm_do.errors import RunError
from llm_do.runtime.context.budget import BudgetMeter
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.event_base import EventBase
from llm_do.runtime.record.events.model_events import TextEvent
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.recording import ThreadView, UserView
from llm_do.runtime.record.results import ApprovalRecord, CallRecord, ErrorRecord, WarningRecord

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from llm_do.files.changes.run_keeper import RunKeeper
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.context.call_frame import CallConfig
    from llm_do.runtime.record.recording import Recording
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.steps.durable_run import DurableRun

__all__ = ["RunState"]


@dataclass(slots=True, eq=False)
class RunState:
    """The shared state of one run.

    Args:
        run_id: The run's id.
        call_by_name: Calls a registered name as a child of a call, for `CallContext.call`.
        run_code_step: Runs what `CallContext.step` is given.
        budget: The run's budget.
        root: The project's folder.
        subscriptions: The subscribers to its events.
        thread_id: The id of its thread.
        user_id: The id of its user.
        thread: The thread as code in the run sees it.
        user: The user as code in the run sees it.
        recording: The record that is written during the run.
        keeper: What keeps the files that it changes; None if nothing is kept.
        durable: What makes it durable; None if it isn't.
        records_steps: Whether the entry's own agent is recorded step by step.
        conversation: The history of the agent that the entry itself called last, which may not be the last to end.
        memory: What tool decorators remember during the run.
        recorded_errors: The records in `errors`, by the identity of their exceptions.
        deps: The dependencies that it was given, for the agents that declare their type.
        end_signal: What ended the run, kept in case the project's code swallows the exception.
        returned: What its entry returned, and the same as JSON data.
        loop: The event loop it runs in.
        tasks: The tasks in which the project's code makes calls.
        over: Whether its last event has been emitted.
    """

    run_id: str
    call_by_name: Callable[[CallContext, str, object, str], Awaitable[Any]]
    run_code_step: Callable[[CallContext, str, Callable[..., Any], tuple[Any, ...]], Awaitable[Any]]
    budget: BudgetMeter
    root: Path
    subscriptions: list[Subscription]
    thread_id: str | None = None
    user_id: str | None = None
    thread: ThreadView = field(default_factory=ThreadView)
    user: UserView = field(default_factory=UserView)
    recording: Recording | None = None
    keeper: RunKeeper | None = None
    durable: DurableRun | None = None
    records_steps: bool = False
    conversation: Sequence[ModelMessage] = ()
    memory: dict[Any, Any] = field(default_factory=dict[Any, Any])
    steps: int = 0
    calls: list[CallRecord] = field(default_factory=list[CallRecord])
    errors: list[ErrorRecord] = field(default_factory=list[ErrorRecord])
    denials: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    approvals: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    warnings: list[WarningRecord] = field(default_factory=list[WarningRecord])
    unattended: bool = False
    call_ids: set[str] = field(default_factory=set[str])
    seq: int = 0
    recorded_errors: dict[int, ErrorRecord] = field(default_factory=dict[int, ErrorRecord])
    deps: object = None
    end_signal: RunEndSignal | None = None
    returned: tuple[Any, Any] = (None, None)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    tasks: OpenTasks = field(default_factory=OpenTasks)
    over: bool = False
    _last_time: float = 0.0
    _conversations: int = 0
    _conversation: int = 0

    @property
    def usage(self) -> Usage:
        """What the run has used so far, nested calls included."""
        return self.budget.used

    def begin_conversation(self) -> int:
        """The number of an agent's call, in the order in which they begin."""
        self._conversations += 1
        return self._conversations

    def keep_conversation(self, number: int, messages: Sequence[ModelMessage]) -> None:
        """Keep the history of an agent that the entry called, unless one that began later has ended already."""
        if number >= self._conversation:
            self._conversation, self.conversation = number, messages

    @property
    def replays(self) -> bool:
        """Whether steps of earlier attempts at a durable run haven't been replayed yet."""
        return self.durable is not None and self.durable.log.replays

    def raise_if_ended(self) -> None:
        """Raise the end signal, or a `RunError`, if the run has ended while the project's code is still running."""
        if self.end_signal is not None:
            raise self.end_signal
        if self.over:
            raise RunError("the run has ended", hint="Code makes its calls before its entry returns: await them there.")

    def run_in_loop(self, callback: Callable[[], None]) -> None:
        """Call a function in the run's event loop, at once if that is the current one; only that loop emits events."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self.loop:
            callback()
            return
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback)

    def has_listeners(self) -> bool:
        """Whether events have subscribers or are recorded."""
        return bool(self.subscriptions) or self.recording is not None

    def streams_text(self) -> bool:
        """Whether a subscriber receives text deltas."""
        return any(subscription.wants_text() for subscription in self.subscriptions)

    def emit(self, kind: Callable[..., EventBase], config: CallConfig, **data: Any) -> None:
        """Record one event of a call and deliver it to its subscribers.

        A durable run emits each event once over all its attempts, and delivers it once it is on disk, as all before it.
        """
        durable = self.durable
        if durable is not None and durable.stopping:
            return
        if not self.has_listeners():
            self.seq += 1
            return
        if durable is not None:
            identity = config.call_id, cast("Any", kind).type, data.get("tool_call_id", "")
            if kind is TextEvent or not durable.is_emitted(*identity):
                assert self.recording is not None
                self.recording.add_event(self.make_event(kind, config, **data))
            return
        event = self.make_event(kind, config, **data)
        if self.recording is not None:
            self.recording.add_event(event)
        self.deliver(event)

    def make_event(self, kind: Callable[..., EventBase], config: CallConfig, **data: Any) -> Any:
        """Return the next event of the run, without delivering it."""
        seq = self.seq
        if self.durable is not None and kind is TextEvent:
            seq -= 1  # text isn't kept: it has the number of the last event that is
        else:
            self.seq += 1
        return kind(
            seq=seq,
            time=self._next_time(),
            run_id=self.run_id,
            call_id=config.call_id,
            parent_call_id=config.parent_call_id,
            agent_name=config.name,
            path=config.path or config.name,
            depth=config.depth,
            **data,
        )

    def continue_after(self, seq: int, time: float) -> None:
        """Number the next event `seq`, and make none that is earlier than the last event of an earlier attempt."""
        self.seq, self._last_time = seq, time

    def _next_time(self) -> float:
        """The time of the next event: a clock that is set back during the run makes none earlier than the last."""
        self._last_time = max(self._last_time, time.time())
        return self._last_time

    def deliver(self, event: Event) -> None:
        """Deliver one event to every subscriber whose filter matches."""
        for subscription in list(self.subscriptions):
            subscription.deliver(event, self.thread_id, self.user_id)

    def say_durable(self) -> None:
        """Tell every subscriber who asks for it that the store has the run, if it is durable."""
        if self.durable is not None:
            for subscription in list(self.subscriptions):
                subscription.say_durable()

    def record_error(self, error: BaseException, agent_path: str, raised_by: str | None = None) -> ErrorRecord:
        """Record a failure once, however many calls it passes through, and return its record.

        Args:
            error: The failure.
            agent_path: The call path of the agent concerned.
            raised_by: The project's function that raised it, if it is an exception of the project's own code.
        """
        if isinstance(error, RunEndSignal):
            error = error.error
        known = self.recorded_errors.get(id(error))
        if known is not None:
            return known
        record = ErrorRecord.of(error, agent_path, root=self.root, raised_by=raised_by)
        if not isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit):
            self.recorded_errors[id(error)] = record  # it keeps the exception, so that no other can reuse its id
            self.errors.append(record)
        return record

    def unique_call_id(self, base: str) -> str:
        """Return `base`, with a number appended if a model used a tool call id twice."""
        call_id, number = base, 1
        while call_id in self.call_ids:
            number += 1
            call_id = f"{base}#{number}"
        self.call_ids.add(call_id)
        return call_id
