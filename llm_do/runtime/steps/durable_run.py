"""`DurableRun`: what makes a run durable, for the places that have effects, emit events or write endings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from llm_do.runtime.record.canonical_messages import canonical_text, content_digest
from llm_do.runtime.record.sent_request import SETUP, RequestReader
from llm_do.runtime.record.store.opened_runs import EventIdentity
from llm_do.runtime.record.store.stored_questions import PendingQuestion, QuestionRow, as_question, in_flight_request
from llm_do.runtime.steps.run_questions import QUIET, OpenQuestion

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llm_do.runtime.steps.activity import Activity
    from llm_do.runtime.steps.run_questions import RunQuestions
    from llm_do.runtime.steps.step_log import StepLog

__all__ = ["AskInFlight", "DurableRun", "InFlight", "InFlightAnswers"]

InFlight: TypeAlias = Literal["repeat", "fail", "done"]
"""What becomes of a tool call that was running when the run stopped: it runs again, or the model is told that it isn't
known whether it had an effect, or that it was carried out."""

AskInFlight: TypeAlias = "Callable[[PendingQuestion], Awaitable[InFlight | None]]"
"""Asks a person who is there what becomes of such a call; None if they don't know."""

InFlightAnswers: TypeAlias = "InFlight | Mapping[str, InFlight] | AskInFlight | None"
"""One answer for all such calls, or by the keys of their steps, or what asks; None leaves the questions open."""


async def _ask_in_flight(ask: AskInFlight, row: QuestionRow) -> Mapping[str, Any] | None:
    answer = await ask(as_question(row))
    return {"answer": answer} if answer is not None else None


@dataclass(slots=True, eq=False)
class DurableRun:
    """One attempt at a durable run.

    Args:
        attempt: Its number, from 1.
        log: Its steps.
        questions: What it asks persons.
        activity: What it is doing.
        emitted: How many events of each identity earlier attempts have emitted.
        in_flight: What becomes of calls that were running when the run stopped, if it is known already.
        readers: What has been read of the requests of each call.
        stopping: Whether the attempt stops without an end, so that nothing more is emitted.
        leave: Lets the attempt stop without an end.
    """

    attempt: int
    log: StepLog
    questions: RunQuestions
    activity: Activity
    emitted: Mapping[EventIdentity, int] = field(default_factory=dict[EventIdentity, int])
    in_flight: InFlightAnswers = None
    readers: dict[tuple[str, str], RequestReader] = field(default_factory=dict[tuple[str, str], RequestReader])
    stopping: bool = False
    leave: Callable[[], None] = lambda: None
    _setup: tuple[Mapping[str, Any], Mapping[str, str]] | None = None
    _version: int = 0
    _states: tuple[object, object] = ({}, {})
    _counted: dict[EventIdentity, int] = field(default_factory=dict[EventIdentity, int])

    def parts_of(self, setup: Mapping[str, Any]) -> Mapping[str, str]:
        """The digest of each part of a request's setup, which is the same object as long as nothing changes."""
        if self._setup is None or self._setup[0] is not setup:
            digests = {part: content_digest(canonical_text(setup[part]))[:16] for part in SETUP}
            self._setup = (setup, digests)
        return self._setup[1]

    @property
    def keeps_questions(self) -> bool:
        """Whether questions wait for their answers; a rehearsal has those that its test gives."""
        return self.log.rehearsal is None

    def stop(self) -> None:
        """Stop without an end: nothing more is emitted, and what is open stays so."""
        self.stopping = self.questions.stopping = True

    async def hold(self) -> None:
        """Begin nothing more, and leave once what is running has ended; a call that is running isn't held up."""
        if self.activity.is_inside:
            return
        before, calm = -1, 0
        while True:
            await asyncio.sleep(QUIET)
            calm = calm + 1 if not self.activity.running and before == self.activity.changes else 0
            before = self.activity.changes
            if calm == 2:
                self.leave()

    async def decide_in_flight(self, step: str) -> InFlight:
        """What becomes of a call that was running when the run stopped; it waits until someone knows."""
        found = self.questions.in_flight(step)
        if found is None:  # the run was stopped by a version that didn't ask
            data = self.log.in_flight(step)
            assert data is not None
            found = self.questions.put(step, "in_flight", "in_flight", in_flight_request(data))
        given = self.in_flight
        if given is not None and not isinstance(given, str | Mapping):
            row = await self.questions.resolve(OpenQuestion(found), partial(_ask_in_flight, given, found))
        else:
            known = cast("Mapping[str, InFlight]", given).get(step) if isinstance(given, Mapping) else given
            if known is None:
                row = await self.questions.resolve(OpenQuestion(found), None)
            else:
                row = await self.questions.settle(found, {"answer": known})
        answer = self.questions.answer(row)
        assert answer is not None
        return answer["answer"]

    def begin_states(self, thread: object, user: object) -> None:
        """Set the states that the run begins with."""
        self._states = (thread, user)

    def changed_states(self, thread: object, user: object, *, always: bool) -> dict[str, object] | None:
        """The thread's and the user's state with a version; None if neither has changed since the last step.

        They are `always` kept with a step that other steps belong to, which aren't replayed with it.
        """
        states = (thread, user)
        if states == self._states and not always:
            return None
        self._states = states
        self._version += 1
        return {"version": self._version, "thread": thread, "user": user}

    def is_newer(self, states: Mapping[str, Any]) -> bool:
        """Whether kept states are newer than those of the steps replayed so far; they count from now on if so."""
        if states["version"] <= self._version:
            return False
        self._version = states["version"]
        self._states = (states["thread"], states["user"])
        return True

    def is_emitted(self, call_id: str, type: str, tool_call_id: str) -> bool:
        """Whether an earlier attempt has emitted this event, the n-th of its identity; each call counts one."""
        identity = (call_id, type, tool_call_id)
        number = self._counted.get(identity, 0) + 1
        self._counted[identity] = number
        return number <= self.emitted.get(identity, 0)
