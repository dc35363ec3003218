"""The composition root: which room fills which extension point of the rooms below it.

It is the one module that may know every room, and no room imports it: `llm_do` itself finds it when a point is first
used. Each filler imports what it needs, so a point costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["FILLERS"]


def _builtin_factory() -> None:
    from llm_do.project.tools.builtin_toolsets import BUILTIN_FACTORY
    from llm_do.toolsets.builtin_factories import builtin_factory

    BUILTIN_FACTORY.provide(builtin_factory)


def _find_idle_pattern() -> None:
    from llm_do.linker.checks.rule_checks import find_idle_pattern
    from llm_do.runtime.session.option_checks import FIND_IDLE_PATTERN

    FIND_IDLE_PATTERN.provide(find_idle_pattern)


def _find_skills() -> None:
    from llm_do.linker.sources.skill_folders import find_skills
    from llm_do.project.skill import FIND_SKILLS

    FIND_SKILLS.provide(find_skills)


def _link() -> None:
    from llm_do.linker.linker import link
    from llm_do.project.project import LINK

    LINK.provide(link)


def _tool_schemas() -> None:
    from llm_do.project.agent_spec import TOOL_SCHEMAS
    from llm_do.runtime.agents.schema_export import tool_schemas

    TOOL_SCHEMAS.provide(tool_schemas)


def _run_flow() -> None:
    from llm_do.flows.modes import run
    from llm_do.runtime.call.invocation import RUN_FLOW

    RUN_FLOW.provide(run)


def _recorder() -> None:
    from llm_do.runtime.record.recording import RECORDER
    from llm_do.threads.recorder import StoreRecorder

    RECORDER.provide(StoreRecorder)


def _map_inputs() -> None:
    from llm_do.durable.mapping import map_inputs
    from llm_do.runtime.session.mapped_inputs import MAP_INPUTS

    MAP_INPUTS.provide(map_inputs)


def _compactor() -> None:
    from llm_do.runtime.context.history_compaction import COMPACTOR
    from llm_do.threads.compaction import HistoryCompactor

    COMPACTOR.provide(HistoryCompactor)


FILLERS: Mapping[str, Callable[[], None]] = {
    "builtin_factory": _builtin_factory,
    "compactor": _compactor,
    "find_idle_pattern": _find_idle_pattern,
    "find_skills": _find_skills,
    "link": _link,
    "map_inputs": _map_inputs,
    "recorder": _recorder,
    "run_flow": _run_flow,
    "tool_schemas": _tool_schemas,
}
"""Each extension point by its name, and what fills it."""
