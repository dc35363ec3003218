"""An open folder and the operations on the names in it: the only code of this package that touches a disk.

`DescriptorFolder` works by directory descriptor and never follows a link, so concurrent changes to the path can't
redirect it. `PathFolder` is for systems without `dir_fd` (Windows): it checks the path before each call, which protects
against every path, but not against a link that is created between the check and the call.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from llm_do._startup.frozen import frozen
from llm_do.files.held_files import must_not_be_held
from llm_do.files.refusals import FileRefusedError

__all__ = [
    "CREATE",
    "READ",
    "DescriptorFolder",
    "Folder",
    "FolderEntry",
    "Kind",
    "PathFolder",
    "kind_at",
    "kind_of",
    "must_be_regular",
    "open_file",
    "open_folder",
    "temporary_name",
]

Kind = Literal["file", "folder", "link", "other"]

_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NEVER_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_A_FOLDER = getattr(os, "O_DIRECTORY", 0)

READ = os.O_RDONLY | _NO_FOLLOW | _NEVER_WAIT | _CLOSE_ON_EXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _CLOSE_ON_EXEC

_NEEDED = {os.open, os.stat, os.mkdir, os.rmdir, os.rename, os.unlink, os.readlink, os.symlink}
_BY_DESCRIPTOR = os.supports_dir_fd >= _NEEDED and bool(os.scandir in os.supports_fd and _NO_FOLLOW and _A_FOLDER)


@frozen
class FolderEntry:
    """A name in a folder and its kind; links aren't followed."""

    name: str
    kind: Kind


class Folder(Protocol):
    """An open folder; every `name` is a plain name, neither `..` nor a path."""

    def lstat(self, name: str) -> os.stat_result: ...
    def readlink(self, name: str) -> str: ...
    def child(self, name: str) -> Folder: ...
    def open(self, name: str, flags: int, mode: int = 0o666) -> int: ...
    def mkdir(self, name: str, mode: int = 0o777) -> None: ...
    def rmdir(self, name: str) -> None: ...
    def symlink(self, name: str, target: str) -> None: ...
    def unlink(self, name: str) -> None: ...
    def rename(self, name: str, new: str, target: Folder) -> None: ...
    def entries(self) -> Iterator[FolderEntry]: ...
    def leftovers(self) -> list[str]: ...
    def sync(self) -> None: ...
    def stat(self) -> os.stat_result: ...
    def close(self) -> None: ...


def open_folder(path: Path, *, by_descriptor: bool = _BY_DESCRIPTOR) -> Folder:
    """Open a trusted folder, such as a root."""
    if by_descriptor:
        return DescriptorFolder(os.open(path, os.O_RDONLY | _A_FOLDER | _CLOSE_ON_EXEC))
    if not path.is_dir():
        raise OSError(errno.ENOTDIR if path.exists() else errno.ENOENT, "not a folder")
    return PathFolder(path.resolve())


def kind_of(info: os.stat_result) -> Kind:
    """Return the kind of a file by the result of `lstat`."""
    if _is_link(info):
        return "link"
    if stat.S_ISREG(info.st_mode):
        return "file"
    return "folder" if stat.S_ISDIR(info.st_mode) else "other"


def kind_at(folder: Folder, name: str) -> Kind | None:
    """Return the kind of a name in a folder; None if it doesn't exist."""
    try:
        return kind_of(folder.lstat(name))
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def open_file(folder: Folder, name: str, path: str) -> Generator[BinaryIO]:
    """Open a regular file in a folder for reading."""
    # Check before opening, because opening some devices has side effects, and after it, which is the check that counts.
    info = folder.lstat(name) if name else folder.stat()
    must_be_regular(info, path, hint="List it instead.")
    must_not_be_held(info, path)
    with os.fdopen(folder.open(name, READ), "rb") as stream:
        must_be_regular(os.fstat(stream.fileno()), path)
        yield stream


def must_be_regular(info: os.stat_result, path: str, *, hint: str | None = None) -> None:
    """Raise unless this is a regular file; `hint` is what to do with a folder."""
    kind = kind_of(info)
    if kind == "folder":
        raise FileRefusedError(path, "it is a folder, not a file", reason="not_a_file", hint=hint)
    if kind == "other":
        raise FileRefusedError(path, "it is a socket, a pipe or a device, not a file", reason="not_a_file")
    if kind == "link":
        raise FileRefusedError(path, "it became a link while it was in use", reason="changed", hint="Try again.")


_TEMPORARY = re.compile(r"\.llm-do-[0-9a-f]{16}\.tmp")


def temporary_name() -> str:
    """Return the name of a file that takes another's place once it is written; no listing shows such a file."""
    return f".llm-do-{secrets.token_hex(8)}.tmp"


def _visible(found: Iterable[os.DirEntry[str]]) -> Iterator[FolderEntry]:
    """Yield the entries of a folder but for files that are being written, or were when a process was killed."""
    return (_folder_entry(entry) for entry in found if _TEMPORARY.fullmatch(entry.name) is None)


class DescriptorFolder:
    """A folder held by its descriptor, which it owns; race-free."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def lstat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def readlink(self, name: str) -> str:
        return os.readlink(name, dir_fd=self.fd)

    def child(self, name: str) -> Folder:
        return DescriptorFolder(os.open(name, READ | _A_FOLDER, dir_fd=self.fd))

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        return os.open(name, flags, mode, dir_fd=self.fd)

    def mkdir(self, name: str, mode: int = 0o777) -> None:
        os.mkdir(name, mode, dir_fd=self.fd)

    def rmdir(self, name: str) -> None:
        os.rmdir(name, dir_fd=self.fd)

    def symlink(self, name: str, target: str) -> None:
        os.symlink(target, name, dir_fd=self.fd)

    def unlink(self, name: str) -> None:
        os.unlink(name, dir_fd=self.fd)

    def rename(self, name: str, new: str, target: Folder) -> None:
        assert isinstance(target, DescriptorFolder)
        os.rename(name, new, src_dir_fd=self.fd, dst_dir_fd=target.fd)

    def entries(self) -> Iterator[FolderEntry]:
        with os.scandir(self.fd) as found:
            yield from _visible(found)

    def leftovers(self) -> list[str]:
        with os.scandir(self.fd) as found:
            return [entry.name for entry in found if _TEMPORARY.fullmatch(entry.name)]

    def sync(self) -> None:
        os.fsync(self.fd)

    def stat(self) -> os.stat_result:
        return os.fstat(self.fd)

    def close(self) -> None:
        os.close(self.fd)


class PathFolder:
    """A folder held by its path, absolute and without links, which is checked before each use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lstat(self, name: str) -> os.stat_result:
        return self._at(name).lstat()

    def readlink(self, name: str) -> str:
        target = str(self._at(name).readlink())
        return target.removeprefix("\\\\?\\")

    def child(self, name: str) -> Folder:
        path = self._at(name)
        if kind_of(path.lstat()) != "folder":
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        # The system's own spelling of the name, for later comparisons.
        path = path.resolve()
        if path.parent != self.path:
            raise OSError(errno.ELOOP, "a link")
        return PathFolder(path)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        path = self._at(name)
        if not flags & os.O_CREAT and kind_of(path.lstat()) == "link":
            raise OSError(errno.ELOOP, "a link")
        return os.open(path, flags, mode)

    def mkdir(self, name: str, mode: int = 0o777) -> None:
        self._at(name).mkdir(mode)

    def rmdir(self, name: str) -> None:
        self._at(name).rmdir()

    def symlink(self, name: str, target: str) -> None:
        self._at(name).symlink_to(target)

    def unlink(self, name: str) -> None:
        self._at(name).unlink()

    def rename(self, name: str, new: str, target: Folder) -> None:
        assert isinstance(target, PathFolder)
        self._at(name).replace(target._at(new))

    def entries(self) -> Iterator[FolderEntry]:
        self._check()
        with os.scandir(self.path) as found:
            yield from _visible(found)

    def leftovers(self) -> list[str]:
        self._check()
        with os.scandir(self.path) as found:
            return [entry.name for entry in found if _TEMPORARY.fullmatch(entry.name)]

    def sync(self) -> None:
        """Do nothing: these systems can't sync a folder."""

    def stat(self) -> os.stat_result:
        return self.path.lstat()

    def close(self) -> None:
        """Do nothing: there is no descriptor."""

    def _check(self) -> None:
        if self.path.resolve() != self.path:
            raise OSError(errno.ELOOP, "a folder above it became a link")

    def _at(self, name: str) -> Path:
        self._check()
        return self.path / name


def _folder_entry(entry: os.DirEntry[str]) -> FolderEntry:
    if entry.is_symlink() or _is_link_entry(entry):
        return FolderEntry(entry.name, "link")
    if entry.is_dir(follow_symlinks=False):
        return FolderEntry(entry.name, "folder")
    return FolderEntry(entry.name, "file" if entry.is_file(follow_symlinks=False) else "other")


def _is_link(info: os.stat_result) -> bool:
    # A junction is a kind of link: 0xA0000003 is its reparse tag.
    return stat.S_ISLNK(info.st_mode) or getattr(info, "st_reparse_tag", 0) == 0xA0000003


def _is_link_entry(entry: os.DirEntry[str]) -> bool:
    return os.name == "nt" and _is_link(entry.stat(follow_symlinks=False))
