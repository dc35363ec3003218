"""What one run's whole tree of calls shares: its budget, its ledger, its events. One per `Runtime.run`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import RunEndSignal
from llm_do.runtime.context.budget import BudgetMeter
from llm_do.runtime.record.events import Event, EventBase, Subscription
from llm_do.runtime.record.recording import ThreadView, UserView
from llm_do.runtime.record.results import ApprovalRecord, CallRecord, ErrorRecord, WarningRecord

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.context.call_frame import CallConfig
    from llm_do.runtime.record.recording import Recording

__all__ = ["RunState"]


@dataclass(slots=True, eq=False)
class RunState:
    """The shared state of one run.

    Args:
        run_id: The run's id.
        call_by_name: Calls what a name stands for, as a child of a call: what `CallContext.call` does.
        budget: What the run may use.
        subscriptions: Who hears its events.
        thread_id: The thread it belongs to.
        user_id: Whose it is.
        thread: What code sees of the thread.
        user: What code sees of the user.
        recording: What writes the run down while it goes on.
        records_steps: Whether the entry's own agent is recorded step by step.
        conversation: The history of the agent that spoke last, of those that the entry called itself.
        memory: What tools' decorators keep for as long as the run.
        noted: The failures in `errors`, by identity.
        ends: What ended the run, once it has come to code that might not let it through.
        loop: The event loop it runs in.
    """

    run_id: str
    call_by_name: Callable[[CallContext, str, object], Awaitable[Any]]
    budget: BudgetMeter
    subscriptions: list[Subscription]
    thread_id: str | None = None
    user_id: str | None = None
    thread: ThreadView = field(default_factory=ThreadView)
    user: UserView = field(default_factory=UserView)
    recording: Recording | None = None
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
    noted: dict[int, BaseException] = field(default_factory=dict[int, BaseException])
    ends: RunEndSignal | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def raise_if_ended(self) -> None:
        """Nothing, unless the run has ended though code of the project's goes on."""
        if self.ends is not None:
            raise self.ends

    def in_its_loop(self, tell: Callable[[], None]) -> None:
        """Call something in the run's event loop, at once where that is here: events are written there only."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self.loop:
            tell()
            return
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(tell)

    def is_heard(self) -> bool:
        """Whether anybody hears events, or they are written down."""
        return bool(self.subscriptions) or self.recording is not None

    def streams_text(self) -> bool:
        """Whether anything hears text as it comes."""
        return any(subscription.wants_text() for subscription in self.subscriptions)

    def emit(self, kind: Callable[..., EventBase], config: CallConfig, **data: Any) -> None:
        """Write one event of a call and hand it to who wants it."""
        if not self.is_heard():
            self.seq += 1
            return
        event = self.make(kind, config, **data)
        if self.recording is not None:
            self.recording.add_event(event)
        self.deliver(event)

    def make(self, kind: Callable[..., EventBase], config: CallConfig, **data: Any) -> Any:
        """The next event of the run, which nobody has heard yet."""
        seq = self.seq
        self.seq += 1
        return kind(
            seq=seq,
            time=time.time(),
            run_id=self.run_id,
            call_id=config.call_id,
            parent_call_id=config.parent_call_id,
            agent_name=config.name,
            path=config.path or config.name,
            depth=config.depth,
            **data,
        )

    def deliver(self, event: Event) -> None:
        """Hand one event to every subscriber whose filter lets it through."""
        for subscription in list(self.subscriptions):
            subscription.deliver(event, self.thread_id, self.user_id)

    def note_error(self, error: BaseException, agent_path: str) -> None:
        """Remember a failure once, however many calls it passes through."""
        if isinstance(error, RunEndSignal):
            error = error.error
        if id(error) in self.noted or not isinstance(error, Exception):
            return
        self.noted[id(error)] = error  # kept, so that no other can have its id
        self.errors.append(ErrorRecord.of(error, agent_path))

    def unique_call_id(self, wanted: str) -> str:
        """`wanted`, or with a number behind it when a model used a tool call id twice."""
        call_id, number = wanted, 1
        while call_id in self.call_ids:
            number += 1
            call_id = f"{wanted}#{number}"
        self.call_ids.add(call_id)
        return call_id
