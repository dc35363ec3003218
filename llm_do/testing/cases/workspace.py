"""The copy of a project that one case runs in, and the project linked from it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from llm_do._startup.code_access import open_copy
from llm_do._startup.frozen import frozen
from llm_do.concurrency.temporary_folders import temporary_folder
from llm_do.errors import LinkError
from llm_do.linker.sources.new_code import NewCode, read_new_code
from llm_do.linker.sources.project_root import locate_project
from llm_do.linker.sources.test_files import CASSETTES, FOLDER
from llm_do.linker.test_linker import check_variant
from llm_do.project.project import Project

__all__ = ["Workspace", "open_workspace"]

_LEFT_OUT = frozenset({".git", ".llm-do", ".venv", "node_modules", "__pycache__", ".pytest_cache", ".ruff_cache"})
"""Names of what isn't part of a project: its history, its state (threads, saved approvals), what tools have made.

Recordings are left out too: there may be very many, and no run has any business with them.
"""


@frozen
class Workspace:
    """Where a case runs.

    Args:
        root: The folder: a copy of the project's, or the project's own.
        project: The project linked from it.
        link_again: Links the project again, from the files as they are then.
    """

    root: Path
    project: Project
    link_again: Callable[[], Project]


@contextmanager
def open_workspace(
    project: Path, *, copies: bool, agents: Mapping[str, str], env_file: str | None = None
) -> Generator[Workspace]:
    """Copy a project if asked, link it, and make its folder the working directory meanwhile.

    Args:
        project: The project's folder, manifest or `.agent` file.
        copies: Whether to copy it.
        agents: Files that stand in for those of single agents.
        env_file: A file with variables, read in addition to the project's `.env`.

    Raises:
        LinkError: It doesn't link, such as with other agents.
    """
    root = (project if project.is_dir() else project.parent).resolve()
    if not copies:
        with chdir(root):
            yield _workspace(root, partial(_link, project, agents, env_file))
        return
    with temporary_folder("test") as folder:
        # The copy's folder has the name of the original: it may be part of what a model is sent.
        copy = folder.resolve() / (root.name or "project")
        _Copy(root, copy, read_new_code(root)).folder(root)
        open_copy(root, copy)
        target = copy if project.is_dir() else copy / project.name
        with chdir(copy):
            yield _workspace(copy, partial(_link, target, agents, env_file))


@frozen
class _Copy:
    """Copies a project.

    Args:
        root: Its folder.
        copy: The copy's.
        new_code: What no one has agreed to, and so counts as absent.
    """

    root: Path
    copy: Path
    new_code: NewCode

    def _is_left_out(self, path: Path) -> bool:
        if path.name in _LEFT_OUT or (path.name == CASSETTES and path.parent == self.root / FOLDER):
            return True
        return bool(self.new_code.unreviewed) and self.new_code.leaves_out(path)

    def folder(self, source: Path) -> None:
        """Copy a folder; links into the project lead into the copy, other links to where they led."""
        target = self.copy / source.relative_to(self.root)
        target.mkdir()
        with os.scandir(source) as entries:
            for entry in entries:
                path, new = Path(entry.path), target / entry.name
                if self._is_left_out(path):
                    continue
                if entry.is_symlink():
                    new.symlink_to(self._target(path))
                elif entry.is_dir():
                    self.folder(path)
                elif stat.S_ISREG(entry.stat().st_mode):
                    shutil.copy2(path, new)

    def _target(self, link: Path) -> Path:
        led = Path(os.path.abspath(link.parent / os.readlink(link)))  # noqa: PTH100, PTH115 (not resolved any further)
        return self.copy / led.relative_to(self.root) if led.is_relative_to(self.root) else led


def _workspace(root: Path, link: Callable[[], Project]) -> Workspace:
    return Workspace(root, link(), link)


def _link(path: Path, agents: Mapping[str, str], env_file: str | None) -> Project:
    """Link a project, with other files for some agents."""
    if not agents:
        return Project.load(path, env_file=env_file)
    report = check_variant(replace(locate_project(path), env_file=env_file), agents)
    if report.project is not None:
        return report.project
    first = next(item for item in report.diagnostics if item.severity == "error")
    raise LinkError(f"{first.place}: {first.message}", report.diagnostics, hint=first.hint)
