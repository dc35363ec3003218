"""Durable runs of a session: what they begin with, and how they are found and begun again by their id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import ModelMessagesTypeAdapter

from llm_do._startup.frozen import frozen
from llm_do.concurrency.large_values import json_data
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import UsageError
from llm_do.project.project import Project
from llm_do.runtime.record.canonical_messages import is_large_history
from llm_do.runtime.record.recording import toolkit_states
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import RunResult, messages_data
from llm_do.runtime.session.option_checks import known_agents_only
from llm_do.runtime.session.project_snapshots import file_digests, link_snapshot, take_snapshot
from llm_do.runtime.session.run_options import RuntimeOptions
from llm_do.runtime.steps.run_beginning import RunBeginning
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.stored_results import result_from_text

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.messages import ModelMessage

    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.results import ExecutionContext
    from llm_do.runtime.record.store.store_writes import ProjectRow
    from llm_do.runtime.record.stored_records import RunRecord
    from llm_do.runtime.session.runtime_config import ConfigOptions

__all__ = [
    "EarlierRun",
    "begin_run",
    "changed_files",
    "check_changes",
    "earlier_run",
    "find_run",
    "options_as_begun",
    "project_as_begun",
]


@frozen
class EarlierRun:
    """A durable run that the store has.

    Args:
        run: Its record.
        beginning: What it began with.
        result: Its result, if it has ended.
    """

    run: RunRecord
    beginning: RunBeginning
    result: RunResult | None = None

    @property
    def history(self) -> list[ModelMessage] | None:
        """The conversation that it was given; None if that was the thread's."""
        data = self.beginning.messages
        return None if data is None else ModelMessagesTypeAdapter.validate_python(data)

    @property
    def toolkits(self) -> Mapping[str, Any]:
        """The states of the conversation's toolkits."""
        return toolkit_states(self.beginning.toolkits)


async def find_run(session: Session, run_id: str) -> EarlierRun | None:
    """The durable run of an id; None if the store has none.

    Raises:
        UsageError: It isn't a durable run, or is running.
    """
    found = await session.shared.recorder().find(run_id)
    if found is None:
        return None
    run, beginning, result = found
    run_id = run.id
    if beginning is None or run.status == "running":
        reason = "is running" if beginning is not None else "isn't durable"
        raise UsageError(
            f"run {run_id} {reason}, so it can't be resumed", hint=f"See it with `llm-do runs show {run_id}`."
        )
    seal = Seal(redactor().secrets)
    ended = result_from_text(seal.open(result)) if result is not None else None
    return EarlierRun(run, RunBeginning.from_text(seal.open(beginning)), ended)


async def earlier_run(session: Session, run_id: str) -> EarlierRun:
    """The durable run of an id.

    Raises:
        UsageError: There is none, or it is running.
    """
    earlier = await find_run(session, run_id)
    if earlier is None:
        raise UsageError(f"there is no run {run_id!r}", hint="`llm-do runs list` shows the runs that there are.")
    return earlier


async def begin_run(
    session: Session,
    entry: object,
    value: BaseModel,
    history: list[ModelMessage] | None,
    before: ExecutionContext,
    deps: object = None,
) -> tuple[str, ProjectRow | None]:
    """What a run begins with, as text without its secrets, and its project's files."""
    messages = None
    if history is not None:
        large = is_large_history(history)
        messages = await run_in_worker(messages_data, history) if large else messages_data(history)
    data = await json_data(value)
    snapshot = take_snapshot(session.project, redactor().secrets)
    beginning = RunBeginning(
        entry if isinstance(entry, str) else None,
        data,
        messages,
        {name: state.to_dict() for name, state in before.toolkits.items()},
        before.active_agent,
        session.config.kept_options,
        snapshot.digests,
        snapshot.unkept,
        version("llm-do"),
        None if deps is None else type(deps).__qualname__,
    )
    return await beginning.sealed(Seal(redactor().secrets)), snapshot.row


def check_changes(project: Project, earlier: EarlierRun, *, accepts: bool) -> None:
    """Refuse a project whose files aren't as they were when a run began, unless the changes are accepted.

    Raises:
        UsageError: They aren't.
    """
    changed = changed_files(project, earlier.beginning)
    if not changed or accepts:
        return
    run_id, kept = earlier.run.id, not earlier.beginning.unkept
    resume = f"`llm-do resume {run_id}"
    raise UsageError(
        f"the project has changed since run {run_id} began: {', '.join(changed)}",
        hint=(f"Continue with the files as they were: {resume} --as-begun`; or with" if kept else "Continue with")
        + f" the changed ones: {resume} --accept-changes`, which stops at the first request that differs.",
    )


def changed_files(project: Project, beginning: RunBeginning) -> list[str]:
    """The project's files that aren't as they were when a run began."""
    before = beginning.project
    now = file_digests(project, before)
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))


def options_as_begun(project: Project, beginning: RunBeginning) -> ConfigOptions:
    """The options of a session in which a run continues: those that it began with."""
    begun = beginning.options
    settings = begun["settings"]
    found: dict[str, Any] = {name: settings[name] for name in RuntimeOptions.__annotations__ if name in settings}
    found |= {name: begun[name] for name in ("model", "models", "allow", "deny", "max_steps")}
    found = known_agents_only(found, project)
    # The file may be elsewhere now, or be needed for the first time.
    found["env_file"] = project.env_file or begun["env_file"]
    found["frozen"] = begun.get("frozen", False)
    found["budget"] = replace(project.settings.budget, cost_usd=settings["budget"]["cost_usd"])
    return cast("ConfigOptions", found)


async def project_as_begun(session: Session, earlier: EarlierRun) -> Project:
    """Link the project's files as a run began with them; the project as it is if the run has ended.

    Raises:
        UsageError: They weren't kept, or what the store has isn't what the run began with.
        LinkError: They don't link any more.
    """
    if earlier.result is not None:
        return session.project
    run_id, beginning = earlier.run.id, earlier.beginning
    row = await session.shared.recorder().project_files(run_id)
    if row is None or beginning.unkept:
        why = f": {beginning.unkept}" if beginning.unkept else ""
        raise UsageError(
            f"the files that run {run_id} began with aren't kept{why}",
            hint=f"Undo the changes, or continue with them: `llm-do resume {run_id} --accept-changes`.",
        )
    return link_snapshot(row, beginning.project, session.project, Seal(redactor().secrets), run_id)
