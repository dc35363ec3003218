"""The watch over each project's code, which all its sessions in this process share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from llm_do.files.code_files import CodeFiles
from llm_do.files.code_watch import CodeWatch, watch_code

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
            code = CodeFiles(project.root, project.manifest, listed, patterns, project.data_folders, skills)
            watch = _watches[project] = watch_code(code)
        return watch
