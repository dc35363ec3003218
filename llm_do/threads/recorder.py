"""`StoreRecorder`: writes a run to a store as it happens.

Events and messages are queued and written in batches, one transaction each, without holding up the run. A tool call
and its result each start a batch, and the runtime doesn't act on a model's response until everything that led to it
is on disk.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.event_loops import complete
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
from llm_do.threads.sqlite.store_file import LostStoreError
from llm_do.threads.store.codec import Redactor, event_text, message_text, redactor, state_text
from llm_do.threads.store.usable_history import usable_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.project.project import Project
    from llm_do.runtime.record.events import Event

__all__ = ["TRANSIENT", "StoreRecorder", "StoreRecording"]

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
"""Events that are written immediately; others wait for the next of these, a model request, or the end of the run.

`retry` is one of them because a run that restarts after a conflict gets a new recording.
"""

TRANSIENT = frozenset({"text"})
"""Events that aren't stored: a later event repeats their content in full."""


class StoreRecorder:
    """Starts the recording of each of a project's runs.

    Args:
        project: The project.
        store: Where to record; None for the project's own store.
        notice: Called with a message when nothing can be recorded.
    """

    def __init__(self, project: Project, store: ThreadStore | None, notice: Callable[[str], None]) -> None:
        self._project = project
        self._store = store
        self._own = store is None
        self._notice = notice

    async def begin(self, run: RecordedRun, entry: str) -> StoreRecording | None:
        """Open the run's thread and start its record; a run without a thread continues even if it can't be recorded."""
        record = RunRecord(run.run_id, "running", entry, run.thread_id, run.user_id, time.time())
        has_state = run.thread_id is not None or run.user_id is not None
        try:
            store = self._open()
            opened = await store.begin_run(record, self._project.threads.config)
        except StoreError as error:
            if has_state and reason_unrecorded(self._project) is None:
                raise
            self._notice(f"this run is not recorded: {error.message}{f'. {error.hint}' if error.hint else ''}")
            if not has_state:
                return None
            store = self._store = memory_store()
            opened = await store.begin_run(record, self._project.threads.config)
        if opened.recovered:
            self._notice(f"thread {run.thread_id!r}: its last run was interrupted; the work it had saved is kept")
        return StoreRecording(store, run, opened, self._notice)

    async def aclose(self) -> None:
        """Close the project's own store."""
        if self._own and self._store is not None:
            await self._store.aclose()

    def _open(self) -> ThreadStore:
        if self._store is None:
            reason = reason_unrecorded(self._project)
            if reason is not None:
                raise reason
            self._store = open_store(self._project)
        return self._store


class StoreRecording:
    """The record of one run.

    Args:
        store: Where to write it.
        run: The run.
        opened: What the store read for the run.
        notice: Called with a message when the journal can't be written.
    """

    def __init__(self, store: ThreadStore, run: RecordedRun, opened: OpenedRun, notice: Callable[[str], None]) -> None:
        self._store = store
        self._run = run
        self._opened = opened
        self._notice = notice
        self._redact: Redactor = redactor()
        thread = opened.thread
        complete = bool(opened.history) and opened.history[0].parent is None
        self.history: list[ModelMessage] = close_history(
            usable_part([each.message for each in opened.history], complete=complete)
        )
        self.toolkits: Mapping[str, Any] = thread.toolkits if thread is not None else {}
        run.thread = ThreadView(run.thread_id, thread.state if thread is not None else {}, _config(opened))
        run.user = UserView(run.user_id, opened.user_state)
        self._state = _text(run.thread.state, "")
        self._user_state = _text(run.user.state, "")
        self._sent_state, self._sent_user = self._state, self._user_state
        self._toolkit_states: Callable[[], Mapping[str, ToolkitState]] = dict
        self._sent_toolkits: Mapping[str, ToolkitState] = {}
        self._past: int | None = None
        self._messages: list[tuple[ModelMessage, MessageRow]] = []
        self._events: list[EventRow] = []
        self._new: list[MessageRow] = []
        self._dropped: list[str] = []
        self._writing: asyncio.Task[None] | None = None
        self._write_again = False
        self._failure: StoreError | None = None
        self._lost: LostStoreError | None = None
        self._fault: ToolError | None = None

    @property
    def active(self) -> str | None:
        """The agent that was in control at the end of the thread's last run."""
        thread = self._opened.thread
        return thread.carried.get("active") if thread is not None else None

    # -- during the run

    def attach(self, toolkits: Callable[[], Mapping[str, ToolkitState]]) -> None:
        """Set the function that reads the current states of the entry agent's toolkits."""
        self._toolkit_states = toolkits

    def add_event(self, event: Event) -> None:
        """Queue an event for the journal without waiting for it to be written."""
        if event.type in TRANSIENT:
            return
        self._events.append(self._row(event))
        if event.type in URGENT:
            self._start_writing()

    def save_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Queue the entry agent's history as it is now, without waiting for it to be written."""
        if self._opened.thread is not None:
            self._track(messages, exact=False)
        self._start_writing()

    async def flush(self) -> None:
        """Wait until everything queued so far is on disk, or writing has failed."""
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
        await complete(self._finish(event, messages, toolkits, active, effects))

    async def _finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
    ) -> None:
        await self.flush()
        if self._lost is not None and self._has_state():
            raise self._lost
        thread = self._opened.thread
        status = getattr(event, "status", "failed")
        if thread is not None and messages:
            self._track(messages, exact=True)
        if self._fault is None:
            self._fault = self._state_error()
            if self._fault is not None and event.type == "run_finished":
                # Nothing is saved yet: the run fails with this error, and a `run_failed` event follows.
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
            user_text=self._opened.user_text,
            user_state=user if self._run.user_id is not None else None,
            keep=effects,
        )
        try:
            await self._store.finish_run(ending)
        except StoreError as error:
            if self._has_state():
                raise
            self._notice(f"the end of this run is not recorded: {error.message}")
        except LlmDoError:
            # The conflict is how the run ends, and the event that reports it is still to come. The thread and the
            # user's state now belong to the other run.
            self._opened = OpenedRun(None)
            self._user_state = _text(self._run.user.state, "")
            raise
        if self._fault is not None:
            raise self._fault

    def _has_state(self) -> bool:
        """Whether the run has a thread or a user, whose data must be saved."""
        return self._run.thread_id is not None or self._run.user_id is not None

    def _state_error(self) -> ToolError | None:
        """Explain why the thread's or the user's state can't be saved; None if both can."""
        try:
            state_text(self._run.thread.state, f"thread {self._run.thread_id!r}")
            state_text(self._run.user.state, f"user {self._run.user_id!r}")
        except ToolError as error:
            return error
        return None

    # -- what to write next

    def _track(self, messages: Sequence[ModelMessage], *, exact: bool) -> None:
        """Queue the messages this run has added, and drop those that have changed since they were queued."""
        if self._past is None:
            self._past = _common_length(self.history, messages)
        thread = self._opened.thread
        assert thread is not None
        fresh = messages[self._past :]
        same = 0
        for (known, row), message in zip(self._messages, fresh, strict=False):
            if (exact or known is not message) and row.body != message_text(message, self._redact):
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
            row = MessageRow(new_token(), parent, depth, time.time(), message_text(message, self._redact))
            self._messages.append((message, row))
            self._new.append(row)

    def _carried(self, active: str | None) -> str | None:
        assert self._opened.thread is not None
        carried = {**self._opened.thread.carried, "active": active}
        return None if carried == {"active": None, **self._opened.thread.carried} else json.dumps(carried)

    def _row(self, event: Event) -> EventRow:
        return EventRow(event.seq, event.time, event.type, event_text(event.to_dict(), self._redact))

    def _changed(self, now: str, before: str) -> str | None:
        return None if now == before else now

    def _draft(self) -> PendingWrites | None:
        state, user = _text(self._run.thread.state, self._sent_state), _text(self._run.user.state, self._sent_user)
        tip = self._messages[-1][1].id if self._messages else None
        thread = self._opened.thread is not None
        toolkits: Mapping[str, ToolkitState] = self._toolkit_states() if thread else {}
        moved = any(self._sent_toolkits.get(name) is not state for name, state in toolkits.items())
        self._sent_toolkits = toolkits
        draft = PendingWrites(
            tip,
            state if state != self._sent_state and thread else None,
            user if user != self._sent_user and self._run.user_id is not None else None,
            _toolkits(toolkits) if moved else None,
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

    def _start_writing(self) -> None:
        """Start a writer task, or have the running one write what has been queued since."""
        self._write_again = True
        if self._writing is None or self._writing.done():
            try:
                self._writing = asyncio.get_running_loop().create_task(self._write())
            except RuntimeError:  # called from a worker thread: the next batch includes it
                return

    async def _write(self) -> None:
        while self._write_again:
            self._write_again = False
            batch = self._batch()
            try:
                await self._store.write(batch)
            except LostStoreError as error:
                self._lost = error
                return
            except StoreError as error:
                # The next batch retries it; if that never works, the end of the run reports the error.
                self._events[:0], self._new[:0], self._dropped[:0] = batch.events, batch.messages, batch.dropped
                self._sent_state = self._sent_user = ""
                self._sent_toolkits = {}
                if self._failure is None:
                    self._notice(f"the journal can't be written: {error.message}")
                self._failure = error
                return


def _config(opened: OpenedRun) -> ThreadConfig:
    return opened.thread.config if opened.thread is not None else ThreadConfig()


def _toolkits(states: Mapping[str, ToolkitState]) -> str:
    return state_text({name: state.to_dict() for name, state in states.items()}, "the toolkits")


def _text(value: Any, previous: str) -> str:
    """Serialize a state during a run; return the previous text while it isn't valid JSON data."""
    try:
        return state_text(value, "")
    except ToolError:
        return previous


def _common_length(history: Sequence[ModelMessage], messages: Sequence[ModelMessage]) -> int:
    """Count the leading messages that come from the thread."""
    count = 0
    for ours, theirs in zip(history, messages, strict=False):
        if ours is not theirs and ours != theirs:
            break
        count += 1
    return count
