"""`StoreRecording`: writes one run to a store as it happens.

Events and messages are queued and written in batches, one transaction each, without holding up the run. The runtime
waits for the batch before what can't be taken back: before a request is sent, everything that led to it is on disk, and
before a tool with effects runs, the call and the response that asked for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.event_loops import complete
from llm_do.errors import LlmDoError, StoreError, ToolError
from llm_do.runtime.record.events.model_events import UsageEvent
from llm_do.runtime.record.histories import close_history
from llm_do.runtime.record.recording import RecordedRun, ThreadConfig, ThreadView, UserView
from llm_do.runtime.record.redaction import Redactor
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.store.opened_runs import OpenedRun
from llm_do.runtime.record.store.store_writes import Batch, PendingWrites, RunEnd, RunTotals
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.threads.batch_writer import BatchWriter
from llm_do.threads.delivery import Delivery
from llm_do.threads.event_queue import EventQueue
from llm_do.threads.exchange_log import ExchangeLog
from llm_do.threads.expiry import ThreadExpiry
from llm_do.threads.message_log import MessageLog
from llm_do.threads.sql.store_errors import LostStoreError
from llm_do.threads.step_queue import StepQueue
from llm_do.threads.store.codec import state_text
from llm_do.threads.store.usable_history import usable_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.project.project import RecordSettings
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.record.exchanges import Exchange
    from llm_do.runtime.record.sent_request import RequestReader
    from llm_do.runtime.record.store.store_writes import LargeStep, StepRow
    from llm_do.runtime.record.store.stored_questions import KeptAnswer, QuestionRow

__all__ = ["TRANSIENT", "StoreRecording"]

URGENT = frozenset({"approval_requested", "retry"})
"""Events that are written immediately: a person may take long to answer, and a restarted run has a new recording."""

PROMPT = frozenset({"tool_call", "tool_result", "approval_resolved", "state_changed", "handoff"})
"""Events that are mostly followed at once by something that waits for them; all others may wait longer."""

TRANSIENT = frozenset({"text"})
"""Events that aren't stored: a later event repeats their content in full."""


class StoreRecording:
    """The record of one run.

    Args:
        store: Where to write it.
        run: The run.
        opened: What the store read for the run.
        notice: Called with a message when the journal can't be written.
        redact: Removes secrets.
        exchanges: Collects its exchanges.
        settings: How much the store keeps of exchanges.
        expiry: How long it keeps threads.
        attempt: The attempt at a durable run, whose events are delivered when they are on disk; 0 for any other run.
    """

    def __init__(
        self,
        store: ThreadStore,
        run: RecordedRun,
        opened: OpenedRun,
        notice: Callable[[str], None],
        redact: Redactor,
        exchanges: ExchangeLog,
        settings: RecordSettings,
        expiry: ThreadExpiry,
        *,
        attempt: int = 0,
    ) -> None:
        self._store = store
        self._run = run
        self._opened = opened
        self._notice = notice
        self._exchanges = exchanges
        self._settings = settings
        self._expiry = expiry
        # A run begins in the store with nothing used; another attempt begins with what the one before has used.
        self._sent_usage: Usage | None = run.usage if attempt <= 1 and run.usage == Usage() else None
        self._redact = redact
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
        self._log = MessageLog(thread, self.history, self._redact) if thread is not None else None
        self._unsaved: Sequence[ModelMessage] | None = None
        self._events = EventQueue(redact)
        self._steps = StepQueue()
        self._questions: list[QuestionRow] = []
        self._attempt = attempt
        self._delivery = Delivery(run.deliver)
        self._writer = BatchWriter(store, self._take, self._put_back, self._delivery.deliver)
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
            if self._attempt and self._delivery.add_text(event):
                self._writer.start()
            return
        self._events.add(event)
        if isinstance(event, UsageEvent):
            self._exchanges.count(event)
        if self._attempt:
            self._delivery.add(event)
        if event.type in URGENT:
            self._writer.start()
        elif event.type in PROMPT:
            self._writer.start_promptly()
        elif self._attempt:  # it is delivered when it is on disk
            self._writer.start_unnoticed()
        else:
            self._writer.start_soon()

    def request_reader(self) -> RequestReader | None:
        """Create the reader of a call's requests; None if exchanges aren't kept."""
        return self._exchanges.reader()

    def add_exchange(self, exchange: Exchange) -> None:
        """Queue a request that has ended, without waiting for it to be written."""
        self._exchanges.add(exchange)
        self._writer.start_soon()

    def add_step(self, step: StepRow | LargeStep) -> None:
        """Queue a step of a durable run for the next batch; what may have had an effect isn't put off."""
        self._steps.add(step)
        if step.done and step.kind != "request":
            self._writer.start()
        else:
            self._writer.start_promptly()

    def add_question(self, question: QuestionRow) -> None:
        """Queue what a durable run asks a person, or asks no longer, for the next batch."""
        self._questions.append(question)
        self._writer.start_promptly()

    async def questions(self, *, answered: bool = False) -> Sequence[QuestionRow]:
        """Read which of the run's questions wait for an answer, or all of them."""
        return await self._store.questions(self._run.run_id, answered=answered)

    async def answer_question(self, question_id: str, answer: str, by: str) -> KeptAnswer:
        """Answer a question unless it has been answered, and return it with the answer that counts."""
        return await self._store.answer_question(question_id, answer, by)

    def save_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Queue the entry agent's history as it is now, without waiting for it to be written."""
        if self._log is None:
            return
        self._unsaved = list(messages)
        self._writer.start_promptly()

    async def flush(self, *, required: bool = False) -> None:
        """Wait until everything queued so far is on disk."""
        try:
            await self._writer.flush()
        except StoreError:
            if required or self._attempt or self._has_state():
                raise

    async def finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        *,
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
        result: str | None = None,
    ) -> None:
        """Save the end of the run in one transaction."""
        await complete(self._finish(event, messages, toolkits, active, effects, result))

    async def clean_up(self) -> None:
        """Delete threads that are too old; the run has ended."""
        await self._expiry.delete_old_threads(self._store)

    async def stop(self, status: str) -> None:
        """Leave a durable run to be resumed."""
        await complete(self._stop(status))

    async def _stop(self, status: str) -> None:
        await self._writer.stop()
        await self._write_large()
        await self._store.stop_run(self._batch(), status)
        self._delivery.deliver()

    async def _finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
        result: str | None,
    ) -> None:
        await self._writer.stop()
        if self._lost is not None and self._has_state():
            raise self._lost
        thread = self._opened.thread
        status = getattr(event, "status", "failed")
        self._unsaved = None
        if self._log is not None and messages:
            await self._log.track(messages, exact=True)
        state = user = None
        if self._fault is None:
            try:
                state, user = self._state_texts()
            except ToolError as error:
                self._fault = error
                if event.type == "run_finished":
                    # Nothing is saved yet: the run fails with this error, and a `run_failed` event follows.
                    raise
            else:
                state, user = None if state == self._state else state, None if user == self._user_state else user
        self._events.add(event)
        await self._write_large()
        ending = RunEnd(
            batch=self._batch(ends=True),
            status=status,
            time=event.time,
            turn=thread.turn if thread is not None else None,
            head=self._log.tip if self._log is not None else None,
            state=state if thread is not None else None,
            toolkits=_toolkits(toolkits) if toolkits and thread is not None else None,
            carried=self._carried(active) if thread is not None else None,
            user_text=self._opened.user_text,
            user_state=user if self._run.user_id is not None else None,
            keep=effects,
            limits=self._settings,
            result=result,
        )
        try:
            await self._store.finish_run(ending)
            self._delivery.deliver()
        except StoreError as error:
            if self._attempt or self._has_state():
                raise
            self._notice(f"the end of this run is not recorded: {error.message}")
        except LlmDoError:
            # The conflict is how the run ends, and the event that reports it is still to come. The thread and the
            # user's state now belong to the other run.
            self._opened, self._log = OpenedRun(None), None
            self._user_state = _text(self._run.user.state, "")
            raise
        if self._fault is not None:
            raise self._fault

    def _has_state(self) -> bool:
        """Whether the run has a thread or a user, whose data must be saved."""
        return self._run.thread_id is not None or self._run.user_id is not None

    def _state_texts(self) -> tuple[str, str]:
        """The thread's and the user's state as text; raises `ToolError` if one of them isn't data."""
        run = self._run
        thread = state_text(run.thread.state, f"thread {run.thread_id!r}")
        return thread, state_text(run.user.state, f"user {run.user_id!r}")

    # -- what to write next

    def _carried(self, active: str | None) -> str | None:
        assert self._opened.thread is not None
        carried = {**self._opened.thread.carried, "active": active}
        return None if carried == {"active": None, **self._opened.thread.carried} else json.dumps(carried)

    async def _take(self) -> Batch:
        """Return what has been queued since the last batch."""
        if self._unsaved is not None:
            messages, self._unsaved = self._unsaved, None
            if self._log is not None:
                await self._log.track(messages, exact=False)
        await self._write_large()
        return self._batch()

    async def _write_large(self) -> None:
        await self._events.write_large()
        await self._steps.write_large()

    def _batch(self, *, ends: bool = False) -> Batch:
        events = self._events.take()
        questions, self._questions = self._questions, []
        self._delivery.take()
        messages, dropped = self._log.take() if self._log is not None else ((), ())
        exchanges, spent = self._exchanges.take()
        draft = None if ends else self._draft(bool(messages or dropped))
        return Batch(
            self._run.run_id,
            events,
            messages,
            dropped,
            draft,
            exchanges,
            spent,
            self._totals(),
            self._steps.take(),
            self._attempt,
            questions,
        )

    def _totals(self) -> RunTotals | None:
        """Return what the run has used if that has changed."""
        usage = self._run.usage
        if usage is self._sent_usage:
            return None
        self._sent_usage = usage
        return RunTotals(usage, tuple(self._exchanges.models))

    def _draft(self, moved: bool) -> PendingWrites | None:
        """Return the run's pending writes if they have changed, as they do with its messages."""
        if not self._has_state():
            return None
        state, user = _text(self._run.thread.state, self._sent_state), _text(self._run.user.state, self._sent_user)
        on_thread = self._log is not None
        toolkits: Mapping[str, ToolkitState] = self._toolkit_states() if on_thread else {}
        changed = any(self._sent_toolkits.get(name) is not state for name, state in toolkits.items())
        self._sent_toolkits = toolkits
        draft = PendingWrites(
            self._log.tip if self._log is not None else None,
            state if state != self._sent_state and on_thread else None,
            user if user != self._sent_user and self._run.user_id is not None else None,
            _toolkits(toolkits) if changed else None,
        )
        if not (moved or draft.state or draft.user_state or draft.toolkits):
            return None
        self._sent_state, self._sent_user = state, user
        return draft

    def _put_back(self, batch: Batch, error: StoreError) -> None:
        """Queue a batch again; if it can never be written, the end of the run reports the error."""
        if isinstance(error, LostStoreError):
            self._lost = error
        self._events.put_back(batch.events)
        self._delivery.put_back()
        self._exchanges.put_back(batch.exchanges, batch.spent)
        self._sent_usage = None
        self._steps.put_back(batch.steps)
        self._questions[:0] = batch.questions
        if self._log is not None:
            self._log.put_back(batch.messages, batch.dropped)
        self._sent_state = self._sent_user = ""
        self._sent_toolkits = {}
        if self._failure is None:
            self._notice(f"the journal can't be written: {error.message}")
        self._failure = error


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
