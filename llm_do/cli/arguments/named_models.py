"""Checks of the models that a command line or a chat names, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.models.providers.factories import registered_prefixes
from llm_do.models.providers.model_names import ModelOverride, check_model_name, find_name_fault, parse_override
from llm_do.project.flow_spec import every_agent

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_setting", "named_models"]


def named_models(values: Sequence[str], project: Project) -> ModelOverride:
    """Read the values of `--model` or `/model`, and check that each could be a model's name."""
    override = parse_override(values)
    names = [override.everyone] if isinstance(override.everyone, str) else []
    for name in (*names, *override.agents.values()):
        check_model_name(name, registered=registered_prefixes())
    agents = {spec.name for spec, _ in every_agent(project.registry)} if override.agents else set[str]()
    for agent in override.agents:
        if agent not in agents:
            from llm_do.text.words import did_you_mean
            from llm_do.ui.reports.error_text import paragraph

            hint = did_you_mean(agent, sorted(agents))
            fault = f"a model is named for {agent!r}, and the project has no such agent"
            warn(paragraph(fault, hint=hint, label="warning"))
    return override


def check_setting(value: object) -> None:
    """Check that a thread's `model` could be a model's name, as far as that is known without linking the project."""
    from llm_do.ui.reports.error_text import paragraph

    names = cast("list[object]", value) if isinstance(value, list) else [value]
    for name in names:
        fault = find_name_fault(name) if isinstance(name, str) else None
        if fault is None:
            continue
        if not fault.may_register:
            raise UsageError(f"the model {name!r} {fault.problem}", hint=fault.hint)
        problem = f"the model {name!r} {fault.problem}, unless a Python file of the project registers it"
        warn(paragraph(problem, hint=fault.hint, label="warning"))
