"""`Root`: the files below one folder, and no others.

Every operation walks from the root's own descriptor, one name at a time, and never lets the system follow a link. Links
are resolved here: one that stays below the root is followed, one that leaves it is refused. So a link that is swapped
in between a check and its use can't lead outside. Devices, pipes and sockets are never opened. Callers pass a `guard`
to restrict what is read or written *below* the root.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Generator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from llm_do._startup.frozen import frozen
from llm_do.files.changes import folder_changes as changes
from llm_do.files.changes.file_states import MISSING, FileState, content_digest, read_state, stream_digest
from llm_do.files.changes.keeping import Place
from llm_do.files.folders import Folder, FolderEntry, Kind, kind_at, kind_of, must_be_regular, open_file, open_folder
from llm_do.files.path_walk import Walk, WalkEnd
from llm_do.files.paths import display_path, outside_refusal, split_path
from llm_do.files.refusals import ContentChangedError, FileRefusedError, refusal_for
from llm_do.policy.values import FolderPath

__all__ = ["FileInfo", "Guard", "Root", "refuse_links"]

Guard = Callable[[tuple[str, ...]], None]
"""A function that is called with the trail of a path before any access, and raises to refuse it."""


@frozen
class FileInfo:
    """What a path below the root refers to."""

    path: str
    """The real path below the root, in POSIX form; `.` is the root."""

    kind: Kind
    """A file, a folder, a link that was not followed, or `other` (a device, pipe or socket)."""

    size: int
    mode: int
    """The permission bits."""

    modified: float
    """Seconds since the epoch."""


class Root:
    """The files below one folder; it keeps nothing open and can be shared between threads.

    The folder is trusted, so it may be a link itself. If it doesn't exist, a write creates it below `base`, an existing
    folder above it, like the folders on the way to a file; without a `base` it is never created. By default it works
    by directory descriptor if the system supports that.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     root = Root(folder)
        ...     root.write("notes/today.md", b"hello")
        ...     root.read("notes/../notes/today.md", limit=100)
        ...     try:
        ...         root.read("../secret", limit=100)
        ...     except FileRefusedError as error:
        ...         print(error)
        True
        b'hello'
        ../secret: it is outside the root folder
    """

    def __init__(self, path: str | Path, *, base: str | Path | None = None, by_descriptor: bool | None = None) -> None:
        self.path = Path(path).absolute()
        self._base = Path(base).absolute() if base is not None and _is_below(self.path, Path(base).absolute()) else None
        self._by_descriptor = by_descriptor

    @property
    def is_pending(self) -> bool:
        """Whether the root doesn't exist yet and the first write creates it."""
        return self._base is not None and not self.path.exists()

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """The absolute paths of the root: as passed, and without links."""
        return tuple(dict.fromkeys((str(self.path), os.path.normpath(self.path), os.path.realpath(self.path))))

    def trail(self, path: str, *, follow: bool = True) -> tuple[str, ...]:
        """Return every form of a path below the root: as written first, the real path last."""
        with self._walk(path, follow=follow, missing_ok=True) as end:
            return end.trail

    def place(self, path: str, *, follow: bool = True) -> tuple[str, ...]:
        """Return the trail of a path, for rules to match: its end says whether it is a folder."""
        with self._walk(path, follow=follow, missing_ok=True) as end:
            is_folder = not end.below and (not end.name or kind_at(end.folder, end.name) == "folder")
            return (*end.trail[:-1], FolderPath(end.trail[-1])) if is_folder else end.trail

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """Return information about a path."""
        with self._walk(path, follow=follow) as end:
            info = end.folder.lstat(end.name) if end.name else end.folder.stat()
            return FileInfo(end.trail[-1], kind_of(info), info.st_size, stat.S_IMODE(info.st_mode), info.st_mtime)

    @contextlib.contextmanager
    def open(self, path: str, *, guard: Guard | None = None) -> Generator[BinaryIO]:
        """Open a regular file for reading."""
        with self._walk(path, guard=guard) as end, open_file(end.folder, end.name, display_path(path)) as stream:
            yield stream

    def read(self, path: str, *, limit: int, guard: Guard | None = None) -> bytes:
        """Read the first `limit` bytes of a file."""
        with self.open(path, guard=guard) as stream:
            return stream.read(limit)

    def digest(self, path: str, *, guard: Guard | None = None) -> str:
        """Return the digest of a file's content, as `write` compares it; that of `None` if there is no file."""
        try:
            with self.open(path, guard=guard) as stream:
                return stream_digest(stream)
        except FileRefusedError as error:
            if error.reason == "missing":
                return content_digest(None)
            raise

    def write(self, path: str, data: bytes, *, guard: Guard | None = None, expected: str | None = None) -> bool:
        """Write a file atomically and create missing folders; return whether the file is new.

        If `expected` is the digest of another content than the file has when it is replaced, nothing is written and
        `ContentChangedError` is raised.

        The data is written to a temporary file beside it, synced, and renamed: readers see the old file or the new one,
        a failure leaves the old one, and a hard link to the old one keeps the old data. Permission bits are preserved.
        """
        with self._walk(path, missing_ok=True, guard=guard) as end, contextlib.ExitStack() as opened:
            if end.is_root:
                raise FileRefusedError(display_path(path), "it is a folder, not a file", reason="not_a_file")
            place = self._create_parents(end, opened)
            mode = changes.mode_to_keep(place.folder, place.name, display_path(path))
            changes.replace_file(place, data, mode, None if expected is None else (display_path(path), expected))
            return mode is None

    def check_write(self, path: str, *, guard: Guard | None = None) -> None:
        """Raise `FileRefusedError` if a write of this file would fail; nothing changes."""
        with self._walk(path, missing_ok=True, guard=guard) as end:
            if end.is_root:
                raise FileRefusedError(display_path(path), "it is a folder, not a file", reason="not_a_file")
            if not end.below:
                changes.mode_to_keep(end.folder, end.name, display_path(path))

    def make_directory(self, path: str, *, guard: Guard | None = None) -> bool:
        """Create a folder and its parents; return whether the folder is new."""
        with self._walk(path, missing_ok=True, guard=guard) as end, contextlib.ExitStack() as opened:
            place = self._create_parents(end, opened)
            if not place.name or kind_at(place.folder, place.name) == "folder":
                return False
            changes.make_folder(place)
            return True

    def move(self, source: str, target: str, *, guard: Guard | None = None) -> None:
        """Move a file, or a link itself, to a free name, and create missing folders.

        A file that takes the name during the move is replaced, as with any rename.
        """
        with (
            self._walk(source, follow=False, guard=guard) as old,
            self._walk(target, follow=False, missing_ok=True, guard=guard) as new,
            contextlib.ExitStack() as opened,
        ):
            _must_be_file(old.folder, old.name, display_path(source))
            _must_be_free(new, target)
            changes.move(self._place(old), self._create_parents(new, opened))

    def check_move(self, source: str, target: str, *, guard: Guard | None = None) -> None:
        """Raise `FileRefusedError` if a move would fail; nothing changes."""
        with (
            self._walk(source, follow=False, guard=guard) as old,
            self._walk(target, follow=False, missing_ok=True, guard=guard) as new,
        ):
            _must_be_file(old.folder, old.name, display_path(source))
            _must_be_free(new, target)

    def check_delete(self, path: str, *, guard: Guard | None = None) -> None:
        """Raise `FileRefusedError` if there is no such file to delete; nothing changes."""
        with self._walk(path, follow=False, guard=guard) as end:
            _must_be_file(end.folder, end.name, display_path(path))

    def delete(self, path: str, *, guard: Guard | None = None) -> None:
        """Delete a file, or a link itself, but never a folder."""
        with self._walk(path, follow=False, guard=guard) as end:
            _must_be_file(end.folder, end.name, display_path(path))
            changes.remove(self._place(end))

    def state(self, path: str) -> FileState:
        """Return what is at a path, no part of which may be a link."""
        try:
            with self._walk(path, follow=False, missing_ok=True, guard=refuse_links) as end:
                if end.below or not end.name:
                    return MISSING if end.below else FileState("folder")
                return read_state(end.folder, end.name, display_path(path))[0]
        except FileRefusedError as error:
            if error.reason == "not_a_folder":  # a file took the place of a folder that it was in
                return MISSING
            raise

    def put(self, path: str, state: FileState, data: bytes = b"", *, expected: FileState) -> None:
        """Put a file, a link, a folder or nothing in the place of what is expected there, however it is protected.

        No part of the path may be a link. A folder is created, or removed if it is empty.

        Raises:
            ContentChangedError: Something else is there.
            FileRefusedError: It can't be done.
        """
        with self._walk(path, follow=False, missing_ok=True, guard=refuse_links) as end:
            if end.is_root:
                raise FileRefusedError(display_path(path), "it is the root folder", reason="invalid")
            found = MISSING if end.below else read_state(end.folder, end.name, display_path(path))[0]
            if not found.matches(expected):
                raise ContentChangedError(display_path(path))
            with contextlib.ExitStack() as opened:
                if state.kind == "missing" and found.kind != "missing":
                    (changes.remove_folder if found.kind == "folder" else changes.remove)(self._place(end))
                elif state.kind == "file":
                    place, digest = self._create_parents(end, opened), found.digest or content_digest(None)
                    changes.replace_file(place, data, state.mode, (display_path(path), digest))
                elif state.kind == "link":
                    changes.make_link(self._create_parents(end, opened), state.target)
                elif state.kind == "folder":
                    changes.make_folder(self._create_parents(end, opened))

    @contextlib.contextmanager
    def folder(self, path: str, *, guard: Guard | None = None) -> Generator[tuple[Folder, str]]:
        """Open a folder; yields it with its real path."""
        with self._walk(path, guard=guard) as end:
            if not end.name:
                yield end.folder, end.trail[-1]
                return
            if kind_at(end.folder, end.name) != "folder":
                raise FileRefusedError(display_path(path), "it is not a folder", reason="not_a_folder")
            opened = end.folder.child(end.name)
            try:
                yield opened, end.trail[-1]
            finally:
                opened.close()

    def list(self, path: str = ".", *, limit: int = 1000) -> list[FolderEntry]:
        """List the names in a folder, sorted."""
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
                    end = walk.to(parts, follow=follow, missing_ok=missing_ok)
                else:
                    end = opened.enter_context(self._walk_to_pending(path, parts, missing_ok=missing_ok))
                if guard is not None:
                    guard(end.trail)
                yield end
        except OSError as error:
            raise refusal_for(display_path(path), error) from error

    @contextlib.contextmanager
    def _walk_to_pending(self, path: str, parts: list[str], *, missing_ok: bool) -> Generator[WalkEnd]:
        """Walk to the place of a root that doesn't exist yet; the root is the first folder to create."""
        _check_stays_below(path, parts)
        if not missing_ok or ".." in parts:
            why = "there is no such file or folder: the root folder doesn't exist yet"
            raise FileRefusedError(display_path(path), why, reason="missing")
        base = Root(self._base or self.path, by_descriptor=self._by_descriptor)
        root_parts = split_path(str(self.path), base.spellings)
        folder = base._open()
        assert folder is not None  # a root without a base is never pending
        with Walk(folder, str(self.path), base.spellings) as walk:
            try:
                found = walk.to(root_parts, follow=True, missing_ok=True)
            except FileRefusedError as error:
                why = f"it doesn't exist, and can't be created in {display_path(str(base.path))}, {error.why}"
                raise FileRefusedError(self._label, why, reason=error.reason) from error
            yield WalkEnd(found.folder, found.name, (*found.below, *parts), ("/".join(parts) or ".",))

    def _place(self, end: WalkEnd) -> Place:
        """Return where a walk ended, for a change there."""
        root = self.spellings[-1]
        return Place(end.folder, end.name, os.path.normpath(f"{root}/{end.trail[-1]}"), root)

    def _create_parents(self, end: WalkEnd, opened: contextlib.ExitStack) -> Place:
        """Create the missing folders of a walk's end; return the place of the final name."""
        place, missing = self._place(end), len(end.below)
        folder, name = end.folder, end.name
        for number, below in enumerate(end.below):
            above = str(Path(place.path).parents[missing - number - 1])
            with contextlib.suppress(FileExistsError):
                changes.make_folder(Place(folder, name, above, place.root))
            folder = folder.child(name)
            opened.callback(folder.close)
            name = below
        return Place(folder, name, place.path, place.root)

    def _open(self) -> Folder | None:
        """Open the root; None if it is pending."""
        try:
            if self._by_descriptor is None:
                return open_folder(self.path)
            return open_folder(self.path, by_descriptor=self._by_descriptor)
        except FileNotFoundError as error:
            if self._base is not None:
                return None
            raise refusal_for(self._label, error) from error
        except OSError as error:
            raise refusal_for(self._label, error) from error

    @property
    def _label(self) -> str:
        return f"the root folder {display_path(str(self.path))}"


def _is_below(path: Path, base: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(base))


def _check_stays_below(path: str, parts: list[str]) -> None:
    """Refuse a path that leaves its root, by its text alone because the root doesn't exist."""
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise outside_refusal(path)


def refuse_links(trail: tuple[str, ...]) -> None:
    """Refuse a path any part of which is a link; a guard for `Root`."""
    if len(trail) > 1:
        raise FileRefusedError(display_path(trail[0]), "a part of it has become a link", reason="changed")


def _must_be_file(folder: Folder, name: str, path: str) -> None:
    try:
        info = folder.lstat(name) if name else folder.stat()
    except OSError as error:
        # Convert it here, where its path is known: a move has two paths.
        raise refusal_for(path, error) from error
    if kind_of(info) != "link":
        must_be_regular(info, path)


def _must_be_free(end: WalkEnd, path: str) -> None:
    if end.is_root or (not end.below and kind_at(end.folder, end.name) is not None):
        raise FileRefusedError(
            display_path(path),
            "a file or folder of that name already exists",
            reason="exists",
            hint="Choose a free name.",
        )
