"""`CodeWatch`: notices the new code of a project while tools run without approval.

As long as one of them runs, what was there before the first counts as the project's code, for all of them.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from llm_do.files import unreviewed
from llm_do.files.code_files import CodeFiles
from llm_do.files.code_tree import COMPILED, CodeScan, CodeTree
from llm_do.policy.secrets import secret_file

__all__ = ["CodeWatch", "watch_code"]


class CodeWatch:
    """The watch over one project's code in this process.

    Args:
        tree: The project's files.
    """

    def __init__(self, tree: CodeTree) -> None:
        self.tree = tree
        self._lock = threading.Lock()
        self._running = 0
        self._before: CodeScan | None = None
        self._open: unreviewed.OpenWatch | None = None
        self._noticed: set[str] = set()
        self._free: set[str] = set()

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.tree.code.root

    def begin(self) -> CodeScan:
        """Begin to watch; returns what counts as code until `end`, once for each `begin`."""
        with self._lock:
            if self._before is None:
                self._before = self.tree.scan()
                listed = unreviewed.unreviewed_files(self.root)
                self._noticed = set(listed)
                self._free = {path for path, maker in listed.items() if unreviewed.is_new(maker)}
                self._open = unreviewed.open_watch(self.tree.code, self._before)
            self._running += 1
            known = {p: i for p, i in self._before.code.items() if not unreviewed.is_below(p, self._free)}
            return replace(self._before, code=known)

    def end(self, maker: str, *, confined: bool = False) -> list[str]:
        """End a watch; returns the code that is new or has changed, which is recorded as unreviewed.

        What was `confined` couldn't change code, but might have put compiled code beside it, which Python prefers: new
        folders of that are removed, as nobody could read it to accept it.
        """
        with self._lock:
            assert self._before is not None, "begin comes first"
            assert self._open is not None, "begin comes first"
            try:
                scan = self.tree.scan()
                if confined:
                    _remove_compiled(self.root, set(scan.closed) - set(self._before.closed))
                found = unreviewed.new_code(self._before.code, scan)
                new = [path for path in found if not unreviewed.is_below(path, self._noticed)]
                self._noticed |= set(new)
                unreviewed.record(self.root, unreviewed.describe_makers(self._before.code, new, maker))
                return new
            finally:
                self._running -= 1
                if self._running == 0:
                    self._open.close()
                    self._before = self._open = None


def _remove_compiled(root: Path, folders: Iterable[str]) -> None:
    for folder in map(root.joinpath, folders):
        if folder.name.lower() == COMPILED:
            with contextlib.suppress(OSError):
                folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)


def watch_code(code: CodeFiles) -> CodeWatch:
    """Return a watch over a project's code."""
    return CodeWatch(CodeTree(code, lambda path: secret_file(path) is not None))
