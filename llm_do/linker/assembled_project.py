"""`assemble`: the `Project` of linked files, its manifest's settings as values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.linker.analysis.published import UnreadToolset
from llm_do.linker.analysis.survey import without_unread
from llm_do.linker.checks.store_checks import check_store
from llm_do.linker.linked import Linked
from llm_do.linker.python.python_files import Modules
from llm_do.linker.sources.conversion import (
    hook_functions,
    provider_functions,
    runtime_settings,
    sandbox_spec,
    threads_spec,
)
from llm_do.linker.sources.file_lists import stay_inside
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.policy.rules import Policy
from llm_do.project.project import Bounds, CassetteSettings, DeclaredAssertion, EntrySpec, Project
from llm_do.project.registry import Registry

if TYPE_CHECKING:
    from llm_do.formats.parts.limits import BoundsFile

__all__ = ["assemble"]


def assemble(linked: Linked, entry: EntrySpec | None, policy: Policy) -> Project | None:
    """Return the project of linked files; None if it has no entry. Faults are among those of `linked`."""
    files, manifest = linked.files, linked.files.manifest
    if manifest is None:
        return _without_manifest(linked, entry) if entry is not None else None
    directory = function = None
    providers = provider_functions(
        manifest.context_providers, linked.references, lambda index: files.place("context_providers", index)
    )
    if manifest.threads is not None:
        check_store(manifest.threads.store, files.place("threads", "store"), linked.names)
    hooks = hook_functions(manifest.hooks, linked.references, lambda point, index: files.place("hooks", point, index))
    if manifest.generated_agents_dir is not None:
        place = files.place("generated_agents_dir")
        directory, fault = stay_inside(files.root, manifest.generated_agents_dir, place)
        linked.names.faults += [fault] if fault is not None else []
    if manifest.approvals.policy is not None:
        place = files.place("approvals", "policy")
        function = linked.references.function(manifest.approvals.policy, place, 1, "(call)")
    assertions: tuple[DeclaredAssertion, ...] = ()
    if manifest.permissions.assertions:
        from llm_do.linker.checks.assertion_checks import link_assertions

        assertions = link_assertions(files, linked.names)
    if entry is None:
        return None
    unread = bool(linked.python.unread or linked.names.unread_packages)
    return Project(
        root=files.root,
        entry=entry,
        registry=_registry(linked),
        manifest=files.located.manifest,
        name=manifest.name,
        description=manifest.description,
        model=manifest.model,
        model_aliases=dict(manifest.models),
        model_settings=dict(manifest.model_settings),
        settings=runtime_settings(manifest.runtime),
        allow_cli_input=manifest.allow_cli_input,
        policy=policy,
        policy_function=function,
        assertions=() if unread else assertions,  # nothing is proved of tools that are unknown
        bounds=Bounds() if unread else _bounds(manifest.bounds, files),
        hooks=hooks,
        context_providers=providers,
        threads=threads_spec(manifest.threads),
        toolset_configs={name: config.model_dump() for name, config in manifest.toolsets.items()},
        files=[path for path in (files.located.manifest, *_paths(linked)) if path is not None],
        env_file=files.located.env_file,
        python_files=[*files.python, *linked.references.unlisted],
        record=manifest.record,
        generated_agents_dir=directory,
        code_patterns=(*manifest.agent_files, *manifest.python_files),
        skills=linked.skills.default,
        capability_types=linked.capabilities,
        skill_patterns=linked.skills.patterns,
        data_folders=tuple(manifest.data_folders),
        cassette=CassetteSettings(tuple(manifest.cassette.tools), tuple(manifest.cassette.ignore)),
        sandbox=sandbox_spec(manifest.sandbox),
        modules=_modules(linked),
    )


def _bounds(declared: BoundsFile, files: ProjectFiles) -> Bounds:
    """The manifest's maxima, each with its place."""
    places = {name: files.place("bounds", name) for name in declared.model_fields_set}
    return Bounds(**declared.model_dump(), places=places)


def _without_manifest(linked: Linked, entry: EntrySpec) -> Project:
    files = linked.files
    return Project(
        files.root,
        entry,
        _registry(linked),
        files=_paths(linked),
        env_file=files.located.env_file,
        python_files=[*files.python, *linked.references.unlisted],
        skill_patterns=linked.skills.patterns,
        capability_types=linked.capabilities,
        modules=_modules(linked),
    )


def _registry(linked: Linked) -> Registry:
    taken = linked.names.taken
    read = {name: item for name, item in taken.items() if not isinstance(item.value, UnreadToolset)}
    return Registry(without_unread(read) if linked.python.unread or len(read) < len(taken) else taken)


def _paths(linked: Linked) -> list[Path]:
    files = linked.files
    code = [*files.python, *linked.references.unlisted]
    return list(dict.fromkeys([*(source.path for source in files.agents), *code, *linked.skills.files]))


def _modules(linked: Linked) -> Modules | None:
    return Modules(linked.python.space) if linked.python.space is not None else None
