"""Durable runs of a session: what they begin with, and how they are found and begun again by their id."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelMessagesTypeAdapter

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.project.project import Project
from llm_do.runtime.record.recording import toolkit_states
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import RunResult, messages_data
from llm_do.runtime.steps.run_beginning import RunBeginning
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.stored_results import result_from_text
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.messages import ModelMessage

    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.results import ExecutionContext
    from llm_do.runtime.record.stored_records import RunRecord

__all__ = ["EarlierRun", "begin_run", "changed_files", "file_digests", "find_run"]


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


async def find_run(session: Session, run_id: str, *, prefix: bool = False) -> EarlierRun | None:
    """The durable run of an id, or of a prefix that only its id has; None if the store has none.

    Raises:
        UsageError: It isn't a durable run, or is running.
    """
    found = await session.shared.recorder().find(run_id, prefix=prefix)
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


def begin_run(
    session: Session,
    entry: object,
    value: BaseModel,
    history: list[ModelMessage] | None,
    before: ExecutionContext,
) -> str:
    """What a run begins with, as text."""
    return RunBeginning(
        entry if isinstance(entry, str) else None,
        to_json_data(value),
        None if history is None else messages_data(history),
        {name: state.to_dict() for name, state in before.toolkits.items()},
        before.active_agent,
        session.config.kept_options,
        file_digests(session.project),
        version("llm-do"),
    ).to_text()


def changed_files(project: Project, beginning: RunBeginning) -> list[str]:
    """The project's files that aren't as they were when a run began."""
    before, now = beginning.project, file_digests(project)
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))


def file_digests(project: Project) -> dict[str, str]:
    """The digest of each of the project's files, by path."""
    found: dict[str, str] = {}
    made = project.generated_agents_dir
    for file in {*project.files, *project.python_files}:
        if made is not None and made in file.parents:  # the run itself may have made it
            continue
        try:
            found[os.path.relpath(file, project.root)] = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError:
            continue
    return found
