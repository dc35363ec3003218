"""Checks of the models that a command line or a chat names, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.models.aliases import Aliases, known_aliases, resolve_aliases
from llm_do.models.providers.factories import registered_prefixes
from llm_do.models.providers.model_names import ModelOverride, check_model_name, find_name_fault, parse_override
from llm_do.project.flow_spec import creates_agents, every_agent
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_agents", "check_setting", "named_models"]


def named_models(values: Sequence[str], project: Project) -> ModelOverride:
    """Read the values of `--model` or `/model`, and check that each could be a model's name."""
    override = parse_override(values)
    names = [override.everyone] if isinstance(override.everyone, str) else []
    aliases = known_aliases(project.model_aliases)
    for name in resolve_aliases((*names, *override.agents.values()), project.model_aliases, project.root):
        check_model_name(name, registered=registered_prefixes(), aliases=aliases)
    check_agents(override, project)
    return override


def check_agents(override: ModelOverride, project: Project) -> None:
    """Check that a model is named only for agents that exist; agents that a run creates are not known before it."""
    names = sorted({spec.name for spec, _ in every_agent(project.registry)})
    unknown = [name for name in override.agents if name not in names]
    if unknown and not creates_agents(project.registry):
        raise UsageError(
            f"a model is named for {unknown[0]!r}, and the project has no such agent",
            hint=did_you_mean(unknown[0], names) or f"Its agents are {', '.join(names) or 'none'}.",
        )


def check_setting(value: object, declared: Aliases) -> None:
    """Check that a thread's `model` could be a model's name, as far as that is known without linking the project.

    Args:
        value: The setting.
        declared: The project's aliases.
    """
    from llm_do.ui.reports.error_text import paragraph

    names = cast("list[object]", value) if isinstance(value, list) else [value]
    aliases = known_aliases(declared)
    for name in names:
        fault = find_name_fault(name, aliases=aliases) if isinstance(name, str) and name not in aliases else None
        if fault is None:
            continue
        if not fault.may_register:
            raise UsageError(f"the model {name!r} {fault.problem}", hint=fault.hint)
        problem = f"the model {name!r} {fault.problem}, unless a Python file of the project registers it"
        warn(paragraph(problem, hint=fault.hint, label="warning"))
