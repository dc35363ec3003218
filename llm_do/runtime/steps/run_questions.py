"""The questions of a durable run: kept as soon as they are asked, answered here or by another process, once.

An answer belongs to one step and to exactly what was shown: its key has a digest of it. Where no one can be asked, the
question is parked; once the run does nothing else, the attempt is suspended until there is an answer.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.errors import LlmDoError, RunTakenError, StoreError, UsageError
from llm_do.runtime.record.store.stored_questions import WITHDRAWN, QuestionKind, QuestionRow, given_answer
from llm_do.runtime.record.store.unreadable_data import object_of, reading
from llm_do.text.json_data import json_text

if TYPE_CHECKING:
    from llm_do.runtime.record.recording import Recording
    from llm_do.runtime.steps.activity import Activity
    from llm_do.runtime.steps.sealed_secrets import Seal

__all__ = ["POLL", "QUIET", "AskHere", "OpenQuestion", "RunQuestions", "StepQuestions", "is_withdrawn", "process_user"]

POLL = 0.5
"""Seconds between two looks for an answer that another process has given."""

QUIET = 0.05
"""Seconds without anything happening, twice in a row, after which a run with a parked question does nothing else."""

AskHere = Callable[[], Awaitable["Mapping[str, Any] | None"]]
"""Asks a person who is there; None if no one answers. The answer may have `by`."""


class OpenQuestion:
    """A question that waits for its answer; what it is about may change meanwhile, and then it is another row."""

    def __init__(self, row: QuestionRow) -> None:
        self.row = row


class RunQuestions:
    """The questions of one attempt at a run.

    Args:
        run_id: The run.
        rows: The questions of earlier attempts.
        recording: Where they are kept.
        seal: Hides secrets in what is written, and puts them back.
        activity: What the run is doing.
    """

    def __init__(
        self, run_id: str, rows: Iterable[QuestionRow], recording: Recording, seal: Seal, activity: Activity
    ) -> None:
        self._run_id = run_id
        self._rows = {row.key: row for row in rows}
        self._recording = recording
        self._seal = seal
        self._activity = activity
        self._used: set[str] = set()
        self._waiting: dict[str, asyncio.Future[QuestionRow]] = {}
        self._parked: set[str] = set()
        self._watching: asyncio.Task[None] | None = None
        self.stopping = False
        self.suspend: Callable[[], None] = lambda: None
        self.sign: Callable[[], object] = lambda: None
        self.notice: Callable[[QuestionRow], None] = lambda _: None
        self.end: Callable[[LlmDoError], BaseException] = lambda error: error
        self.events: dict[str, int] = {}

    # -- what is kept

    def of_step(self, step: str) -> list[QuestionRow]:
        """The questions about a step, in the order in which they were asked."""
        prefix = f"{step}/q/"
        return sorted((row for row in self._rows.values() if row.key.startswith(prefix)), key=lambda row: row.number)

    def answered(self) -> list[QuestionRow]:
        """The questions that have an answer."""
        return [row for row in self._rows.values() if row.answer is not None]

    def request(self, row: QuestionRow) -> dict[str, Any]:
        """What is shown of a question."""
        with reading(f"question {row.id}"):
            return object_of(self._seal.open(row.request))

    def answer(self, row: QuestionRow) -> dict[str, Any] | None:
        """The answer to a question; None if there is none."""
        with reading(f"the answer to question {row.id}"):
            return object_of(self._seal.open(row.answer)) if row.answer is not None else None

    def find(self, step: str, digest: str) -> QuestionRow | None:
        """The question about exactly this, unless its answer has been used."""
        return self._rows.get(self._key(step, digest))

    def use(self, row: QuestionRow) -> None:
        """Use an answer: it is for one execution."""
        self._used.add(row.key)

    def put(
        self,
        step: str,
        digest: str,
        kind: QuestionKind,
        request: Mapping[str, Any],
        answer: Mapping[str, Any] | None = None,
    ) -> QuestionRow:
        """Keep a question with the run's next batch; others about the same step are asked no longer."""
        key = self._key(step, digest)
        for row in self.of_step(step):
            self.withdraw(row)
        number = max((row.number for row in self._rows.values()), default=0) + 1
        now = time.time()
        text = self._text({**request, "step": step})
        row = QuestionRow(f"{self._run_id}.{number}", self._run_id, key, number, kind, now, text)
        if answer is not None:
            row = replace(row, answer=self._text(answer), by=str(answer.get("source", "")), answered=now)
        self._rows[key] = row
        self._recording.add_question(row)
        return row

    def in_flight(self, step: str) -> QuestionRow | None:
        """The question about a step that was running when the run stopped, the latest if it was more than once."""
        prefix = f"{step}/in_flight/"
        found = [row for row in self._rows.values() if row.key.startswith(prefix)]
        return max(found, key=lambda row: row.number, default=None)

    def withdraw(self, row: QuestionRow) -> None:
        """Ask a question no longer."""
        if self._rows[row.key].answer is None and not self.stopping:
            text = json.dumps({"answer": WITHDRAWN})
            row = self._rows[row.key] = replace(row, answer=text, by="the run", answered=time.time())
            self._recording.add_question(row)

    def _key(self, step: str, digest: str) -> str:
        base, number = f"{step}/q/{digest[:24]}", 1
        key = base
        while key in self._used or ((row := self._rows.get(key)) is not None and is_withdrawn(row)):
            number += 1
            key = f"{base}/{number}"
        return key

    def _text(self, data: Mapping[str, Any]) -> str:
        return self._seal.close(json_text(data))

    # -- asking

    async def settle(self, row: QuestionRow, answer: Mapping[str, Any]) -> QuestionRow:
        """Answer a question, unless another process has; returns it with the answer that counts.

        It was given by the user of this process, unless the answer says by whom.
        """
        known = self._rows[row.key]
        if known.answer is not None:
            return known
        try:
            await self._recording.flush(required=True)
            by = str(answer.get("by") or process_user())
            known = (await self._recording.answer_question(row.id, self._text(answer), by)).row
        except StoreError as error:
            raise self.end(error) from error
        except UsageError as error:
            raise self.end(RunTakenError(error.message, hint=error.hint)) from error
        self._rows[row.key] = known
        return known

    async def resolve(self, asked: OpenQuestion, ask: AskHere | None) -> QuestionRow:
        """Wait for the answer to a question: one that is given here, or elsewhere, or to the next attempt.

        Args:
            asked: The question, which has been put.
            ask: Asks a person who is there; None if no one is.
        """
        if asked.row.answer is not None:
            return asked.row
        try:
            await self._recording.flush(required=True)
        except StoreError as error:
            raise self.end(error) from error
        future: asyncio.Future[QuestionRow] = asyncio.get_running_loop().create_future()
        self._waiting[asked.row.id] = future
        self._watch()
        try:
            if ask is not None:
                with self._activity.busy():
                    answer = await self._race(ask, future)
                if answer is not None:
                    return await self.settle(asked.row, answer)
            if future.done():
                return future.result()
            self._parked.add(asked.row.id)
            with self._activity.waiting():
                return await future
        finally:
            self._parked.discard(asked.row.id)
            self._waiting.pop(asked.row.id, None)
            if not self._waiting and self._watching is not None:
                if self._watching is not asyncio.current_task():
                    self._watching.cancel()
                self._watching = None

    def replace(self, asked: OpenQuestion, row: QuestionRow) -> None:
        """Let an open question be another one: what it is about has changed while it waited for its turn."""
        self._waiting[row.id] = self._waiting.pop(asked.row.id)
        asked.row = row

    async def _race(self, ask: AskHere, elsewhere: asyncio.Future[QuestionRow]) -> Mapping[str, Any] | None:
        """Ask a person who is there, until there is an answer from elsewhere."""
        here = asyncio.ensure_future(ask())
        try:
            await asyncio.wait((here, elsewhere), return_when=asyncio.FIRST_COMPLETED)
            if here.done():
                return here.result()
        finally:
            if not here.done():
                await cancel_and_wait(here)
        self.notice(elsewhere.result())
        return None

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """Look for answers from elsewhere, and for the moment when the run does nothing else."""
        before, calm, due = object(), 0, time.monotonic() + POLL
        while self._waiting:
            await asyncio.sleep(QUIET if self._parked else POLL)
            if time.monotonic() >= due:
                await self._take_answers()
                due = time.monotonic() + POLL
            now = (self._activity.changes, self.sign(), len(self._waiting))
            calm = calm + 1 if self._parked and not self._activity.running and now == before else 0
            before = now
            if calm >= 2:
                self.suspend()
                return

    async def _take_answers(self) -> None:
        with suppress(StoreError):  # it is read again, and whatever is written next reports it
            for row in await self._recording.questions(answered=True):
                waits = self._waiting.get(row.id)
                if row.answer is not None and waits is not None and not waits.done():
                    self._rows[row.key] = row
                    waits.set_result(row)


def process_user() -> str:
    """The name of the user of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # it has no name
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "a person"


def is_withdrawn(row: QuestionRow) -> bool:
    """Whether a question is no longer asked."""
    given = given_answer(row)
    return given is not None and given["answer"] == WITHDRAWN


@frozen
class StepQuestions:
    """The questions about one tool call.

    Args:
        run: The run's questions.
        step: The key of the call's step.
        response: The key of the model's response that has the call.
        is_step: Whether it is a step; a call of an agent is replayed instead, so what allowed it has to be kept.
        live: Waits until something new may happen.
    """

    run: RunQuestions
    step: str
    response: str
    is_step: bool
    live: Callable[[], Awaitable[None]]
