"""`FileState`: what is at a path, a file with its content, a link, a folder or nothing; as a value and as JSON data."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from typing import Any, BinaryIO, Literal, cast, get_args

from llm_do._startup.frozen import frozen
from llm_do.files.folders import Folder, kind_of, open_file

__all__ = ["LARGEST", "MISSING", "FileState", "content_digest", "read_state", "stream_digest"]

LARGEST = 32 * 1024 * 1024
"""The size in bytes of the largest file whose content is compared and kept."""

_LARGEST_SIZE = 2**63 - 1
"""What a file system can have; more would only overflow."""

StateKind = Literal["missing", "file", "link", "folder", "other"]


@frozen
class FileState:
    """What is at a path.

    Args:
        kind: What it is; `other` is a device, pipe or socket.
        digest: The digest of a file's content; empty if it is too large or can't be read.
        size: A file's size in bytes.
        mode: The permission bits of a file; None if they aren't known.
        target: Where a link leads, as it is written.
    """

    kind: StateKind
    digest: str = ""
    size: int = 0
    mode: int | None = None
    target: str = ""

    def matches(self, recorded: FileState) -> bool:
        """Whether this, which is there now, is what was recorded; the mode only if it is known.

        Example:
            >>> FileState("file", "ab", 1, 0o644).matches(FileState("file", "ab", 1))
            True
            >>> FileState("file").matches(FileState("file"))  # nothing is known of their contents
            False
        """
        if self.kind != recorded.kind:
            return False
        if self.kind == "file":
            same = self.digest == recorded.digest != ""
            return same and (recorded.mode is None or self.mode == recorded.mode)
        return self.kind in ("missing", "folder") or (self.kind == "link" and self.target == recorded.target)

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON data, without what says nothing."""
        data: dict[str, Any] = {"kind": self.kind}
        if self.kind == "file":
            data |= {"sha256": self.digest, "size": self.size, "mode": self.mode}
        return data | ({"target": self.target} if self.kind == "link" else {})

    @classmethod
    def from_dict(cls, data: object) -> FileState:
        """Return the state that `to_dict` wrote.

        Raises:
            ValueError: It isn't one.
        """
        if not isinstance(data, Mapping):
            raise ValueError("not a state")
        found = cast("Mapping[str, Any]", data)
        kind, mode = found.get("kind"), found.get("mode")
        digest, size, target = found.get("sha256", ""), found.get("size", 0), found.get("target", "")
        if kind not in get_args(StateKind) or type(size) is not int or type(mode) not in (int, type(None)):
            raise ValueError("not a state")
        if not 0 <= size <= _LARGEST_SIZE:
            raise ValueError("not a state")
        if not isinstance(digest, str) or not isinstance(target, str) or (digest and not _is_digest(digest)):
            raise ValueError("not a state")
        return cls(cast("StateKind", kind), digest, size, None if mode is None else mode & 0o777, target)


MISSING = FileState("missing")
"""There is nothing."""


def read_state(folder: Folder, name: str, path: str) -> tuple[FileState, bytes | None]:
    """Return what is at a name in a folder, and a file's content; None if it is too large or isn't a file.

    Raises:
        FileRefusedError: The file is one that nothing may open.
        OSError: It can't be read.
    """
    try:
        info = folder.lstat(name)
    except FileNotFoundError:
        return MISSING, None
    kind = kind_of(info)
    if kind == "link":
        return FileState("link", target=folder.readlink(name)), None
    if kind != "file":
        return FileState(kind, mode=stat.S_IMODE(info.st_mode) & 0o777 if kind == "folder" else None), None
    with open_file(folder, name, path) as stream:
        info = os.fstat(stream.fileno())
        mode = stat.S_IMODE(info.st_mode) & 0o777
        data = stream.read(LARGEST + 1) if info.st_size <= LARGEST else b""
        if info.st_size > LARGEST or len(data) > LARGEST:
            return FileState("file", "", info.st_size, mode), None
        return FileState("file", content_digest(data), len(data), mode), data


def content_digest(data: bytes | None) -> str:
    """Return the digest of a file's content; None is a file that doesn't exist."""
    return "missing" if data is None else hashlib.sha256(data).hexdigest()


def stream_digest(stream: BinaryIO) -> str:
    """Return the digest of the content of an open file."""
    found = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        found.update(chunk)
    return found.hexdigest()


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
