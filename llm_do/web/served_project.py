"""`ServedProject`: one project of a server, with its store, the runs that the server has begun, and their questions."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from llm_do.errors import LlmDoError, UsageError
from llm_do.project.inputs import PromptInput, attaching_arguments
from llm_do.project.project import Project
from llm_do.project.store_location import is_own_file
from llm_do.runtime.approval.broker import ApprovalCallback, RunApprovalPolicy
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.record.run_names import run_by_name
from llm_do.runtime.record.store.following import follow_run
from llm_do.runtime.record.stored_records import Observation, RunRecord
from llm_do.runtime.runtime import Runtime
from llm_do.runtime.session.durable_runs import check_changes, earlier_run, options_as_begun
from llm_do.runtime.session.entries import entry_for
from llm_do.runtime.session.given_deps import check_deps_again
from llm_do.runtime.session.runtime_config import ConfigOptions, RuntimeConfig
from llm_do.text.generated_ids import new_id
from llm_do.threads.opened_stores import open_store
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.web.kept_questions import KeptQuestions
from llm_do.web.questions import ANSWERS, Questions
from llm_do.web.requests import BadRequestError

__all__ = ["ServedProject", "project_path"]

LONGEST_TEST = 300
"""Seconds that making a test may take."""


@dataclass(eq=False, slots=True)
class _ActiveRun:
    """A run in this process.

    Args:
        runtime: Its session.
        task: What carries it out.
        durable: Whether it can be resumed.
        answered: Whether a question of its was answered since the attempt began: it may have ended without the answer.
    """

    runtime: Runtime
    task: asyncio.Task[RunResult] | None = None
    durable: bool = False
    answered: bool = False


class ServedProject:
    """A project that a server shows and runs.

    Each run has a `Runtime` of its own, so that an unanswered question holds up no other run, and no answer holds for
    another run. Agents are still built only once. Durable runs wait for answers in the store, with nothing running.

    Args:
        project: The project.
        name: What the server calls it.
    """

    def __init__(self, project: Project, name: str) -> None:
        self.project = project
        self.name = name
        self._store = open_store(project)
        self._questions = Questions()
        self._kept = KeptQuestions(self._store)
        self._active: dict[str, _ActiveRun] = {}
        self._tasks: set[asyncio.Task[RunResult]] = set()

    @property
    def store(self) -> SqlStore:
        """The project's store."""
        return self._store

    def entries(self) -> list[str]:
        """What can be run: the entry first, then every agent, flow and function by name."""
        found = [self.project.entry.name]
        found += [each.name for each in self.project.registry.values() if each.kind in ("agent", "flow")]
        return list(dict.fromkeys(found))

    def input_schemas(self) -> dict[str, Any]:
        """The JSON schema of the input of each that takes more than a text."""
        registry = self.project.registry
        models = {name: entry_for(self.project, registry, name, [], None).input_model for name in self.entries()[1:]}
        models[self.project.entry.name] = entry_for(self.project, registry, None, [], None).input_model
        return {name: model.model_json_schema() for name, model in models.items() if not issubclass(model, PromptInput)}

    def attaches(self, input: Any, entry: str | None) -> bool:
        """Whether an input would give a run files of the project."""
        if not isinstance(input, dict):
            return False
        found = entry_for(self.project, self.project.registry, entry, [], None)
        return any(cast("dict[str, object]", input).get(name) for name in attaching_arguments(found.input_model))

    async def run(self, run_id: str, user: str | None) -> RunRecord | None:
        """A run of a user by its id, or a prefix that no other run of the user has."""
        return await run_by_name(self._store, run_id, user)

    def follow(self, run_id: str, after: int) -> AsyncIterator[Observation]:
        """The events of a run, as they are recorded by whichever process runs it."""
        return follow_run(self._store, run_id, after=after)

    def is_active(self, run_id: str) -> bool:
        """Whether the server runs it."""
        return run_id in self._active

    # -- questions

    async def pending(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """The questions that wait, of one run or of all: those of this server's runs, and those that are kept."""
        return [*self._questions.pending(run_id), *await self._kept.pending(run_id)]

    async def answered(self, run_id: str) -> list[dict[str, Any]]:
        """Who has answered the questions of a run, and what."""
        return [*self._questions.answered(run_id), *await self._kept.answered(run_id)]

    async def answer(self, run: RunRecord, question: str, data: dict[str, Any], by: str) -> dict[str, Any] | None:
        """Answer a question, and continue its run if no process has it.

        Returns:
            What becomes of the run: whether it is `running`, and a `message`; None if it has no such question.

        Raises:
            BadRequestError: It has been answered, shows something else than the digest is of, or doesn't accept this.
        """
        if self._questions.answer(run.id, question, data, by):
            return {"run_id": run.id, "running": True, "message": "the run continues"}
        if not await self._kept.answer(run.id, question, data, by):
            return None
        running, message = await self._continue(run.id)
        return {"run_id": run.id, "running": running, "message": message}

    async def _continue(self, run_id: str) -> tuple[bool, str]:
        """Continue a run after an answer; returns whether it is running, and what becomes of it in words."""
        active = self._active.get(run_id)
        if active is not None:
            active.answered = True
            return True, "the run continues"
        run = await self._store.run(run_id)
        if run is not None and run.status == "running":
            return True, "the process that has the run takes the answer"
        try:
            await self.resume(run_id)
        except LlmDoError as error:
            return (
                False,
                f"the answer is kept, but the run wasn't continued: {error.message}. {error.hint or ''}".strip(),
            )
        return True, "the run continues"

    # -- runs

    async def start(
        self, input: Any, *, entry: str | None, thread: str | None, user: str | None, durable: bool = False
    ) -> str:
        """Begin a run, and return its id as soon as it has begun.

        Raises:
            InputError: The input isn't one that the entry takes; nothing has run.
            LlmDoError: The run can't be begun.
        """
        if durable and self.project.threads.store == "memory":
            raise UsageError(
                "a durable run needs a store on disk, and this project's is in memory",
                hint="Change `threads.store`, or serve it with --store.",
            )
        run_id, begun = new_id(), asyncio.Event()
        callback = None if durable else self._questions.ask
        runtime = Runtime(
            self.project,
            approvals=self._policy(callback),
            ask_user=None if durable else self._questions.ask_user,
            record=True,
            durable=durable,
        )
        begin = runtime.execute(
            input,
            entry=entry,
            thread_id=thread,
            user_id=user,
            run_id=run_id,
            subscription=Subscription(lambda _: durable or begun.set(), on_durable=begun.set),
        )
        task = self._carry_out(run_id, _ActiveRun(runtime, durable=durable), begin)
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and not begun.is_set():
            task.result().raise_for_status()  # raises why it couldn't begin
        return run_id

    async def resume(self, run_id: str) -> None:
        """Continue a durable run that no process has, with the options that it began with.

        Raises:
            UsageError: It has ended, another process runs it, or the project has changed since it began.
        """
        if run_id in self._active:
            raise UsageError(f"run {run_id} is running", hint="It is running here already.")
        looking = Runtime(self.project)
        try:
            earlier = await earlier_run(looking, run_id)
        finally:
            await looking.aclose()
        if earlier.result is not None:
            raise UsageError(f"run {run_id} has ended ({earlier.run.status})", hint="Begin another one.")
        check_changes(self.project, earlier, accepts=False)
        check_deps_again(earlier, None)
        if run_id in self._active:  # someone else has continued it meanwhile
            return
        options: ConfigOptions = {
            **options_as_begun(self.project, earlier.beginning),
            "approvals": self._policy(None),
            "record": True,
            "durable": True,
        }
        config = RuntimeConfig.of(self.project, **options)
        runtime = Runtime(self.project, config=config)
        self._carry_out(run_id, _ActiveRun(runtime, durable=True), runtime.execute_again(run_id))

    def _policy(self, callback: ApprovalCallback | None) -> RunApprovalPolicy:
        """Who answers: the project's mode, or whoever uses the server."""
        return RunApprovalPolicy(self.project.settings.approval_mode, callback, answers=ANSWERS)

    def _carry_out(self, run_id: str, active: _ActiveRun, begin: Awaitable[RunResult]) -> asyncio.Task[RunResult]:
        """Carry out a run in a task of its own, again where an answer came while it was being suspended."""

        async def carry_out() -> RunResult:
            try:
                result = await begin
                while result.status == "suspended" and active.answered:
                    active.answered = False
                    result = await active.runtime.execute_again(run_id)
                return result
            finally:
                self._active.pop(run_id, None)
                await active.runtime.aclose()

        self._active[run_id] = active
        active.task = task = asyncio.ensure_future(carry_out())
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[RunResult]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever began it has been told; another process may have the run

    async def cancel(self, run: RunRecord) -> None:
        """End a run.

        Raises:
            BadRequestError: It has ended, or another process runs it.
        """
        active = self._active.get(run.id)
        if active is not None:
            active.runtime.interrupt()
            if not active.durable:
                return
            if active.task is not None:
                await asyncio.wait([active.task])
        elif run.finished is not None:
            raise BadRequestError(f"run {run.id} has ended ({run.status})", 409)
        elif run.status == "running":
            raise BadRequestError(f"another process runs {run.id}: end it where it was started", 409)
        try:
            await self._store.drop_run(run.id)
        except UsageError as error:  # it has ended by itself, or another process has continued it
            raise BadRequestError(error.message, 409, hint=error.hint) from error

    async def save_test(self, run: RunRecord) -> tuple[bool, str]:
        """Make a test of a run, as `llm-do test --from` does; returns whether it passes, and the report.

        A process of its own does it, since a test runs in a working directory of its own.

        Raises:
            BadRequestError: No test can be made of the run.
        """
        path, place = project_path(self.project), self.project.threads.store
        words = ["-P", "-m", "llm_do", "test", str(path), "--from", run.id, "--trust"]
        words += [] if is_own_file(place) else ["--store", place]
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
        """End what the server runs, durable runs so that they can be resumed, and close the store."""
        for active in list(self._active.values()):
            active.runtime.interrupt()
        for task in list(self._tasks):
            with suppress(LlmDoError, asyncio.CancelledError):
                await task
        await self._store.aclose()


def project_path(project: Project) -> Path:
    """The folder, manifest or `.agent` file that a project was loaded from, which loads the same project again."""
    root = project.root.resolve()
    if project.manifest is not None:
        return root if project.manifest.name == "project.json" else project.manifest
    agents = [path for path in project.files if path.suffix == ".agent"]
    return agents[0] if len(agents) == 1 else root
