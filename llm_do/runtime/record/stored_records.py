"""The values that stores keep: threads, messages, runs and the journal's observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.recording import AgentState, ThreadConfig, check_id

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.runtime.record.results import Usage

__all__ = [
    "Filter",
    "Observation",
    "RunFilter",
    "RunRecord",
    "Spending",
    "SpendingBy",
    "StoredMessage",
    "ThreadContext",
    "ThreadRecord",
    "ThreadTotals",
    "new_thread",
]


@frozen
class ThreadRecord:
    """One stored thread, without its messages.

    Args:
        id: The thread's id, unique among its user's threads.
        user_id: The user it belongs to; None for a thread without a user.
        config: The thread's configuration.
        state: Data that tools keep in it.
        toolkits: The toolkits' contexts and states, as JSON data.
        head: Id of the newest message; None if there are no messages.
        length: The number of messages in its history.
        branches: Ids of the newest messages of abandoned histories, oldest first.
        carried: Other data of its history, as JSON data: usage, where it was forked from, its summary.
        revision: Changes with every save.
        turn: Changes when the history, the state or the toolkits change.
        created: Seconds since the epoch.
        updated: Seconds since the epoch.
    """

    id: str
    user_id: str | None = None
    config: ThreadConfig = field(default_factory=ThreadConfig)
    state: AgentState = field(default_factory=dict[str, Any])
    toolkits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    head: str | None = None
    length: int = 0
    branches: tuple[str, ...] = ()
    carried: Mapping[str, Any] = field(default_factory=dict[str, Any])
    revision: str = ""
    turn: str = ""
    created: float = 0.0
    updated: float = 0.0


def new_thread(thread_id: str, user_id: str | None = None) -> ThreadRecord:
    """Create a thread that isn't stored yet.

    Example:
        >>> new_thread("42").length
        0
    """
    check_id("thread", thread_id)
    check_id("user", user_id)
    return ThreadRecord(thread_id, user_id)


@frozen
class ThreadTotals:
    """What the recorded runs of a thread have used together; runs that were pruned don't count.

    Args:
        tokens: Tokens sent and received, nested calls included; None if nothing is recorded of what they used.
        cost_usd: US dollars; None if a price isn't known.
    """

    tokens: int | None = None
    cost_usd: float | None = None


@frozen
class ThreadContext:
    """A thread's configuration and state, together."""

    config: ThreadConfig
    state: AgentState


@frozen
class StoredMessage:
    """One message of a thread's history. It never changes.

    Args:
        id: The message's id.
        parent: Id of the message before it; None for the first.
        message: The message, including tool calls and results.
        time: When it was stored, in seconds since the epoch.
        run_id: The run it came from.
        metadata: Data that an application stored with it.
    """

    id: str
    parent: str | None
    message: ModelMessage
    time: float
    run_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class RunRecord:
    """One run in the journal.

    Args:
        id: The run's id.
        status: `running`, `stopped` or `suspended` for a durable run that can be resumed, `queued` for one that hasn't
            begun, or how it ended.
        entry: The name of its entry.
        thread_id: Its thread.
        user_id: Its user.
        started: Seconds since the epoch.
        finished: Seconds since the epoch; None while it is running.
        owner: The process that runs it.
        events: The number of its events in the journal.
        usage: What it has used, nested calls included; None for a run of an older version.
        models: The models it asked, in the order of their first requests.
        exchanges: The number of its exchanges that were kept.
        dropped: Why these exchanges are gone: `keep_days` or `max_mb`; empty if they aren't.
        attempt: How often a durable run has begun; 0 for any other run.
        batch: The batch that it belongs to.
    """

    id: str
    status: str
    entry: str
    thread_id: str | None
    user_id: str | None
    started: float
    finished: float | None = None
    owner: str = ""
    events: int = 0
    usage: Usage | None = None
    models: tuple[str, ...] = ()
    exchanges: int = 0
    dropped: str = ""
    attempt: int = 0
    batch: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {
            "run_id": self.id,
            "status": self.status,
            "entry": self.entry,
            "thread_id": self.thread_id,
            "user_id": self.user_id,
            "started": self.started,
            "finished": self.finished,
            "models": list(self.models),
            "usage": self.usage.to_dict() if self.usage is not None else None,
            "exchanges": self.exchanges,
            "exchanges_dropped": self.dropped or None,
        }


@frozen
class RunFilter:
    """Selects runs; a field that is None matches all of them.

    Args:
        thread_id: Only this thread's.
        statuses: Only runs that are in one of these states, or ended in one of these ways; by default all that aren't
            `queued`.
        entry: Only runs of this entry.
        since: Only runs that started at or after this time, in seconds since the epoch.
        cost_above: Only runs that cost more US dollars; a run whose price isn't known doesn't.
        user_id: Only this user's.
        batch: Only runs of the batch with this id.
        prefix: Only runs whose ids begin with this, `queued` ones too.
    """

    thread_id: str | None = None
    statuses: tuple[str, ...] | None = None
    entry: str | None = None
    since: float | None = None
    cost_above: float | None = None
    user_id: str | None = None
    batch: str | None = None
    prefix: str | None = None


SpendingBy: TypeAlias = Literal["day", "agent", "model"]
"""What spending is summed up by."""


@frozen
class Spending:
    """What requests have used, summed up.

    Args:
        key: The day of the runs in local time, such as `2026-11-28`; the agent, or the model.
        runs: The number of runs.
        usage: What their requests have used; the US dollars are those of the known prices.
        unpriced: The tokens among them whose price isn't known.
    """

    key: str
    runs: int
    usage: Usage
    unpriced: int = 0


@frozen
class Observation:
    """One journal entry: an event of a run, as written.

    Args:
        run_id: The run.
        seq: The event's number in the run.
        time: Seconds since the epoch.
        type: The event's type.
        thread_id: The run's thread.
        user_id: The run's user.
        data: The complete event as JSON data, with secrets redacted.
    """

    run_id: str
    seq: int
    time: float
    type: str
    thread_id: str | None
    user_id: str | None
    data: Mapping[str, Any]


@frozen
class Filter:
    """Selects observations; a field that is None matches all of them.

    Args:
        thread_id: Only this thread's.
        run_id: Only this run's.
        types: Only these types.
        since: At or after this time, in seconds since the epoch.
        until: Before this time.
        user_id: Only this user's.
        after: Only entries of a run whose number is greater.
    """

    thread_id: str | None = None
    run_id: str | None = None
    types: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None
    user_id: str | None = None
    after: int | None = None

    def matches(self, item: Observation) -> bool:
        """Check whether the filter selects an observation."""
        return (
            (self.thread_id is None or item.thread_id == self.thread_id)
            and (self.run_id is None or item.run_id == self.run_id)
            and (self.types is None or item.type in self.types)
            and (self.since is None or item.time >= self.since)
            and (self.until is None or item.time < self.until)
            and (self.user_id is None or item.user_id == self.user_id)
            and (self.after is None or item.seq > self.after)
        )
