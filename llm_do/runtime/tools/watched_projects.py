"""The watch over each project's code, which all its sessions in this process share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from llm_do.files.code_files import CodeFiles
from llm_do.files.code_watch import CodeWatch, watch_code
from llm_do.formats.toolset_types.server_commands import named_files
from llm_do.formats.variables import UnsetVariableError, expand_variables
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.flow_spec import every_agent

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["watch_of"]

_watches: WeakKeyDictionary[Project, CodeWatch] = WeakKeyDictionary()
_lock = threading.Lock()


def watch_of(project: Project) -> CodeWatch:
    """Return the watch over a project's code."""
    with _lock:
        watch = _watches.get(project)
        if watch is None:
            listed = (*project.files, *project.python_files)
            patterns, skills = project.code_patterns, project.skill_patterns
            programs = named_files(project.root, _filled_in(project, [*_server_words(project)]))
            code = CodeFiles(project.root, project.manifest, listed, patterns, project.data_folders, skills, programs)
            watch = _watches[project] = watch_code(code)
        return watch


def _filled_in(project: Project, words: Sequence[str]) -> Sequence[str]:
    """The words with their variables as a server is started with them."""
    if not any("${" in word for word in words):
        return words
    from llm_do.runtime.record.project_variables import project_variables

    variables = project_variables(project.root if project.files else None, project.env_file)
    found: list[str] = []
    for word in words:
        with suppress(UnsetVariableError):  # then it isn't started either
            found.append(expand_variables(word, variables))
    return found


def _server_words(project: Project) -> Iterator[str]:
    """The words of the commands of servers, in the manifest and in agents' options."""
    agents = (spec for spec, _ in every_agent(project.registry))
    options = [ref.options for spec in agents for ref in spec.toolsets if isinstance(ref, ToolsetRef)]
    configs: Sequence[Mapping[str, Any]] = [*project.toolset_configs.values(), *options]
    for config in configs:
        command = config.get("command")
        if isinstance(command, list | tuple):
            yield from map(str, cast("Sequence[object]", command))
