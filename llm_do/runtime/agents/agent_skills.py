"""The skills of agents that no link has seen: those that Python code declares, or those of the project."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.skill import FIND_SKILLS, Skill

__all__ = ["find_agent_skills"]


def find_agent_skills(spec: AgentSpec, default: Sequence[Skill], root: Path) -> list[Skill]:
    """Find the skills of an agent.

    Args:
        spec: The agent.
        default: The project's skills, for an agent that declares none.
        root: The folder that its paths are relative to.

    Raises:
        UsageError: A path or pattern names no skill, or a skill is faulty.
    """
    if spec.skills is None:
        return list(default)
    found = [item for item in spec.skills if isinstance(item, Skill)]
    patterns = [str(item) for item in spec.skills if not isinstance(item, Skill)]
    if not patterns:
        return found
    more, faults = FIND_SKILLS.get()(root, patterns)
    error = next((item for item in faults if item.severity == "error"), None)
    if error is not None:
        place = f"{error.place}: " if error.place.file else ""
        raise UsageError(f"the skills of agent {spec.name!r}: {place}{error.message}", hint=error.hint)
    return [*found, *more]
