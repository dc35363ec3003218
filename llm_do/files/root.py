"""`Root`: the files below one folder, and no others.

Every operation walks from the root's own descriptor, one name at a time, never letting the system follow a
link. Links are resolved here: one that stays below the root is followed, one that leaves is refused. So there
is no moment between a check and a use in which a link swapped in could lead outside. What is never touched:
devices, pipes, sockets. What may be read or written *below* the root is for `guard`, which callers pass.
Listing and searching many files is in `llm_do.files.tree`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Generator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from llm_do._startup.frozen import frozen
from llm_do.files.folders import (
    CREATE,
    Folder,
    FolderEntry,
    Kind,
    kind_at,
    kind_of,
    must_be_regular,
    open_file,
    open_folder,
)
from llm_do.files.path_walk import Walk, WalkEnd
from llm_do.files.paths import display_path, outside_refusal, split_path
from llm_do.files.refusals import FileRefusedError, refusal_for

__all__ = ["FileInfo", "Guard", "Root"]

Guard = Callable[[tuple[str, ...]], None]
"""Called with the trail of a path before anything is touched; raises to refuse it."""


@frozen
class FileInfo:
    """What a path below the root names.

    Args:
        path: Where it really is, below the root, in POSIX form; `.` is the root.
        kind: A file, a folder, or `other` (device, pipe, socket); a link that was not followed is `link`.
        size: Bytes.
        mode: Permission bits.
        modified: Seconds since the epoch.
    """

    path: str
    kind: Kind
    size: int
    mode: int
    modified: float


class Root:
    """The files below one folder; safe to share between threads, holds nothing open.

    Args:
        path: The folder. It is trusted: a link as the root itself is followed.
        base: A folder above it that is there. Where the root isn't there yet, what writes makes it, as it makes
            folders on the way to a file: link by link, and never outside the base. None makes no root.
        by_descriptor: Whether to work by directory descriptor; None is wherever the system can.

    Example:
        >>> import tempfile
        >>> root = Root(Path(tempfile.mkdtemp()))
        >>> root.write("notes/today.md", b"hello")
        True
        >>> root.read("notes/../notes/today.md", limit=100)
        b'hello'
        >>> root.read("../secret", limit=100)
        Traceback (most recent call last):
        ...
        llm_do.files.refusals.FileRefusedError: ../secret: it is outside the root folder
    """

    def __init__(self, path: str | Path, *, base: str | Path | None = None, by_descriptor: bool | None = None) -> None:
        self.path = Path(path).absolute()
        self._base = Path(base).absolute() if base is not None and _is_below(self.path, Path(base).absolute()) else None
        self._by_descriptor = by_descriptor

    @property
    def to_come(self) -> bool:
        """Whether the root isn't there yet, and what writes makes it."""
        return self._base is not None and not self.path.exists()

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """The absolute paths under which the root is known: as passed, and without links."""
        return tuple(dict.fromkeys((str(self.path), os.path.normpath(self.path), os.path.realpath(self.path))))

    def trail(self, path: str, *, follow: bool = True) -> tuple[str, ...]:
        """Every path below the root that `path` stands for, as written first, where it really is last."""
        with self._walk(path, follow=follow, missing_ok=True) as spot:
            return spot.trail

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """What is at `path`."""
        with self._walk(path, follow=follow) as spot:
            info = spot.folder.lstat(spot.name) if spot.name else spot.folder.stat()
            return FileInfo(spot.trail[-1], kind_of(info), info.st_size, stat.S_IMODE(info.st_mode), info.st_mtime)

    @contextlib.contextmanager
    def open(self, path: str, *, guard: Guard | None = None) -> Generator[BinaryIO]:
        """A regular file, opened for reading."""
        with self._walk(path, guard=guard) as spot, open_file(spot.folder, spot.name, display_path(path)) as stream:
            yield stream

    def read(self, path: str, *, limit: int, guard: Guard | None = None) -> bytes:
        """A file's first `limit` bytes."""
        with self.open(path, guard=guard) as stream:
            return stream.read(limit)

    def write(self, path: str, data: bytes, *, guard: Guard | None = None) -> bool:
        """Replace a file atomically; missing folders are created.

        The bytes go to a temporary file beside it, reach the disk, then take the name: a reader sees the old
        file or the new one, a failure leaves the old one, another name (hard link) of the old one keeps the old
        bytes. Permission bits are kept.
        """
        with self._walk(path, missing_ok=True, guard=guard) as spot, contextlib.ExitStack() as opened:
            if spot.is_root:
                raise FileRefusedError(display_path(path), "it is a folder, not a file", reason="not_a_file")
            folder, name = _make_way(spot, opened)
            mode = _mode_to_keep(folder, name, display_path(path))
            _replace(folder, name, data, mode)
            return mode is None

    def make_directory(self, path: str, *, guard: Guard | None = None) -> bool:
        """Make a folder and those above it."""
        with self._walk(path, missing_ok=True, guard=guard) as spot, contextlib.ExitStack() as opened:
            folder, name = _make_way(spot, opened)
            if not name or kind_at(folder, name) == "folder":
                return False
            folder.mkdir(name)
            return True

    def move(self, source: str, target: str, *, guard: Guard | None = None) -> None:
        """Move a file (or a link itself) to a name that is free; folders on the way are made.

        What takes the free name in the very moment of the move is replaced, as any rename does.
        """
        with (
            self._walk(source, follow=False, guard=guard) as old,
            self._walk(target, follow=False, missing_ok=True, guard=guard) as new,
            contextlib.ExitStack() as opened,
        ):
            _must_be_file(old.folder, old.name, display_path(source))
            if new.is_root or (not new.below and kind_at(new.folder, new.name) is not None):
                raise FileRefusedError(
                    display_path(target),
                    "there is something of that name already",
                    reason="exists",
                    hint="Choose a free name.",
                )
            folder, name = _make_way(new, opened)
            old.folder.rename(old.name, name, folder)

    def delete(self, path: str, *, guard: Guard | None = None) -> None:
        """Delete one file, or a link itself; never a folder."""
        with self._walk(path, follow=False, guard=guard) as spot:
            _must_be_file(spot.folder, spot.name, display_path(path))
            spot.folder.unlink(spot.name)

    @contextlib.contextmanager
    def folder(self, path: str, *, guard: Guard | None = None) -> Generator[tuple[Folder, str]]:
        """A folder, opened, with where it really is."""
        with self._walk(path, guard=guard) as spot:
            if not spot.name:
                yield spot.folder, spot.trail[-1]
                return
            if kind_at(spot.folder, spot.name) != "folder":
                raise FileRefusedError(display_path(path), "it is not a folder", reason="not_a_folder")
            opened = spot.folder.child(spot.name)
            try:
                yield opened, spot.trail[-1]
            finally:
                opened.close()

    def list(self, path: str = ".", *, limit: int = 1000) -> list[FolderEntry]:
        """The names in one folder, in order."""
        with self.folder(path) as (folder, _):
            return sorted(folder.entries(), key=lambda entry: entry.name)[:limit]

    @contextlib.contextmanager
    def _walk(
        self, path: str, *, follow: bool = True, missing_ok: bool = False, guard: Guard | None = None
    ) -> Generator[WalkEnd]:
        parts = split_path(path, self.spellings)
        try:
            with contextlib.ExitStack() as opened:
                root = self._open()
                if root is not None:
                    walk = opened.enter_context(Walk(root, path, self.spellings))
                    spot = walk.to(parts, follow=follow, missing_ok=missing_ok)
                else:
                    spot = opened.enter_context(self._to_come(path, parts, missing_ok=missing_ok))
                if guard is not None:
                    guard(spot.trail)
                yield spot
        except OSError as error:
            raise refusal_for(display_path(path), error) from error

    @contextlib.contextmanager
    def _to_come(self, path: str, parts: list[str], *, missing_ok: bool) -> Generator[WalkEnd]:
        """A spot below a root that isn't there yet: what it lacks begins with the root."""
        _stays(path, parts)
        if not missing_ok or ".." in parts:
            why = "there is no such file or folder: the root folder doesn't exist yet"
            raise FileRefusedError(display_path(path), why, reason="missing")
        base = Root(self._base or self.path, by_descriptor=self._by_descriptor)
        way = split_path(str(self.path), base.spellings)
        folder = base._open()
        assert folder is not None  # a root without a base is never to come
        with Walk(folder, str(self.path), base.spellings) as walk:
            try:
                found = walk.to(way, follow=True, missing_ok=True)
            except FileRefusedError as error:
                why = f"it doesn't exist, and can't be made in {display_path(str(base.path))}, {error.why}"
                raise FileRefusedError(self._shown, why, reason=error.reason) from error
            yield WalkEnd(found.folder, found.name, (*found.below, *parts), ("/".join(parts) or ".",))

    def _open(self) -> Folder | None:
        """The root; None where it is to come."""
        try:
            if self._by_descriptor is None:
                return open_folder(self.path)
            return open_folder(self.path, by_descriptor=self._by_descriptor)
        except FileNotFoundError as error:
            if self._base is not None:
                return None
            raise refusal_for(self._shown, error) from error
        except OSError as error:
            raise refusal_for(self._shown, error) from error

    @property
    def _shown(self) -> str:
        return f"the root folder {display_path(str(self.path))}"


def _is_below(path: Path, base: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(base))


def _stays(path: str, parts: list[str]) -> None:
    """Refuse a path that goes up from its root: where nothing is, nothing else can tell."""
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise outside_refusal(path)


def _must_be_file(folder: Folder, name: str, path: str) -> None:
    try:
        info = folder.lstat(name) if name else folder.stat()
    except OSError as error:
        # Here, where it is known whose it is: a move has two paths.
        raise refusal_for(path, error) from error
    if kind_of(info) != "link":
        must_be_regular(info, path)


def _make_way(spot: WalkEnd, opened: contextlib.ExitStack) -> tuple[Folder, str]:
    """Make the folders a spot lacks; the folder and the name that then remain."""
    folder, name = spot.folder, spot.name
    for below in spot.below:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(name)
        folder = folder.child(name)
        opened.callback(folder.close)
        name = below
    return folder, name


def _mode_to_keep(folder: Folder, name: str, path: str) -> int | None:
    try:
        info = folder.lstat(name)
    except FileNotFoundError:
        return None
    must_be_regular(info, path)
    if not info.st_mode & 0o222:
        raise FileRefusedError(path, "it is marked read-only", reason="permission")
    return info.st_mode & 0o777


def _replace(folder: Folder, name: str, data: bytes, mode: int | None) -> None:
    temporary = f".llm-do-{secrets.token_hex(8)}.tmp"
    fd = folder.open(temporary, CREATE, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        folder.rename(temporary, name, folder)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(temporary)
        raise
    # Some file systems can't sync a folder; the file is in place all the same.
    with contextlib.suppress(OSError):
        folder.sync()
