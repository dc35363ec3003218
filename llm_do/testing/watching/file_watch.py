"""`FileWatch`: which files below a project's folder have changed.

It looks at intervals, which works on every file system. Most looks cost one `stat` a file: folders are listed
again only when something was created, renamed or deleted in them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.files.tree import Tree

__all__ = ["FileWatch"]

INTERVAL = 0.3
"""Seconds between looks."""

SETTLED = 0.1
"""Seconds in which nothing may change before a change is reported: saving can take several steps."""

_MOST = 5_000
_TICK = 50_000_000
"""Nanoseconds that a file system's clock may lag: a folder that has just changed is listed again."""

_NOT_SOURCES = ("__pycache__/", ".pytest_cache/", ".ruff_cache/", ".mypy_cache/", "node_modules/", "*.pyc")
_TEMPORARY = re.compile(
    r".*~|\#.*\#|\.\#.*|\.goutputstream-.*|4913"  # Emacs, GNOME, Vim
    r"|\..*\.(sw[a-px]|kate-swp)|.*\.(tmp|temp|bak|orig|part)|.*___jb_(tmp|old)___|\.tmp.*"
)
"""Names of files that editors create for a moment while they save another one."""

_Identity = tuple[int, int, int]


class FileWatch:
    """A watch over a folder.

    Args:
        root: The folder.
        others: More files to watch, below the folder or elsewhere, whatever rules ignore them.
        wait: Waits a number of seconds.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     watch = FileWatch(Path(folder), wait=lambda seconds: None)
        ...     _ = Path(folder, "main.agent").write_text("Hello")
        ...     [path.name for path in watch.changed()]
        ['main.agent']
    """

    def __init__(self, root: Path, others: Iterable[Path] = (), *, wait: Callable[[float], object]) -> None:
        self._root = root
        self._wait = wait
        self._others = frozenset(others)
        self._folders: dict[Path, _Identity | None] = {}
        self._found: set[Path] = set()
        self._files: dict[Path, _Identity] = {}
        self._list()
        self._files = self._look()

    def watch_also(self, files: Iterable[Path]) -> None:
        """Watch these files in addition to those in the folder, instead of the ones named before."""
        self._others = frozenset(files)
        self._files = {path: found for path, found in self._files.items() if path in self._found | self._others}
        for path in self._others - self._files.keys():
            if (found := _identity(path)) is not None:
                self._files[path] = found

    def changed(self) -> set[Path]:
        """The files that were changed, created or deleted since the last call."""
        if any(known is None or _identity(folder) != known for folder, known in self._folders.items()):
            self._list()
        before, self._files = self._files, self._look()
        paths = before.keys() | self._files.keys()
        return {path for path in paths if before.get(path) != self._files.get(path)}

    def wait_for_changes(self) -> set[Path]:
        """Wait until files have changed and nothing changes any more; returns which."""
        found: set[Path] = set()
        while not found:
            self._wait(INTERVAL)
            found = self.changed()
        while True:
            self._wait(SETTLED)
            more = self.changed()
            if not more:
                return found
            found |= more

    def _list(self) -> None:
        """Find the files; what came first of a folder that has very many."""
        folders: dict[Path, _Identity | None] = {self._root: _folder_identity(self._root)}
        paths: set[Path] = set()
        try:
            for entry in Tree(Root(self._root), ignore=_NOT_SOURCES, max_entries=_MOST):
                path = self._root / entry.path
                if entry.kind == "folder":
                    folders[path] = _folder_identity(path)
                elif entry.kind in ("file", "link") and not _TEMPORARY.fullmatch(path.name):
                    paths.add(path)
        except (FileRefusedError, OSError):  # the folder is gone, perhaps for a moment
            pass
        self._folders, self._found = folders, paths

    def _look(self) -> dict[Path, _Identity]:
        return {path: found for path in self._found | self._others if (found := _identity(path)) is not None}


def _folder_identity(path: Path) -> _Identity | None:
    """The same of a folder, before it is listed; None if it may still change without a trace."""
    found = _identity(path)
    return None if found is not None and time.time_ns() - found[1] < _TICK else found


def _identity(path: Path) -> _Identity | None:
    """What changes with a file's content; None if it doesn't exist."""
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns, info.st_size
