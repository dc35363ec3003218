"""`llm-do run --dry-run`: what would run, with which input and which models. No model or tool is called."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do.cli.arguments.run_input import entry_model
from llm_do.cli.process.streams import Results, warn
from llm_do.errors import InputError, ModelUnavailableError
from llm_do.models import is_local_available
from llm_do.models.aliases import known_aliases
from llm_do.models.choice import choose_model
from llm_do.models.providers.env_files import keys_of, with_variables
from llm_do.models.providers.factories import registered_prefixes
from llm_do.models.providers.model_names import check_model_name, parse_override
from llm_do.project.agent_spec import AgentSpec, skills_of
from llm_do.project.flow_spec import callers_by_name
from llm_do.project.inputs import describe_input, to_input
from llm_do.runtime.record.project_variables import file_variables
from llm_do.runtime.session.entries import nothing_to_run
from llm_do.text.sanitizer import sanitize
from llm_do.ui.reports.error_text import error_text

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import CommandOptions
    from llm_do.project.project import Project

__all__ = ["show"]


def show(project: Project, options: CommandOptions, value: object, results: Results, *, needed: bool = True) -> int:
    """Print what would run; an input is `needed` unless a chat asks for it later."""
    entry, models = options.entry, options.session.models
    name = entry or project.entry.name
    kind = project.entry.kind if entry is None else _kind(project, name)
    found = file_variables(project.root if project.files else None, options.session.shared.get("env_file"))
    environ = with_variables(os.environ, keys_of(found))
    agents = [item for item in callers_by_name(project.registry).values() if isinstance(item, AgentSpec)]
    data: dict[str, Any] = {
        "project": str(project.manifest or project.root),
        "entry": {"kind": kind, "name": name},
        "input": _input(project, entry, value, name) if needed or value is not None else None,
        "agents": {spec.name: _agent(project, models, spec, environ) for spec in agents},
    }
    if options.output.output == "text":
        results.write("".join(f"{line}\n" for line in _lines(data)))
    else:
        results.write(json.dumps(data, ensure_ascii=False) + "\n")
    problem = data["agents"][name]["problem"] if kind == "agent" else None
    if problem is not None:
        warn(error_text(problem_error := ModelUnavailableError(problem)))
        return problem_error.exit_code
    return 0


def _kind(project: Project, name: str) -> str:
    found = project.registry.get(name)
    if found is None or found.kind not in ("agent", "tool", "flow"):
        raise nothing_to_run(name, project.registry)
    return found.kind


def _input(project: Project, entry: str | None, value: object, name: str) -> Any:
    model = entry_model(project, entry)
    if value is None and entry is None:
        value = project.entry.args
    if model is None:
        return value or {}
    if value is None and any(info.is_required() for info in model.model_fields.values()):
        raise InputError(f"{name} needs an input", hint=f"It takes {describe_input(model)}.")
    return to_input(model, {} if value is None else value).model_dump(mode="json", fallback=str)


def _agent(project: Project, overrides: Sequence[str], spec: AgentSpec, environ: Mapping[str, str]) -> dict[str, Any]:
    models, origin, problem = [str(spec.model)], "agent", None
    if spec.model is None or isinstance(spec.model, str | list | tuple):
        models, origin, problem = _models(project, overrides, spec, environ)
    return {
        "models": models,
        "origin": origin,
        "problem": problem,
        "tools": [_name(item) for item in spec.tools],
        "toolsets": [_name(item) for item in spec.toolsets],
        "skills": [skill.name for skill in skills_of(spec)],
    }


def _models(
    project: Project, overrides: Sequence[str], spec: AgentSpec, environ: Mapping[str, str]
) -> tuple[list[str], str | None, str | None]:
    declared, default = spec.model, project.model
    names = (str, list, tuple)
    try:
        choice = choose_model(
            spec.name,
            declared if isinstance(declared, names) else None,
            environ=environ,
            override=parse_override(overrides),
            manifest=default if isinstance(default, names) else None,
            compatible=spec.compatible_models,
            local_available=is_local_available,
            file=spec.place.file if spec.place else None,
            root=project.root,
            aliases=project.model_aliases,
        )
        aliases = known_aliases(project.model_aliases)
        for name in choice.names:
            check_model_name(name, agent=spec.name, registered=registered_prefixes(), aliases=aliases)
    except ModelUnavailableError as error:
        return [], None, f"{error.message}" + (f": {error.hint}" if error.hint else "")
    return list(choice.names), choice.origin, None


def _name(item: object) -> str:
    if isinstance(item, str):
        return item
    return str(getattr(item, "name", None) or getattr(item, "__name__", None) or type(item).__name__)


def _lines(data: dict[str, Any]) -> list[str]:
    lines = [
        f"project: {data['project']}",
        f"entry: {data['entry']['kind']} {data['entry']['name']}",
        f"input: {json.dumps(data['input'], ensure_ascii=False)}",
    ]
    for name, agent in data["agents"].items():
        model = f"{', '.join(agent['models'])} ({agent['origin']})" if agent["models"] else "none"
        lines.append(f"agent {name}: model {model}")
        lines += [f"  {key}: {', '.join(agent[key])}" for key in ("tools", "toolsets", "skills") if agent[key]]
    return [sanitize(line) for line in lines]
