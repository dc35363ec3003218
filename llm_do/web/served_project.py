"""`ServedProject`: one project of a server, with its store, the runs that the server has begun, and their questions."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from llm_do.errors import InputError, LlmDoError, UsageError
from llm_do.project.project import Project
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.record.store.following import follow_run
from llm_do.runtime.record.stored_records import Observation, RunRecord
from llm_do.runtime.record.subscription import Subscription
from llm_do.runtime.runtime import Runtime
from llm_do.threads.opened_stores import open_store
from llm_do.web.questions import ANSWERS, Questions

__all__ = ["ServedProject"]


@dataclass(eq=False, slots=True)
class _ActiveRun:
    runtime: Runtime
    task: asyncio.Task[RunResult]
    user: str | None


class ServedProject:
    """A project that a server shows and runs.

    Each run has a `Runtime` of its own, so that an unanswered question holds up no other run, and no answer holds for
    another run. Agents are still built only once.

    Args:
        project: The project.
        name: What the server calls it.
    """

    def __init__(self, project: Project, name: str) -> None:
        self.project = project
        self.name = name
        self.questions = Questions()
        self._store = open_store(project)
        self._active: dict[str, _ActiveRun] = {}

    @property
    def store(self) -> Any:
        """The project's store."""
        return self._store

    def entries(self) -> list[str]:
        """What can be run: the entry first, then every agent, flow and function by name."""
        found = [self.project.entry.name]
        found += [each.name for each in self.project.registry.values() if each.kind in ("agent", "flow")]
        return list(dict.fromkeys(found))

    async def run(self, run_id: str, user: str | None) -> RunRecord | None:
        """A run of a user by its id or a prefix of it."""
        found = await self._store.run(run_id)
        return found if found is not None and user in (None, found.user_id) else None

    def follow(self, run_id: str, after: int) -> AsyncIterator[Observation]:
        """The events of a run, as they are recorded by whichever process runs it."""
        return follow_run(self._store, run_id, after=after)

    def is_active(self, run_id: str) -> bool:
        """Whether the server runs it."""
        return run_id in self._active

    async def start(self, input: Any, *, entry: str | None, thread: str | None, user: str | None) -> str:
        """Begin a run, and return its id as soon as it has begun.

        Raises:
            InputError: The input isn't one that the entry takes; nothing has run.
            LlmDoError: The run can't be begun.
        """
        run_id, begun = uuid.uuid4().hex, asyncio.Event()
        policy = RunApprovalPolicy(approval_callback=self.questions.ask, answers=ANSWERS)
        runtime = Runtime(self.project, approvals=policy, ask_user=self.questions.ask_user, record=True)
        begin = runtime.execute(
            input,
            entry=entry,
            thread_id=thread,
            user_id=user,
            run_id=run_id,
            subscription=Subscription(lambda _: begun.set()),
        )
        task = asyncio.ensure_future(self._carry_out(runtime, begin))
        self._active[run_id] = _ActiveRun(runtime, task, user)
        task.add_done_callback(lambda _: self._active.pop(run_id, None))
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and not begun.is_set():
            task.result()  # raises why it couldn't begin
        return run_id

    async def _carry_out(self, runtime: Runtime, begin: Any) -> RunResult:
        try:
            return await begin
        finally:
            await runtime.aclose()

    async def cancel(self, run: RunRecord) -> None:
        """End a run.

        Raises:
            UsageError: It has ended, or another process runs it.
        """
        active = self._active.get(run.id)
        if active is not None:
            active.runtime.interrupt()
        elif run.finished is not None:
            raise UsageError(f"run {run.id} has ended ({run.status})")
        elif run.status == "running":
            raise UsageError(f"another process runs {run.id}", hint="End it where it was started, with Ctrl-C.")
        else:
            await self._store.drop_run(run.id)

    async def aclose(self) -> None:
        """End what the server runs, and close the store."""
        for active in list(self._active.values()):
            active.runtime.interrupt()
        for active in list(self._active.values()):
            with suppress(LlmDoError, InputError, asyncio.CancelledError):
                await active.task
        await self._store.aclose()
