"""The linker: project files in, one frozen `Project` or everything that is wrong out.

It goes manifest and files, Python, names, references, checks, and never stops at the first fault. No model is called,
no provider imported, no network touched. Each step's work is in a module of its own; here is the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FunctionType

from llm_do._startup.code_access import is_open
from llm_do._startup.frozen import frozen
from llm_do._startup.process import paused_collector
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import LinkError
from llm_do.formats.lock import FILE as LOCK
from llm_do.linker.analysis.inventory import AgentTools, Origin
from llm_do.linker.analysis.linked_capabilities import link_capabilities, registering_files
from llm_do.linker.analysis.published import register_published
from llm_do.linker.analysis.survey import LeftOut, Survey, left_out, survey
from llm_do.linker.assembled_project import assemble
from llm_do.linker.checks.agent_checks import CHECKS, check_agent, check_environment, check_template
from llm_do.linker.checks.agent_circles import find_circles
from llm_do.linker.checks.model_checks import check_aliases, check_model
from llm_do.linker.checks.rule_checks import check_escalations, check_kinds, check_rules, check_shells, link_policy
from llm_do.linker.checks.server_checks import check_servers
from llm_do.linker.checks.tool_checks import check_functions, check_limits, check_tool_names, tools_given_by_code
from llm_do.linker.checks.unused_names import find_unused
from llm_do.linker.entry import find_entry, unread_entry
from llm_do.linker.flow_linker import check_flows, check_given_tools, register_flows
from llm_do.linker.linked import Linked
from llm_do.linker.python.exports import is_toolset, read_exports
from llm_do.linker.python.python_files import Watch, load_python_files
from llm_do.linker.sources.conversion import AgentSource, agent_spec
from llm_do.linker.sources.lock_source import read_lock
from llm_do.linker.sources.project_files import ProjectFiles, read_project
from llm_do.linker.sources.project_root import ProjectLocation, locate_project
from llm_do.linker.sources.remembered_tools import remembered_tools
from llm_do.linker.sources.skill_folders import link_skills
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, every_agent, every_caller, listed_names
from llm_do.project.functions import takes_context
from llm_do.project.project import EntrySpec, Project
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.tools import NamedTool

__all__ = ["LinkReport", "check_project", "link"]


@frozen
class LinkReport:
    """What linking found.

    Args:
        project: The project, None when there are errors.
        diagnostics: Everything that was found, sorted by place.
        root: The project's folder, which the diagnostics' paths are relative to.
        left_out: What is missing from the project because its folder is closed (`llm_do._startup.code_access`).
        survey: What a closed folder would run; None for one that is open, or whose manifest can't be read.
    """

    project: Project | None
    diagnostics: tuple[Diagnostic, ...]
    root: Path
    left_out: LeftOut | None = None
    survey: Survey | None = None


_NOTED = 20
"""Errors that a traceback lists."""


def link(path: Path, env_folder: Path | None = None, env_file: str | None = None) -> Project:
    """Link the project at `path`, with the variables of its own `.env` or another folder's, and of a further file."""
    report = check_project(replace(locate_project(path), env_folder=env_folder, env_file=env_file))
    if report.project is not None:
        return report.project
    errors = [item for item in report.diagnostics if item.severity == "error"]
    first = f"{errors[0].place}: {errors[0].message}"
    message = first if len(errors) == 1 else f"the project has {len(errors)} errors, the first at {first}"
    fault = LinkError(message, report.diagnostics, hint=errors[0].hint)
    for item in errors[1:_NOTED]:
        fault.add_note(f"{item.place}: {item.message}" + (f" ({item.hint})" if item.hint else ""))
    raise fault


def check_project(path: Path | ProjectLocation | ProjectFiles, *, watch: Watch | None = None) -> LinkReport:
    """Link the project at `path`, or one whose files have been read, and report everything that is wrong with it."""
    located = locate_project(path) if isinstance(path, Path) else path
    with paused_collector():
        files = located if isinstance(located, ProjectFiles) else read_project(located)
        found = list(files.diagnostics)
        project = None
        if files.readable:
            linked = Linked(files, load_python_files(files.root, files.python, watch, files.new_code.hides_module))
            project = _finish(linked, found)
            if project is None and linked.python.space is not None:
                linked.python.space.forget()
            if not is_open(files.root):
                taken, unread = linked.names.taken, linked.python.unread
                packages = linked.names.unread_packages
                seen = survey(files, taken, unread, packages, linked.names.variables())
                missing = left_out(files, taken, unread, packages)
                return LinkReport(project, _sorted(found), files.root, missing, seen)
    return LinkReport(project, _sorted(found), files.root)


def _finish(linked: Linked, found: list[Diagnostic]) -> Project | None:
    """The steps after reading; diagnostics go to `found`."""
    _register_agents(linked)
    _register_exports(linked)
    _register_toolsets(linked)
    register_flows(linked.files, linked.names, linked.references)
    register_published(linked.names)
    agents = every_agent(linked.names.taken)
    linked.capabilities = link_capabilities(
        agents, linked.python.files, linked.names, unread=bool(linked.python.unread)
    )
    linked.references.used |= registering_files(linked.python.files)
    linked.skills = link_skills(linked.files, agents, linked.files.agents, linked.names.faults)
    check_flows(linked.files, linked.names)
    _check_functions(linked)
    _check_agents(linked)
    _check_manifest(linked)
    policy = link_policy(linked.files, linked.names)
    check_shells(linked.files, linked.names)
    check_rules(policy.rules, linked.files.node, linked.subjects, linked.files, linked.names)
    entry = find_entry(linked.files, linked.names, linked.owners, linked.references)
    if entry is None and linked.python.unread:
        entry = unread_entry(linked.files)
    check_kinds(linked.tools, policy, linked.files, linked.names, linked.owners)
    read = read_lock(linked.files)
    check_rules(read.rules, read.node, linked.subjects, linked.files, linked.names)
    project = assemble(linked, entry, policy)
    found += [*linked.python.diagnostics, *linked.names.faults, *linked.references.faults]
    found += [*linked.files.new_code.diagnostics(), *read.diagnostics]
    if project is None or _has_errors(found):
        return None
    if linked.names.packages:
        project = replace(project, packages=dict(linked.names.packages))
    if read.lock is not None:
        project = replace(project, lock=read.lock, files=[*project.files, project.root / LOCK])
    # What unread files use can't be known, so nothing counts as unused.
    unused = () if linked.python.unread else _unused(linked, project.entry)
    found += unused
    manifest = linked.files.manifest
    if manifest is None or "max_depth" not in manifest.runtime.model_fields_set:
        found += find_circles(linked.names.taken, {item.place for item in unused})
    found += check_escalations(project, linked.files)
    for run in CHECKS:
        found += run(project)
    return None if _has_errors(found) else replace(project, warnings=_sorted(found))


def _register_agents(linked: Linked) -> None:
    for source in linked.files.agents:
        if source.value is None:
            continue
        spec = agent_spec(source, source.value, linked.references)
        if linked.names.register(spec.name, "agent", spec, spec.place or Location(source.label)):
            linked.owners[spec.name] = source


def _register_exports(linked: Linked) -> None:
    manifest = linked.files.manifest
    reference = manifest.entry.function if manifest is not None and manifest.entry is not None else None
    entry = linked.references.entry_of(reference) if reference is not None else None
    unlisted = linked.references.unlisted
    files = [file for file in linked.python.files if file.path not in unlisted]
    linked.exports, faults, refused = read_exports(files, entry)
    linked.names.faults += faults
    linked.names.refused |= refused
    exported = {id(_exported(export.value)): (export.label, export.name) for export in linked.exports}
    for file in files:
        bound = {name: exported.get(id(value)) for name, value in file.namespace.items()}
        linked.names.renamed |= {name: export for name, export in bound.items() if export is not None}
        functions = (name for name, value in file.namespace.items() if isinstance(value, FunctionType))
        linked.names.functions |= dict.fromkeys(functions, file.label)
        toolsets = (name for name, value in file.namespace.items() if is_toolset(value))
        linked.names.toolsets |= dict.fromkeys(toolsets, file.label)
    for export in linked.exports:
        linked.names.register(export.name, export.kind, export.value, export.place)


def _exported(value: object) -> object:
    return value.function if isinstance(value, NamedTool) else value


def _register_toolsets(linked: Linked) -> None:
    if linked.files.manifest is None:
        return
    configs = {name: config.model_dump() for name, config in linked.files.manifest.toolsets.items()}
    remembered = remembered_tools(linked.files.root, configs)
    for name, config in configs.items():
        place = linked.files.key_place("toolsets", name)
        value = BuiltinToolset(name, config, remembered.get(name, ()))
        linked.names.register(name, "toolset", value, place)


def _check_functions(linked: Linked) -> None:
    """Check exported functions; one that is only in `__all__` needn't be a tool as long as no agent lists it."""
    taken = linked.names.taken
    exported = {
        export.name
        for export in linked.exports
        if export.kind == "tool"
        and not takes_context(export.value)
        and "TOOLS" in (getattr(linked.python.by_label(export.label), "namespace", None) or ())
    }
    listed = {name for spec, _ in every_agent(taken) for name in listed_names(spec)}
    space = linked.python.space
    items = [item for item in taken.values() if item.kind == "tool" and item.name in exported | listed]
    unnamed = tools_given_by_code(every_agent(taken), items)
    check_functions(linked.inventory, items, unnamed, linked.names, space.public if space is not None else str)


def _check_agents(linked: Linked) -> None:
    limits: list[tuple[AgentSpec, AgentTools, Location]] = []
    callers = every_caller(linked.names.taken)
    flows = [flow for flow, _ in callers if isinstance(flow, FlowSpec)]
    for spec, at in callers:
        if not isinstance(spec, AgentSpec):
            continue
        registered = linked.names.taken.get(spec.name)
        source = linked.owners.get(spec.name) if registered is not None and registered.value is spec else None
        place = at or Location("")
        check_agent(spec, linked.names, place, source)
        tools = linked.inventory.of(spec)
        linked.tools.setdefault(spec.name, tools)
        check_tool_names(tools, linked.names, partial(_line, source, place))
        check_given_tools(spec, tools, flows, linked.names, place)
        limits.append((spec, tools, place))
        if spec.template and source is not None:
            check_template(source, spec, linked.names)
    manifest = linked.files.manifest
    check_limits(limits, manifest.model if manifest is not None else None, linked.names)


def _line(source: AgentSource | None, place: Location, origin: Origin, *inner: str | int) -> Location:
    """The location of a line of an agent's lists, or of something in it."""
    if source is None or source.value is None:
        return origin.ref.place or place if origin.ref is not None else place
    if origin.ref is None:
        return source.place(("tools", origin.index))
    if inner:
        return source.place((*source.value.toolset_uses()[origin.index][2], *inner))
    return origin.ref.place or place


def _check_manifest(linked: Linked) -> None:
    files, names = linked.files, linked.names
    if files.manifest is None or files.node is None:
        return
    for name in files.manifest.runtime.agent_approval_overrides:
        place = files.key_place("runtime", "agent_approval_overrides", name)
        names.look_up(name, ("agent", "flow", "tool"), "an agent", place)
    check_aliases(files, names)
    threads = files.manifest.threads
    for loc, models in (("model",), files.manifest.model), (("threads", "model"), threads and threads.model):
        if isinstance(models, str):
            check_model(models, names, files.place(*loc))
        elif models is not None:
            for index, model in enumerate(models):
                check_model(model, names, files.place(*loc, index))
    configs = {name: config.model_dump() for name, config in files.manifest.toolsets.items()}
    check_environment(configs, files.node, names)
    check_servers(configs, files.node, names)


def _unused(linked: Linked, entry: EntrySpec) -> tuple[Diagnostic, ...]:
    """Warnings of unused things; they are dropped with the project when there are errors, which may be why."""
    manifest = linked.files.manifest
    toolsets = manifest.toolsets if manifest is not None else ()
    started = set(linked.files.located.tested)
    if entry.kind != "function":
        started.add(entry.name)
    return tuple(
        find_unused(
            started,
            linked.names.taken,
            linked.python,
            linked.exports,
            linked.references.used,
            {name: linked.files.key_place("toolsets", name) for name in toolsets},
        )
    )


def _has_errors(found: Sequence[Diagnostic]) -> bool:
    return any(item.severity == "error" for item in found)


def _sorted(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(sorted(dict.fromkeys(found), key=lambda item: (item.place, item.code, item.message)))
