"""`Shared`: the state that the runs of one session share. Not part of the public API."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.event_loops import PerLoop
from llm_do.models.providers.env_files import with_variables
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.recording import Recorder, recorder_of
from llm_do.runtime.record.results import Usage

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.runtime.context.session import SessionConfig
    from llm_do.runtime.steps.rehearsal import Rehearsal

__all__ = ["Shared"]

THREAD_MEMORIES = 1000
"""Number of threads whose tool memories a session keeps; the least recently used are dropped first."""


class Shared:
    """The state that a session's runs and calls share.

    Args:
        project: The project.
        config: The session's configuration.
        variables: Those of the files that count for the session.
    """

    def __init__(self, project: Project, config: SessionConfig, variables: Mapping[str, str]) -> None:
        self._project = project
        self._variables = variables
        self._config = config
        self.used = Usage()
        self.rehearsal: Rehearsal | None = None
        self.draining = False
        """Whether durable runs begin no other step, and stop when what is running has ended."""
        self.subscriptions: list[Subscription] = []
        self._recorder: Recorder | None = None
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._memories: dict[tuple[str | None, str], dict[Any, Any]] = {}
        self._questions = PerLoop(asyncio.Lock)
        self._slots = PerLoop(partial(asyncio.Semaphore, config.settings.max_concurrency))

    def subscribe(self, subscription: Subscription) -> Callable[[], None]:
        """Send the events of all runs that start from now on to a subscription."""
        self.subscriptions.append(subscription)

        def unsubscribe() -> None:
            subscription.closed = True
            if subscription in self.subscriptions:
                self.subscriptions.remove(subscription)

        return unsubscribe

    def variables(self) -> Mapping[str, str]:
        """Return what `${NAME}` may stand for: the environment of now, then the files that the session began with."""
        return with_variables(os.environ, self._variables)

    def recorder(self) -> Recorder:
        """Return the recorder of the session's runs, opened at its first use."""
        with self._opening:
            if self._recorder is None:
                project = replace(self._project, env_file=self._config.env_file)
                self._recorder = recorder_of(project, self._config.store, self._config.notice)
            return self._recorder

    def count(self, usage: Usage) -> None:
        """Add a run's usage to the session's."""
        with self._lock:
            self.used += usage

    def question_lock(self) -> asyncio.Lock:
        """Return the lock to hold while a person is asked an agent's question."""
        return self._questions.get()

    def request_slot(self) -> asyncio.Semaphore:
        """Return the semaphore to hold while a model request is in flight."""
        return self._slots.get()

    def thread_memory(self, user_id: str | None, thread_id: str) -> dict[Any, Any]:
        """Return what tool decorators remember for one user's thread; kept for the session's most recent threads."""
        with self._lock:
            memory = self._memories.pop((user_id, thread_id), None) or {}
            self._memories[user_id, thread_id] = memory
            while len(self._memories) > THREAD_MEMORIES:
                del self._memories[next(iter(self._memories))]
            return memory

    async def aclose(self) -> None:
        """Close the recorder."""
        if self._recorder is not None:
            await self._recorder.aclose()
            self._recorder = None
