"""The entry: what the manifest names, or what is implied without one, and whether its default input fits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do.diagnostics.codes.names import default_input_raised, invalid_default_input, no_entry
from llm_do.diagnostics.diagnostic import Location
from llm_do.errors import InputError
from llm_do.linker.analysis.names import Names
from llm_do.linker.python.exports import accepts_arguments
from llm_do.linker.python.python_files import run_user_code
from llm_do.linker.python.references import References
from llm_do.linker.sources.conversion import AgentSource
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.linker.sources.project_root import MANIFEST
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.functions import takes_context
from llm_do.project.inputs import PromptInput, to_input
from llm_do.project.project import EntrySpec

if TYPE_CHECKING:
    from pydantic import BaseModel

    from llm_do.formats.manifest import EntryFile

__all__ = ["find_entry", "unread_entry"]


def find_entry(
    files: ProjectFiles, names: Names, owners: Mapping[str, AgentSource], references: References
) -> EntrySpec | None:
    """Find what runs first."""
    if files.manifest is None:
        return _implied(files, names, owners)
    declared = files.manifest.entry
    if declared is None:
        return None
    if declared.function is not None:
        return _function(declared, declared.function, files, names, references)
    if declared.flow is not None:
        return _flow(declared, declared.flow, files, names)
    return _agent(declared, declared.agent, files, names, owners) if declared.agent is not None else None


def unread_entry(files: ProjectFiles) -> EntrySpec | None:
    """Return the entry that the manifest declares in a Python file which wasn't imported."""
    declared = files.manifest.entry if files.manifest is not None else None
    if declared is None:
        return None
    key = next((key for key in ("function", "flow", "agent") if getattr(declared, key) is not None), None)
    if key is None:
        return None
    name = str(getattr(declared, key)).rpartition(":")[2]
    return EntrySpec("function", name, args=declared.args, place=files.place("entry", key))


def _flow(declared: EntryFile, name: str, files: ProjectFiles, names: Names) -> EntrySpec | None:
    place = files.place("entry", "flow")
    found = names.look_up(name, ("flow",), "a flow", place)
    if found is None:
        return None
    model = found.value.input_model(names.taken)
    _check_args(declared.args, model, files, names)
    return EntrySpec("flow", name, input_model=model, args=declared.args, place=place)


def _function(
    declared: EntryFile, reference: str, files: ProjectFiles, names: Names, references: References
) -> EntrySpec | None:
    place = files.place("entry", "function")
    function = references.function(reference, place, 2, "(input, ctx)")
    model = None
    if declared.input_model_ref is not None:
        model = references.input_model(declared.input_model_ref, files.place("entry", "input_model_ref"))
    if model is not None or declared.input_model_ref is None:
        _check_args(declared.args, model, files, names)
    if function is None:
        return None
    return EntrySpec("function", reference.rpartition(":")[2], function, model, declared.args, place)


def _agent(
    declared: EntryFile, name: str, files: ProjectFiles, names: Names, owners: Mapping[str, AgentSource]
) -> EntrySpec | None:
    place = files.place("entry", "agent")
    known = names.taken.get(name)
    may_be_code = known is not None and (known.kind == "flow" or (known.kind == "tool" and _takes_input(known.value)))
    found = names.look_up(name, ("agent", "flow", "tool") if may_be_code else ("agent",), "an agent", place)
    if found is None:
        return None
    if found.kind != "agent":  # an agent that has become code, by the name that it had
        model = found.value.input_model(names.taken) if found.kind == "flow" else None
        _check_args(declared.args, model, files, names)
        return EntrySpec("flow" if found.kind == "flow" else "function", name, None, model, declared.args, place)
    spec: AgentSpec = found.value
    source = owners.get(name)
    unknown = source is not None and source.value is not None and source.value.input_model_ref is not None
    if spec.input_model is not None or not unknown:
        _check_args(declared.args, spec.input_model, files, names)
    return EntrySpec("agent", name, input_model=spec.input_model, args=declared.args, place=place)


def _takes_input(tool: object) -> bool:
    """Whether a tool can take what an agent takes: one input."""
    return not callable(tool) or accepts_arguments(tool, 1) or takes_context(tool) or _takes_run_context(tool)


def _takes_run_context(tool: Callable[..., object]) -> bool:
    """Whether a tool's first parameter is PydanticAI's context, and its second one an input."""
    first = next(iter(signature(tool).parameters.values()), None)
    return first is not None and "RunContext" in str(first.annotation) and accepts_arguments(tool, 2)


def _check_args(
    args: Mapping[str, Any] | None, model: type[BaseModel] | None, files: ProjectFiles, names: Names
) -> None:
    if args is None:
        return
    place = files.place("entry", "args")
    try:
        with run_user_code():
            to_input(model or PromptInput, args)
    except InputError as error:
        names.report(invalid_default_input(error.message, error.hint), place)
    except Exception as error:  # noqa: BLE001 - a project's validators may raise anything
        names.report(default_input_raised(type(error).__name__), place)


def _implied(files: ProjectFiles, names: Names, owners: Mapping[str, AgentSource]) -> EntrySpec | None:
    agents = [item.name for item in names.taken.values() if item.kind == "agent"]
    named = files.located.agent_file
    if named is not None:
        agents = [name for name in agents if _is_of(owners.get(name), named)]
    elif "main" in agents:
        agents = ["main"]
    if names.refused or any(source.failed for source in files.agents):
        return None
    if len(agents) == 1:
        found = names.taken[agents[0]]
        return EntrySpec("agent", found.name, input_model=found.value.input_model, place=found.place)
    place = Location(files.agents[0].label if files.agents else MANIFEST)
    names.report(no_entry(agents), place)
    return None


def _is_of(source: AgentSource | None, file: Path) -> bool:
    return source is not None and source.path == file
