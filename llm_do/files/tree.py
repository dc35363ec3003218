"""Walk all files below a folder in order, for listing and searching.

Like every walk here it goes from descriptor to descriptor and never into a link. Entries, depth and time are limited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO

from llm_do._startup.frozen import frozen
from llm_do.files.folders import Folder, FolderEntry, Kind, kind_at, open_file
from llm_do.files.gitignore import IGNORE_FILE, IgnoreRule, is_ignored, is_never_listed, parse_rules
from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root

__all__ = ["Tree", "TreeEntry"]

_ENVIRONMENTS: tuple[tuple[str, Kind], ...] = (("pyvenv.cfg", "file"), ("conda-meta", "folder"))
"""The names that mark a Python environment: Python's own, and conda's."""

_MAX_DEPTH = 100
_MAX_IN_FOLDER = 50_000
_MAX_IGNORE_BYTES = 100_000


@frozen
class TreeEntry:
    """A file, folder or link below the root."""

    path: str
    """The POSIX path below the root."""

    kind: Kind
    open: Callable[[], AbstractContextManager[BinaryIO]]
    """Opens a file; valid only until the next entry."""


@dataclass
class Tree:
    """A walk through everything below a folder; afterwards `stopped` is the reason if it is incomplete.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     root = Root(folder)
        ...     for path in ("b.md", "a/x.log", "a/y.md", ".gitignore"):
        ...         _ = root.write(path, b"*.log")
        ...     [found.path for found in Tree(root)]
        ['.gitignore', 'a', 'a/y.md', 'b.md']
    """

    root: Root
    start: str = "."
    """The folder to begin with; it is walked even if rules ignore it."""

    ignore: Sequence[str] = ()
    """Additional rules, as lines of a `.gitignore` file at the root."""

    depth: int | None = None
    """The maximum number of levels; None for all."""

    max_entries: int = 200_000
    max_seconds: float = 10.0
    stopped: str | None = None
    _seen: int = 0
    _until: float = field(default=0.0)

    def __iter__(self) -> Generator[TreeEntry]:
        """Yield the entries below the start, sorted by name, each folder directly before its content."""
        self._until = time.monotonic() + self.max_seconds
        with self.root.folder(self.start) as (folder, where):
            base = "" if where == "." else where
            yield from self._below(folder, base, self._rules_above(base), 0)

    def _rules_above(self, base: str) -> tuple[IgnoreRule, ...]:
        """Return the rules that apply in the start folder, without its own; none if they ignore the folder itself."""
        rules = parse_rules(self.ignore)
        above = ""
        for name in base.split("/") if base else ():
            with self.root.folder(above or ".") as (folder, _):
                rules += _own_rules(folder, above)
            above = f"{above}/{name}" if above else name
            if is_ignored(rules, above, folder=True):
                return ()
        return rules

    def _below(self, folder: Folder, base: str, rules: tuple[IgnoreRule, ...], depth: int) -> Generator[TreeEntry]:
        try:
            found = list(islice(folder.entries(), _MAX_IN_FOLDER + 1))
        except OSError:
            return
        if len(found) > _MAX_IN_FOLDER:
            self.stopped = f"{display_path(base or '.')} contains more than {_MAX_IN_FOLDER} names"
        names = sorted(found[:_MAX_IN_FOLDER], key=lambda entry: entry.name)
        if any(entry.name == IGNORE_FILE for entry in names):
            rules += _own_rules(folder, base)
        for entry in names:
            path = f"{base}/{entry.name}" if base else entry.name
            # Omitted names count too: matching many rules takes time.
            if self._exhausted():
                return
            if is_never_listed(entry.name) or is_ignored(rules, path, folder=entry.kind == "folder"):
                continue
            if entry.kind != "folder":
                yield _tree_entry(folder, entry, path)
                continue
            yield from self._folder(folder, entry, path, rules, depth)

    def _folder(
        self, folder: Folder, entry: FolderEntry, path: str, rules: tuple[IgnoreRule, ...], depth: int
    ) -> Generator[TreeEntry]:
        try:
            child = folder.child(entry.name)
        except OSError:
            # Deleted, replaced by a link, or unreadable: list it without its content.
            yield _tree_entry(folder, entry, path)
            return
        try:
            if any(kind_at(child, name) == kind for name, kind in _ENVIRONMENTS):
                return
            yield _tree_entry(folder, entry, path)
            if depth + 1 == self.depth:
                return
            if depth + 1 < _MAX_DEPTH:
                yield from self._below(child, path, rules, depth + 1)
            else:
                self.stopped = f"{display_path(path)} is too deep"
        finally:
            child.close()

    def _exhausted(self) -> bool:
        self._seen += 1
        if self._seen > self.max_entries:
            self.stopped = f"there are more than {self.max_entries} files and folders"
        elif time.monotonic() > self._until:
            self.stopped = f"it took longer than {self.max_seconds:g} seconds"
        else:
            return False
        return True


def _tree_entry(folder: Folder, entry: FolderEntry, path: str) -> TreeEntry:
    return TreeEntry(path, entry.kind, lambda: open_file(folder, entry.name, display_path(path)))


def _own_rules(folder: Folder, base: str) -> tuple[IgnoreRule, ...]:
    try:
        with open_file(folder, IGNORE_FILE, IGNORE_FILE) as stream:
            data = stream.read(_MAX_IGNORE_BYTES + 1)
    except (OSError, FileRefusedError):
        return ()
    if len(data) > _MAX_IGNORE_BYTES:
        # A truncated line would be another rule: `*.log` cut short is `*`.
        data = data[:_MAX_IGNORE_BYTES].rpartition(b"\n")[0]
    return parse_rules(data.decode("utf-8-sig", "replace").split("\n"), base)
