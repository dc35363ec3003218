"""`DurableRun`: what makes a run durable, for the places that have effects, emit events or write endings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from llm_do.runtime.record.sent_request import SETUP, RequestReader, canonical_text, content_digest
from llm_do.runtime.record.store.opened_runs import EventIdentity

if TYPE_CHECKING:
    from llm_do.runtime.steps.step_log import StepLog

__all__ = ["DurableRun", "InFlight"]

InFlight: TypeAlias = Literal["repeat", "fail", "done"]
"""What becomes of a tool call that was running when the run stopped: it runs again, or the model is told that it isn't
known whether it had an effect, or that it was carried out."""


@dataclass(slots=True, eq=False)
class DurableRun:
    """One attempt at a durable run.

    Args:
        attempt: Its number, from 1.
        log: Its steps.
        emitted: How many events of each identity earlier attempts have emitted.
        in_flight: What becomes of tool calls that were running when the run stopped, by their steps' keys.
        readers: What has been read of the requests of each call.
        stopping: Whether the attempt stops without an end, so that nothing more is emitted.
    """

    attempt: int
    log: StepLog
    emitted: Mapping[EventIdentity, int] = field(default_factory=dict[EventIdentity, int])
    in_flight: dict[str, InFlight] = field(default_factory=dict[str, "InFlight"])
    readers: dict[tuple[str, str], RequestReader] = field(default_factory=dict[tuple[str, str], RequestReader])
    stopping: bool = False
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
