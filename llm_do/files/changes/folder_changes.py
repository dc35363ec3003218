"""Every way in which `Root` changes a folder; each keeps what it replaces before it takes effect."""

from __future__ import annotations

import contextlib
import os

from llm_do.files.changes.file_states import MISSING, FileState, content_digest, read_state, stream_digest
from llm_do.files.changes.keeping import KEEPER, Change, Place, kept
from llm_do.files.folders import CREATE, Folder, must_be_regular, open_file, temporary_name
from llm_do.files.paths import display_path
from llm_do.files.refusals import ContentChangedError, FileRefusedError

__all__ = ["make_folder", "make_link", "mode_to_keep", "move", "remove", "remove_folder", "replace_file"]


def mode_to_keep(folder: Folder, name: str, path: str) -> int | None:
    """Return the permission bits of the file that a write replaces, None if there is none.

    Raises:
        FileRefusedError: It isn't a file, or nobody may write it.
    """
    try:
        info = folder.lstat(name)
    except FileNotFoundError:
        return None
    must_be_regular(info, path)
    if not info.st_mode & 0o222:
        raise FileRefusedError(path, "it is marked read-only", reason="permission")
    return info.st_mode & 0o777


def replace_file(place: Place, data: bytes, mode: int | None, expected: tuple[str, str] | None) -> None:
    """Write a file in one step.

    Args:
        place: Where.
        data: Its content.
        mode: Its permission bits; None for those of a new file.
        expected: The path for messages, and the digest of what it must still replace.
    """
    with kept(Change(place, FileState("file", content_digest(data), len(data), mode))):
        _replace(place.folder, place.name, data, mode, expected)


def make_folder(place: Place) -> None:
    """Create a folder."""
    with kept(Change(place, FileState("folder"))):
        place.folder.mkdir(place.name)


def make_link(place: Place, target: str) -> None:
    """Create a link."""
    with kept(Change(place, FileState("link", target=target))):
        place.folder.symlink(place.name, target)


def move(source: Place, target: Place) -> None:
    """Give a file, or a link itself, another name."""
    moved = FileState("file")
    if KEEPER.get() is not None:
        with contextlib.suppress(PermissionError):  # a file that can't be read is moved all the same
            moved, _ = read_state(source.folder, source.name, display_path(source.path))
    with kept(Change(source, MISSING), Change(target, moved)):
        source.folder.rename(source.name, target.name, target.folder)


def remove(place: Place) -> None:
    """Remove a file, or a link itself."""
    with kept(Change(place, MISSING)):
        place.folder.unlink(place.name)


def remove_folder(place: Place) -> None:
    """Remove an empty folder, with what was being written in it when a process was killed."""
    with kept(Change(place, MISSING)):
        folder = place.folder.child(place.name)
        try:
            if not any(folder.entries()):
                for name in folder.leftovers():
                    folder.unlink(name)
        finally:
            folder.close()
        place.folder.rmdir(place.name)


def _replace(folder: Folder, name: str, data: bytes, mode: int | None, expected: tuple[str, str] | None) -> None:
    temporary = temporary_name()
    fd = folder.open(temporary, CREATE, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        if expected is not None:  # as late as possible: only the rename follows
            _must_have_content(folder, name, *expected)
        folder.rename(temporary, name, folder)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(temporary)
        raise
    # Some file systems can't sync a folder; the file is in place anyway.
    with contextlib.suppress(OSError):
        folder.sync()


def _must_have_content(folder: Folder, name: str, path: str, expected: str) -> None:
    """Raise `ContentChangedError` if a file has another content than this digest's."""
    try:
        with open_file(folder, name, path) as stream:
            found = stream_digest(stream)
    except FileNotFoundError:
        found = content_digest(None)
    if found != expected:
        raise ContentChangedError(path)
