"""Memories: short texts that agents keep for later runs, and the protocol by which a store keeps them.

Whose a memory is (`MemoryOwner`) comes from the run, never from a model. What it says is data that a model wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from llm_do._startup.frozen import frozen
from llm_do.formats.memory_scopes import MemoryScope

__all__ = [
    "Memory",
    "MemoryFilter",
    "MemoryOwner",
    "MemoryStep",
    "MemoryStore",
    "ProjectMemories",
    "Recalled",
    "Remembered",
]


@frozen
class MemoryOwner:
    """Whose a memory is; what a scope doesn't need is empty.

    Args:
        scope: Who shares it.
        project: The project, in a store that several share.
        user: The user, also of a thread.
        thread: The thread.
    """

    scope: MemoryScope
    project: str = ""
    user: str = ""
    thread: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """It as the store keeps it."""
        return self.scope, self.project, self.user, self.thread


@frozen
class Memory:
    """One memory.

    Args:
        owner: Whose it is.
        id: Its id, derived from its text: what is remembered twice is one memory.
        text: What is remembered.
        created: When it was remembered first, in seconds since the epoch.
        updated: When it was remembered last.
        agent: The call path of the agent that remembered it last.
        run_id: The run in which it did.
    """

    owner: MemoryOwner
    id: str
    text: str
    created: float
    updated: float
    agent: str = ""
    run_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--format json` prints."""
        owner = self.owner
        return {
            "id": self.id,
            "scope": owner.scope,
            "project": owner.project or None,
            "user_id": owner.user or None,
            "thread_id": owner.thread or None,
            "text": self.text,
            "created": self.created,
            "updated": self.updated,
            "agent_path": self.agent,
            "run_id": self.run_id,
        }


@frozen
class MemoryStep:
    """The step of a durable run that changes memories, which happens once over all attempts.

    Args:
        run_id: The run.
        key: The step's key.
        attempt: The attempt; a change of an earlier one is refused.
    """

    run_id: str
    key: str
    attempt: int


@frozen
class Remembered:
    """What came of remembering something.

    Args:
        id: The memory's id.
        status: `new`; `known` if it was remembered already; `full` if there is no room for it.
        count: How many memories there are now.
    """

    id: str
    status: Literal["new", "known", "full"]
    count: int


@frozen
class Recalled:
    """What was found.

    Args:
        memories: The memories, those that fit best first; without a search, the latest first.
        left_off: How many others fit.
    """

    memories: tuple[Memory, ...] = ()
    left_off: int = 0


@frozen
class MemoryFilter:
    """Which memories a person asks for; None leaves a column open.

    Args:
        scope: Only those of this scope.
        user_id: Only those of this user, also on threads.
        thread_id: Only those of this thread.
        id: Only those whose id begins like this.
        search: Only those that have one of these words, the best first.
    """

    scope: MemoryScope | None = None
    user_id: str | None = None
    thread_id: str | None = None
    id: str | None = None
    search: str | None = None


class MemoryStore(Protocol):
    """The memories of a store. Every method is one transaction; processes may share a store."""

    @property
    def lasts(self) -> bool:
        """Whether memories outlive this process."""
        ...

    async def remember(self, memory: Memory, most: int, step: MemoryStep | None = None) -> Remembered:
        """Keep a memory, unless there are as many as there may be.

        Args:
            memory: The memory; its id is set by the store.
            most: How many memories its owner may have.
            step: The step of a durable run that does it.

        Raises:
            RunTakenError: Another attempt at the durable run has begun.
            StoreError: The store can't be written.
        """
        ...

    async def recall(self, owners: Sequence[MemoryOwner], search: str | None, most: int) -> Recalled:
        """Find memories of these owners.

        Args:
            owners: Whose.
            search: Words, of which a memory has at least one; None finds all.
            most: How many to return at most.
        """
        ...

    async def forget(self, owner: MemoryOwner, id: str, step: MemoryStep | None = None) -> bool:
        """Delete a memory.

        Returns:
            Whether there was one.

        Raises:
            RunTakenError: Another attempt at the durable run has begun.
            StoreError: The store can't be written.
        """
        ...

    async def find(self, filter: MemoryFilter, most: int | None = None) -> Recalled:
        """Find memories of any owner, for a person who looks after them."""
        ...

    async def delete(self, memories: Sequence[Memory]) -> int:
        """Delete memories; returns how many there still were."""
        ...


@frozen
class ProjectMemories:
    """The memories of a store, as a project's runs use them.

    Args:
        store: The memories.
        project: What tells the project's own memories from those of others in the store.
    """

    store: MemoryStore
    project: str = ""
