"""`ServedProject`: one project of a server, with its store, the runs that the server has begun, and their questions."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from llm_do.errors import InputError, LlmDoError
from llm_do.project.project import Project
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.record.store.following import follow_run
from llm_do.runtime.record.stored_records import Observation, RunRecord
from llm_do.runtime.record.subscription import Subscription
from llm_do.runtime.runtime import Runtime
from llm_do.threads.opened_stores import open_store
from llm_do.web.questions import ANSWERS, Questions
from llm_do.web.requests import BadRequestError

__all__ = ["ServedProject"]

LONGEST_TEST = 300
"""Seconds that making a test may take."""


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
            BadRequestError: It has ended, or another process runs it.
        """
        active = self._active.get(run.id)
        if active is not None:
            active.runtime.interrupt()
        elif run.finished is not None:
            raise BadRequestError(f"run {run.id} has ended ({run.status})", 409)
        elif run.status == "running":
            raise BadRequestError(f"another process runs {run.id}: end it where it was started", 409)
        else:
            await self._store.drop_run(run.id)

    async def save_test(self, run: RunRecord) -> tuple[bool, str]:
        """Make a test of a run, as `llm-do test --from` does; returns whether it passes, and the report.

        A process of its own does it, since a test runs in a working directory of its own.

        Raises:
            BadRequestError: No test can be made of the run.
        """
        words = ("-m", "llm_do", "test", str(self.project.root), "--from", run.id)
        environment = {**os.environ, "NO_COLOR": "1"}
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=environment
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), LONGEST_TEST)
        except TimeoutError:
            raise BadRequestError(f"the test took more than {LONGEST_TEST} seconds", 504) from None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        report = output.decode("utf-8", "replace").strip()
        if process.returncode not in (0, 1):
            raise BadRequestError(report.removeprefix("error: ") or "the test could not be made")
        return process.returncode == 0, report

    async def aclose(self) -> None:
        """End what the server runs, and close the store."""
        for active in list(self._active.values()):
            active.runtime.interrupt()
        for active in list(self._active.values()):
            with suppress(LlmDoError, InputError, asyncio.CancelledError):
                await active.task
        await self._store.aclose()
