"""Which of a project's paths are kept from a command: files of code one by one, or whole folders where there are many.

Every path that is mounted costs time, more for each one there is already. So the plan is as fine as a limited number of
mounts allows. Nothing here looks at a disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from llm_do._startup.frozen import frozen
from llm_do.files.code_tree import CodeScan
from llm_do.files.local_folder import FOLDER

__all__ = ["KeptPaths", "keep_paths"]

MOST_MOUNTS = 40
"""With more of them, whole folders are kept; so many take about ten milliseconds."""

SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""How many files of code make a folder one that is kept as a whole; the first that leads to few mounts is taken."""

_CROWDED = 5


@frozen
class KeptPaths:
    """Paths relative to the project's root.

    Args:
        single: Files and folders that are kept one by one.
        held: Folders that are kept, apart from the folders in them.
        trees: Folders that are kept with all that is in them, apart from `open`.
        open: Folders without code in `trees`.
    """

    single: Sequence[str] = ()
    held: Sequence[str] = ()
    trees: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()

    def is_closed(self, path: str) -> bool:
        """Whether nothing may be written at a path because of a folder above it."""
        inside = False
        for folder in _and_parents(path):
            if folder in self.open:
                return False
            inside = inside or folder in self.trees
        return inside


def keep_paths(scan: CodeScan, apart: Iterable[str] = ()) -> KeptPaths:
    """Plan what is kept; no folder is kept as a whole that is, or contains, one of those that are `apart`."""
    layout = _Layout(scan, apart)
    plan = best = layout.plan(set())
    for size in SIZES:
        if layout.mounts(plan) <= MOST_MOUNTS:
            return plan
        plan = layout.plan(layout.folders_of(size))
        if layout.mounts(plan) < layout.mounts(best):
            best = plan
    return layout.with_root_held(best)


class _Layout:
    """Where the code is."""

    def __init__(self, scan: CodeScan, apart: Iterable[str]) -> None:
        # No mount holds a link itself.
        self.files = [path for path in (*scan.code, *scan.linked) if path not in scan.links]
        self.closed = [path for path in scan.closed if path.rpartition("/")[2] != FOLDER]
        self.held = list(scan.held)
        self.count = Counter(parent for path in self.files for parent in _parents(path))
        self.apart = {folder for path in apart for folder in _and_parents(path)}
        barred = {folder for path in (*self.files, *scan.closed) for folder in _and_parents(path)}
        barred |= {folder for path in self.held for folder in _and_parents(path)} | self.apart
        self.free = [path for path in scan.folders if path not in barred and _parent(path) in barred]

    def folders_of(self, size: int) -> set[str]:
        """The smallest folders with so many files of code."""
        large = {folder for folder, count in self.count.items() if count >= size and folder not in self.apart}
        return large - {parent for folder in large for parent in _parents(folder)}

    def plan(self, trees: set[str]) -> KeptPaths:
        """Keep these folders as a whole, and everything else one by one."""
        if not trees:
            held = set(self.held)
            return KeptPaths([*self._outside(self.files, held), *self.closed], self.held)

        def below(path: str) -> bool:
            return any(folder in trees for folder in _and_parents(path))

        held = [path for path in self.held if not below(path)]
        files = [path for path in self.files if not below(path)]
        closed = [path for path in self.closed if not below(path)]
        free = [path for path in self.free if below(path)]
        return KeptPaths([*self._outside(files, set(held)), *closed], held, frozenset(trees), frozenset(free))

    def with_root_held(self, plan: KeptPaths) -> KeptPaths:
        """Keep the root apart from its folders if it has many files of its own, and there are too many paths."""
        own = [path for path in plan.single if "/" not in path]
        if self.mounts(plan) <= MOST_MOUNTS or len(own) < _CROWDED or "." in plan.held:
            return plan
        files = {path for path in self.files if "/" not in path}
        single = [path for path in plan.single if path not in files]
        return KeptPaths(single, [*plan.held, "."], plan.trees, plan.open)

    @staticmethod
    def mounts(plan: KeptPaths) -> int:
        """How many paths are mounted: those that are kept, and the folders above them, which stay where they are."""
        kept = (*plan.single, *plan.held, *plan.trees)
        return len(kept) + len(plan.open) + len({parent for path in kept for parent in _parents(path)})

    @staticmethod
    def _outside(files: Iterable[str], held: set[str]) -> list[str]:
        return [path for path in files if (_parent(path) or ".") not in held]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _parents(path: str) -> Iterator[str]:
    """The folders above a path, apart from the root."""
    while path := _parent(path):
        yield path


def _and_parents(path: str) -> Iterator[str]:
    yield path
    yield from _parents(path)
