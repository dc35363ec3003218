"""Checks of agents once every name is known: the names they list, models and templates.

`CHECKS` runs last, on the finished project, if nothing else was wrong; other packages register their checks there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from llm_do.diagnostics.codes import environment
from llm_do.diagnostics.codes.names import unknown_field, working_directory_outside
from llm_do.diagnostics.codes.shape import LD120
from llm_do.diagnostics.codes.tools import invalid_option, unknown_option
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.syntax.source import KeyPath, Node
from llm_do.formats.variables import stray_reference, unset_variables
from llm_do.linker.analysis.linked_capabilities import check_provider_tools
from llm_do.linker.analysis.names import Names
from llm_do.linker.checks.machine_checks import check_machines
from llm_do.linker.checks.model_checks import check_model
from llm_do.linker.checks.parameter_checks import check_descriptions, check_parameters
from llm_do.linker.checks.replay_checks import check_replays
from llm_do.linker.checks.store_checks import check_memories
from llm_do.linker.sources.conversion import AgentSource
from llm_do.linker.sources.file_lists import is_inside
from llm_do.policy.secrets import is_secret
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.inputs import PromptInput
from llm_do.project.project import Bounds
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin, find_option_faults

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["CHECKS", "Check", "check_agent", "check_environment", "check_template"]

Check = Callable[["Project"], list[Diagnostic]]


def _check_assertions(project: Project) -> list[Diagnostic]:
    """Prove the project's assertions; what that takes is imported for projects that have some."""
    if not project.assertions:
        return []
    from llm_do.linker.checks.assertion_checks import check_assertions

    return check_assertions(project)


def _check_bounds(project: Project) -> list[Diagnostic]:
    """Compare the worst case of a run with the manifest's maxima, where it has some."""
    if project.bounds == Bounds():
        return []
    from llm_do.diagnostics.codes.proofs import bound_exceeded
    from llm_do.linker.proofs.bounds import WORDS, exceeded

    places = project.bounds.places
    return [
        bound_exceeded(WORDS[name], limit, worst, advice).at(places.get(name, Location("project.json")))
        for name, limit, worst, advice in exceeded(project, project.bounds)
    ]


CHECKS: list[Check] = [
    check_machines,
    check_parameters,
    check_descriptions,
    check_replays,
    check_memories,
    check_provider_tools,
    _check_assertions,
    _check_bounds,
]
"""Checks of the finished project, in the order they run; each returns its diagnostics."""

_FIELD = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_USES = ("prefix", "include", "exclude")


def check_agent(spec: AgentSpec, names: Names, place: Location, source: AgentSource | None) -> None:
    """Look up every name that an agent lists, and check the options of its toolsets."""
    for index, tool in enumerate(spec.tools):
        if isinstance(tool, str):
            where = source.place(("tools", index)) if source is not None else place
            names.look_up(tool, ("tool", "agent", "flow"), "a tool", where)
    uses = source.value.toolset_uses() if source is not None and source.value is not None else []
    for index, item in enumerate(spec.toolsets):
        ref = ToolsetRef(item) if isinstance(item, str) else item
        if isinstance(ref, ToolsetRef) and ref.value is None:
            names.look_up(ref.name, ("toolset", "agent", "flow", "tool"), "a toolset", ref.place or place)
            if ref.options:
                line = partial(_option_place, source, uses[index][2]) if source is not None and uses else None
                reported = source.diagnostics if source is not None else ()
                _check_options(ref, names, line or (lambda *_: place), reported)
    for index, handoff in enumerate(spec.handoffs):
        if isinstance(handoff, str):
            where = source.place(("handoffs", index)) if source is not None else place
            names.look_up(handoff, ("agent",), "an agent", where)
    _check_models(spec, names, place, source)


def check_template(source: AgentSource, spec: AgentSpec, names: Names) -> None:
    """Check that the fields in an agent's template are fields of its input."""
    if source.node is None or source.body_start < 0:
        return
    known = list((spec.input_model or PromptInput).model_fields)
    text = source.node.source.text
    for found in _FIELD.finditer(text, source.body_start):
        field = found.group(1)
        if field not in known:
            place = source.node.source.place(found.start(1), found.end(1))
            names.report(unknown_field(field, known), place)


def check_environment(configs: Mapping[str, Mapping[str, Any]], node: Node, names: Names) -> None:
    """Check the variables that toolsets' configurations refer to, and those that shells pass to commands."""
    for toolset, config in configs.items():
        if config.get("type") == "shell":
            _check_shell(config, names, partial(_config_place, node, toolset))
        for path, text in _expanded_texts(config):
            place = node.place_of(("toolsets", toolset, *path))
            for variable in unset_variables(text, names.variables()):
                names.report(environment.missing_variable(variable), place)
            if (stray := stray_reference(text)) is not None:
                names.report(environment.stray_reference(stray), place)


def _expanded_texts(config: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts of a configuration in which variables are replaced, each with its key."""
    if config.get("type") not in ("http", "mcp"):
        return
    if isinstance(url := config.get("url"), str):
        yield ("url",), url
    command = config.get("command")
    for index, word in enumerate(cast("list[object]", command) if isinstance(command, list) else ()):
        if isinstance(word, str):
            yield ("command", index), word
    for key in ("env", "headers"):
        if isinstance(config.get(key), dict):
            for inner, value in cast("dict[str, object]", config[key]).items():
                if isinstance(value, str):
                    yield (key, inner), value


def _check_shell(config: Mapping[str, Any], names: Names, place_of: Callable[..., Location]) -> None:
    """Check that a shell passes no secret to commands and runs them in the project."""
    variables = config.get("env")
    for index, name in enumerate(cast("list[object]", variables) if isinstance(variables, list) else ()):
        if isinstance(name, str) and is_secret(name):
            names.report(environment.exposed_secret(name), place_of("env", index))
    cwd = config.get("cwd")
    if isinstance(cwd, str) and "\0" not in cwd and names.root is not None and not is_inside(names.root, cwd):
        names.report(working_directory_outside(cwd), place_of("cwd"))


def _config_place(node: Node, toolset: str, *inner: str | int) -> Location:
    return node.place_of(("toolsets", toolset, *inner))


def _check_options(
    ref: ToolsetRef, names: Names, place_of: Callable[..., Location], reported: Sequence[Diagnostic]
) -> None:
    """Report options of toolsets other than configured built-ins, unless reading the file has reported them."""
    found = names.taken.get(ref.name)
    shipped = find_builtin(ref.name) if found is None else None
    if found is None and shipped is None:
        return
    toolset = shipped if found is None else found.value
    config = find_option_faults(toolset, ref.options) if isinstance(toolset, BuiltinToolset) else None
    known = (*_USES, *(config.known if config is not None else ()))
    what = f"the {found.kind}" if found is not None else "the built-in"
    for option in ref.options:
        if any(item.code == LD120.id and f"`{option}`" in item.message for item in reported):
            continue
        if option not in known:
            names.report(unknown_option(what, ref.name, option, known), place_of(option))
        elif config is not None and option in config.wrong:
            names.report(invalid_option(what, ref.name, option, config.wrong[option]), place_of(option))
    if isinstance(toolset, BuiltinToolset) and toolset.config.get("type") == "shell":
        _check_shell(ref.options, names, place_of)


def _option_place(source: AgentSource, loc: KeyPath, *inner: str | int) -> Location:
    """Return the location of an option of a toolset's entry, or of a part of its value."""
    return source.place((*loc, *inner)) if len(inner) > 1 else source.key_place((*loc, *inner))


def _check_models(spec: AgentSpec, names: Names, place: Location, source: AgentSource | None) -> None:
    for loc, model in _models_named(spec):
        check_model(model, names, source.place(loc) if source is not None else place)


def _models_named(spec: AgentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Return the models that an agent names, each with its key path in the file."""
    if isinstance(spec.model, str):
        yield ("model",), spec.model
    elif isinstance(spec.model, tuple | list):
        for index, model in enumerate(cast("tuple[object, ...]", spec.model)):
            if isinstance(model, str):
                yield ("model", index), model
    summary = (spec.compaction or {}).get("summary_model")
    if isinstance(summary, str):
        yield ("compaction", "summary_model"), summary
