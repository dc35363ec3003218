"""`StoreRecorder`: what the runtime calls while a run goes on, so that a store has all of it at any moment.

Events and messages are queued and written in batches, one transaction each, while the run goes on; a tool's call and
its result start a batch, and a model's response isn't worked on before everything that led to it is on disk.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm_do.errors import LlmDoError, StoreError, ToolError
from llm_do.runtime.record.histories import close_history
from llm_do.runtime.record.recording import RecordedRun, ThreadConfig, ThreadView, UserView
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.runtime.record.thread_store import (
    Batch,
    EventRow,
    MessageRow,
    OpenedRun,
    PendingWrites,
    RunEnd,
    ThreadStore,
)
from llm_do.threads.opened_stores import memory_store, open_store, reason_unrecorded
from llm_do.threads.sqlite.rows import new_token
from llm_do.threads.store.codec import Redactor, event_text, message_text, redactor, state_text
from llm_do.threads.store.usable_history import usable_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.project.project import Project
    from llm_do.runtime.record.events import Event

__all__ = ["PASSING", "StoreRecorder", "StoreRecording"]

URGENT = frozenset(
    {
        "run_started",
        "tool_call",
        "tool_result",
        "approval_requested",
        "approval_resolved",
        "state_changed",
        "handoff",
        "retry",
    }
)
"""Events that are written at once; others go with the next of these, with a request, or with the run's end.

A retry is one because a run that begins again after a conflict has another recording from then on.
"""

PASSING = frozenset({"text"})
"""Events that aren't kept: what they tell in pieces, a later one tells whole."""


class StoreRecorder:
    """Begins the records of a project's runs.

    Args:
        project: The project.
        store: Where they are kept; None is the project's own store.
        notice: Told when nothing can be recorded.
    """

    def __init__(self, project: Project, store: ThreadStore | None, notice: Callable[[str], None]) -> None:
        self._project = project
        self._store = store
        self._own = store is None
        self._notice = notice

    async def begin(self, run: RecordedRun, entry: str) -> StoreRecording | None:
        """Open the run's thread and begin its record; a run that has no thread goes on where it can't be recorded."""
        record = RunRecord(run.run_id, "running", entry, run.thread_id, run.user_id, time.time())
        keeps = run.thread_id is not None or run.user_id is not None
        try:
            store = self._opened()
            begun = await store.begin_run(record, self._project.threads.config)
        except StoreError as error:
            if keeps and reason_unrecorded(self._project) is None:
                raise
            self._notice(f"this run is not recorded: {error.message}{f'. {error.hint}' if error.hint else ''}")
            if not keeps:
                return None
            store = self._store = memory_store()
            begun = await store.begin_run(record, self._project.threads.config)
        if begun.recovered:
            self._notice(f"thread {run.thread_id!r}: the end of its last run was not saved; what it had done is kept")
        return StoreRecording(store, run, begun, self._notice)

    async def aclose(self) -> None:
        """Close the project's own store."""
        if self._own and self._store is not None:
            await self._store.aclose()

    def _opened(self) -> ThreadStore:
        if self._store is None:
            reason = reason_unrecorded(self._project)
            if reason is not None:
                raise reason
            self._store = open_store(self._project)
        return self._store


class StoreRecording:
    """The record of one run.

    Args:
        store: Where it is kept.
        run: The run.
        begun: What the store has read for it.
        notice: Told when the journal can't be written.
    """

    def __init__(self, store: ThreadStore, run: RecordedRun, begun: OpenedRun, notice: Callable[[str], None]) -> None:
        self._store = store
        self._run = run
        self._begun = begun
        self._notice = notice
        self._hide: Redactor = redactor()
        thread = begun.thread
        whole = bool(begun.history) and begun.history[0].parent is None
        self.history: list[ModelMessage] = close_history(
            usable_part([each.message for each in begun.history], whole=whole)
        )
        self.toolkits: Mapping[str, Any] = thread.toolkits if thread is not None else {}
        run.thread = ThreadView(run.thread_id, thread.state if thread is not None else {}, _config(begun))
        run.user = UserView(run.user_id, begun.user_state)
        self._state = _text(run.thread.state, "")
        self._user_state = _text(run.user.state, "")
        self._sent_state, self._sent_user = self._state, self._user_state
        self._gates: Callable[[], Mapping[str, ToolkitState]] = dict
        self._sent_gates: Mapping[str, ToolkitState] = {}
        self._past: int | None = None
        self._messages: list[tuple[ModelMessage, MessageRow]] = []
        self._events: list[EventRow] = []
        self._new: list[MessageRow] = []
        self._dropped: list[str] = []
        self._writing: asyncio.Task[None] | None = None
        self._wanted = False
        self._failure: StoreError | None = None
        self._fault: ToolError | None = None

    @property
    def active(self) -> str | None:
        """The agent that was in control at the end of the thread's last run."""
        thread = self._begun.thread
        return thread.carried.get("active") if thread is not None else None

    # -- while the run goes on

    def attach(self, toolkits: Callable[[], Mapping[str, ToolkitState]]) -> None:
        """Say how the states of the entry agent's toolkits are found while it runs."""
        self._gates = toolkits

    def heard(self, event: Event) -> None:
        """Write an event to the journal; returns at once."""
        if event.type in PASSING:
            return
        self._events.append(self._row(event))
        if event.type in URGENT:
            self._begin_writing()

    def step(self, messages: Sequence[ModelMessage]) -> None:
        """Write what the entry agent's history has become; returns at once."""
        if self._begun.thread is not None:
            self._take(messages, exact=False)
        self._begin_writing()

    async def written(self) -> None:
        """Wait until everything before is on disk, or can't be."""
        while self._writing is not None and not self._writing.done():
            await asyncio.shield(self._writing)

    async def finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        *,
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
    ) -> None:
        """Save the end of the run in one transaction."""
        await _patiently(self._finish(event, messages, toolkits, active, effects))

    async def _finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
    ) -> None:
        await self.written()
        thread = self._begun.thread
        status = getattr(event, "status", "failed")
        if thread is not None and messages:
            self._take(messages, exact=True)
        if self._fault is None:
            self._fault = self._spoilt()
            if self._fault is not None and event.type == "run_finished":
                # Nothing is saved yet: the run ends with this fault, and its other last event is still to come.
                raise self._fault
        state = user = None
        if self._fault is None:
            state = self._changed(state_text(self._run.thread.state, ""), self._state)
            user = self._changed(state_text(self._run.user.state, ""), self._user_state)
        self._events.append(self._row(event))
        ending = RunEnd(
            batch=replace(self._batch(), draft=None),
            status=status,
            time=event.time,
            turn=thread.turn if thread is not None else None,
            head=self._messages[-1][1].id if self._messages else None,
            state=state if thread is not None else None,
            toolkits=_toolkits(toolkits) if toolkits and thread is not None else None,
            carried=self._carried(active) if thread is not None else None,
            user_text=self._begun.user_text,
            user_state=user if self._run.user_id is not None else None,
            keep=effects,
        )
        try:
            await self._store.finish_run(ending)
        except StoreError as error:
            if thread is not None or self._run.user_id is not None:
                raise
            self._notice(f"the end of this run is not recorded: {error.message}")
        except LlmDoError:
            # What stood against it is how the run ends: its own last event is still to come. Its thread and its
            # user's state are the others' by then.
            self._begun = OpenedRun(None)
            self._user_state = _text(self._run.user.state, "")
            raise
        if self._fault is not None:
            raise self._fault

    def _spoilt(self) -> ToolError | None:
        """Why a state can't be saved; None where both can."""
        try:
            state_text(self._run.thread.state, f"thread {self._run.thread_id!r}")
            state_text(self._run.user.state, f"user {self._run.user_id!r}")
        except ToolError as error:
            return error
        return None

    # -- what is to be written

    def _take(self, messages: Sequence[ModelMessage], *, exact: bool) -> None:
        """Note the messages that this run has added, and what of them has changed since they were noted."""
        if self._past is None:
            self._past = _shared(self.history, messages)
        thread = self._begun.thread
        assert thread is not None
        fresh = messages[self._past :]
        same = 0
        for (known, row), message in zip(self._messages, fresh, strict=False):
            if (exact or known is not message) and row.body != message_text(message, self._hide):
                break
            same += 1
        for _, row in self._messages[same:]:
            if row in self._new:
                self._new.remove(row)
            else:
                self._dropped.append(row.id)
        del self._messages[same:]
        for message in fresh[same:]:
            parent = self._messages[-1][1].id if self._messages else thread.head
            depth = thread.length + len(self._messages)
            row = MessageRow(new_token(), parent, depth, time.time(), message_text(message, self._hide))
            self._messages.append((message, row))
            self._new.append(row)

    def _carried(self, active: str | None) -> str | None:
        assert self._begun.thread is not None
        carried = {**self._begun.thread.carried, "active": active}
        return None if carried == {"active": None, **self._begun.thread.carried} else json.dumps(carried)

    def _row(self, event: Event) -> EventRow:
        return EventRow(event.seq, event.time, event.type, event_text(event.to_dict(), self._hide))

    def _changed(self, now: str, before: str) -> str | None:
        return None if now == before else now

    def _draft(self) -> PendingWrites | None:
        state, user = _text(self._run.thread.state, self._sent_state), _text(self._run.user.state, self._sent_user)
        tip = self._messages[-1][1].id if self._messages else None
        thread = self._begun.thread is not None
        gates: Mapping[str, ToolkitState] = self._gates() if thread else {}
        moved = any(self._sent_gates.get(name) is not state for name, state in gates.items())
        self._sent_gates = gates
        draft = PendingWrites(
            tip,
            state if state != self._sent_state and thread else None,
            user if user != self._sent_user and self._run.user_id is not None else None,
            _toolkits(gates) if moved else None,
        )
        if not (self._new or self._dropped or draft.state or draft.user_state or draft.toolkits):
            return None
        self._sent_state, self._sent_user = state, user
        return draft

    def _batch(self) -> Batch:
        draft = self._draft()
        batch = Batch(self._run.run_id, self._events, self._new, self._dropped, draft)
        self._events, self._new, self._dropped = [], [], []
        return batch

    def _begin_writing(self) -> None:
        """Start a writer unless one is at it; that one then goes on with what has come since."""
        self._wanted = True
        if self._writing is None or self._writing.done():
            try:
                self._writing = asyncio.get_running_loop().create_task(self._write())
            except RuntimeError:  # a worker thread tells of something: it goes with the next batch
                return

    async def _write(self) -> None:
        while self._wanted:
            self._wanted = False
            batch = self._batch()
            try:
                await self._store.write(batch)
            except StoreError as error:
                # It is tried again with the next batch, and the run's end says so if it never works.
                self._events[:0], self._new[:0], self._dropped[:0] = batch.events, batch.messages, batch.dropped
                self._sent_state = self._sent_user = ""
                self._sent_gates = {}
                if self._failure is None:
                    self._notice(f"the journal can't be written: {error.message}")
                self._failure = error
                return


def _config(begun: OpenedRun) -> ThreadConfig:
    return begun.thread.config if begun.thread is not None else ThreadConfig()


def _toolkits(states: Mapping[str, ToolkitState]) -> str:
    return state_text({name: state.to_dict() for name, state in states.items()}, "the toolkits")


def _text(value: Any, otherwise: str) -> str:
    """A state as text while a run goes on; one that isn't JSON just now stays as it was."""
    try:
        return state_text(value, "")
    except ToolError:
        return otherwise


def _shared(history: Sequence[ModelMessage], messages: Sequence[ModelMessage]) -> int:
    """How many messages at the beginning are the thread's own."""
    count = 0
    for ours, theirs in zip(history, messages, strict=False):
        if ours is not theirs and ours != theirs:
            break
        count += 1
    return count


async def _patiently(work: Any) -> None:
    """Carry something to its end however often the waiting for it is cancelled."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.done() and task.cancelled():
                raise
            cancelled = error
        except BaseException:  # noqa: BLE001 (its own outcome is told below)
            break
    if cancelled is not None:
        if task.exception() is None:
            raise cancelled
        # What went wrong is told first; the cancellation comes out of the next thing that is waited for.
        waiting = asyncio.current_task()
        if waiting is not None:
            waiting.uncancel()
            waiting.cancel()
    task.result()
