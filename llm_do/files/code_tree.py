"""`CodeTree`: what is code below a project's root at a moment, found again quickly after each command.

Only folders that changed are read again; what is known of the others is kept. `CodeFiles` says what is code.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from llm_do._startup.frozen import frozen
from llm_do.files.code_files import CLOSED_FOLDERS, KEY_FILE, LIBRARY_FOLDERS, CodeFiles
from llm_do.files.paths import fold_name

__all__ = ["COMPILED", "CodeScan", "CodeTree", "Identity"]

Identity = tuple[int, int, int]
"""What changes with a file's content or name: its inode, the time of its last change, and its size."""

_MOST = 200_000
_SECONDS = 20.0
_TICK = 50_000_000
"""Nanoseconds that a file system's clock may lag: a folder that has just changed is read again next time."""

COMPILED = "__pycache__"
"""Folders of compiled Python files."""

_GIT = ".git"
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")


@frozen
class CodeScan:
    """What a project's folder contains, as paths relative to it.

    Args:
        code: The files that are code, and what they are now; links to folders count as code.
        closed: Folders in which nothing may be written: version control, our own folder, Python environments,
            compiled Python files, and what can't be read.
        secrets: Files that may hold secrets, under all their names.
        held: Folders that have a link that is code; a link can only be kept by keeping its folder.
        linked: Other names of files that are code.
        links: Which of the code are links.
        folders: All folders that aren't closed; of libraries only the outermost.
        complete: Whether everything was looked at.
    """

    code: Mapping[str, Identity]
    closed: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    links: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()
    complete: bool = True


@dataclass(slots=True)
class _Folder:
    """What is known of one folder."""

    identity: tuple[int, int]
    read_at: int
    folders: list[str] = field(default_factory=list[str])
    libraries: list[str] = field(default_factory=list[str])
    code: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    entries: int = 0
    held: bool = False
    is_opaque: bool = False


class CodeTree:
    """The folders of a project, each read when it has changed.

    Args:
        code: What is code.
        is_secret: Whether a file of this path may hold secrets.
    """

    def __init__(self, code: CodeFiles, is_secret: Callable[[str], bool]) -> None:
        self.code = code
        self._is_secret = is_secret
        self._root = os.path.realpath(code.root)
        self._known: dict[str, _Folder] = {}
        self._lock = threading.Lock()

    def scan(self) -> CodeScan:
        """Look at the folder as it is now."""
        with self._lock:
            return self._scan()

    def _scan(self) -> CodeScan:
        until, seen = time.monotonic() + _SECONDS, 0
        known: dict[str, _Folder] = {}
        code: dict[str, Identity] = {}
        closed: list[str] = []
        secrets: list[str] = []
        held: list[str] = []
        folders: list[str] = []
        shared: dict[int, int] = {}
        shown: dict[int, int] = {}
        links: set[str] = set()
        waiting = [""]
        while waiting:
            path = waiting.pop()
            folder = self._folder(path)
            if folder is None:
                continue
            seen += folder.entries
            if seen > _MOST or time.monotonic() > until:
                return CodeScan(code, complete=False)
            known[path] = folder
            if folder.is_opaque and path:
                closed.append(path)
                code[path.rstrip("/")] = (folder.identity[0], 0, 0)  # a new one is noticed like a new file
                continue
            folders.append(path)
            folders += [f"{path}{name}" for name in folder.libraries]
            for name in folder.code:
                self._add(f"{path}{name}", code, shared, links)
            closed += [f"{path}{name}" for name in folder.closed]
            for name in folder.secrets:
                secrets.append(f"{path}{name}")
                self._count_names(f"{path}{name}", shown)
            held += [path] * folder.held
            waiting += [f"{path}{name}/" for name in folder.folders]
        self._known = known
        linked = self._other_names(shared, code) if any(shared.values()) else ()
        secrets += self._other_names(shown, secrets) if any(shown.values()) else ()
        bare = (tuple(map(_bare, each)) for each in (closed, secrets, held))
        others = tuple(map(_bare, folders[1:]))
        return CodeScan(code, *bare, linked=linked, links=frozenset(links), folders=others)

    def _folder(self, path: str) -> _Folder | None:
        """What a folder contains; None if it isn't there any more, or is a link."""
        place = f"{self._root}/{path}".rstrip("/") or "/"
        try:
            info = os.lstat(place)
            if not stat.S_ISDIR(info.st_mode):
                return None
            identity = (info.st_ino, info.st_ctime_ns)
            found = self._known.get(path)
            if found is not None and found.identity == identity and info.st_ctime_ns + _TICK < found.read_at:
                return found
        except OSError:
            return None
        try:
            return self._read(place, path, _Folder(identity, time.time_ns()))
        except OSError:  # nothing is known of what is in it
            return _Folder(identity, 0, is_opaque=True)

    def _read(self, place: str, path: str, folder: _Folder) -> _Folder:
        with os.scandir(place) as entries:
            for entry in entries:
                folder.entries += 1
                name, plain = entry.name, fold_name(entry.name)
                folder.is_opaque |= plain in _ENVIRONMENTS
                if plain in CLOSED_FOLDERS or plain == COMPILED:
                    folder.closed.append(name)
                    folder.secrets += self._secrets_of_git(f"{path}{name}") if plain == _GIT else ()
                elif entry.is_symlink():
                    leads_to_folder = _is_folder(entry) and not self.code.is_data(f"{path}{name}/x")
                    if leads_to_folder or self.code.kind(f"{path}{name}") is not None:
                        folder.code.append(name)
                        folder.held |= not leads_to_folder
                elif entry.is_dir(follow_symlinks=False):
                    if plain not in LIBRARY_FOLDERS or self.code.reaches_anywhere:
                        folder.folders.append(name)
                    else:
                        folder.libraries.append(name)
                elif self.code.kind(f"{path}{name}") is not None:
                    folder.code.append(name)
                elif self._is_secret(f"{path}{name}"):
                    folder.secrets.append(name)
                if not path and plain == KEY_FILE:
                    folder.code.append(name)
        return folder

    def _add(self, path: str, code: dict[str, Identity], shared: dict[int, int], links: set[str]) -> None:
        try:
            info = os.lstat(f"{self._root}/{path}")
        except OSError:
            return
        code[path] = (info.st_ino, info.st_ctime_ns, info.st_size)
        if stat.S_ISLNK(info.st_mode):
            links.add(path)
        _count_name(info, shared)

    def _count_names(self, path: str, shared: dict[int, int]) -> None:
        with contextlib.suppress(OSError):
            _count_name(os.lstat(f"{self._root}/{path}"), shared)

    def _secrets_of_git(self, path: str) -> list[str]:
        """Return the secret files directly in a repository's folder; git itself needs its settings."""
        try:
            with os.scandir(f"{self._root}/{path}") as entries:
                names = [entry.name for entry in entries]
        except OSError:
            return []
        found = [name for name in names if fold_name(name) != "config" and self._is_secret(f"{path}/{name}")]
        return [f"{path.rpartition('/')[2]}/{name}" for name in found]

    def _other_names(self, shared: Mapping[int, int], known: Container[str]) -> tuple[str, ...]:
        """Find the other names of files, by how many of their names aren't known."""
        linked = {inode for inode, left in shared.items() if left > 0}
        found: list[str] = []
        for path in self._known:
            try:
                with os.scandir(f"{self._root}/{path}") as entries:
                    found += [f"{path}{entry.name}" for entry in entries if entry.inode() in linked]
            except OSError:
                continue
        return tuple(path for path in found if path not in known)


def _count_name(info: os.stat_result, shared: dict[int, int]) -> None:
    """Count a name of a file that has several: what is left is the number of the others."""
    if info.st_nlink > 1 and stat.S_ISREG(info.st_mode):
        shared[info.st_ino] = shared.get(info.st_ino, info.st_nlink) - 1


def _is_folder(link: os.DirEntry[str]) -> bool:
    """Whether a link leads to a folder; one that leads nowhere, or in a circle, doesn't."""
    try:
        return link.is_dir()
    except OSError:
        return False


def _bare(path: str) -> str:
    return path.rstrip("/") or "."
