"""The agent that `run` and `chat` use where there is no project: a model with neither instructions nor tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.project import EntrySpec, Project
from llm_do.project.registry import Registered, Registry
from llm_do.project.store_location import with_store

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import CommandOptions

__all__ = ["NAME", "bare_project"]

NAME = "assistant"
"""The agent's name in events and records."""


def bare_project(missing: UsageError, options: CommandOptions, *, last: bool) -> Project:
    """A project of one agent without tools; nothing is recorded unless `--store` says where.

    Args:
        missing: Why there is no project.
        options: The command line.
        last: Whether `chat` was to continue a conversation.

    Raises:
        UsageError: An option needs a project.
    """
    session, call = options.session, options.call
    recorded = session.store is not None
    needs = {
        "--entry": options.entry is not None,
        "--continue": last and not recorded,
        "--thread": call.get("thread_id") is not None and not recorded,
        "--durable": bool(session.shared.get("durable")) and not recorded,
        "--frozen": bool(session.shared.get("frozen")),
    }
    option = next((name for name, used in needs.items() if used), None)
    if option is not None:
        raise UsageError(f"{option} needs a project; {missing.message}", hint=missing.hint)
    registry = Registry({NAME: Registered(NAME, "agent", AgentSpec(NAME))})
    project = Project(Path.cwd(), EntrySpec("agent", NAME), registry, record=recorded)
    return with_store(project, session.store)
