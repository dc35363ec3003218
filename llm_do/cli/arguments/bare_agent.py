"""The agent that `run` and `chat` use where there is no project: a model with neither instructions nor tools."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.project import EntrySpec, Project
from llm_do.project.registry import Registered, Registry
from llm_do.project.store_location import with_store
from llm_do.text.words import closest_match

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import CommandOptions

__all__ = ["NAME", "bare_project", "mistaken_path"]

NAME = "assistant"
"""The agent's name in events and records."""

_WORD = re.compile(r"[A-Za-z0-9_.~-]+")


def bare_project(missing: UsageError, options: CommandOptions, *, last: bool = False) -> Project:
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


def mistaken_path(word: str, *, named: bool) -> UsageError | None:
    """The error about a word that looks more like a mistyped project than like a prompt; None for a prompt.

    Args:
        word: The only argument, where there is no project.
        named: Whether the command line names a model: then a single word may be a prompt.
    """
    if _WORD.fullmatch(word) is None:
        return None
    close = closest_match(word, _neighbours(), spelling_only=True)
    if close is None and named:
        return None
    prompt = f'If it is a prompt, write: llm-do run --model PROVIDER:NAME "{word}"'
    if close is not None:
        prompt = f"Did you mean `{close}`? If it is a prompt, pass it on stdin."
    return UsageError(f"no project here, and no project at {word!r}", hint=prompt)


def _neighbours() -> list[str]:
    """What the current folder has that could be meant by a project's name."""
    try:
        found = [entry.name for entry in os.scandir() if entry.is_dir() or entry.name.endswith((".agent", ".json"))]
    except OSError:
        return []
    return [name for name in found if not name.startswith(".")]
