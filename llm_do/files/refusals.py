"""`FileRefusedError`, and the conversion of an operating system's errors to it."""

from __future__ import annotations

import errno
from typing import Literal

from llm_do.errors import ToolError

__all__ = ["ContentChangedError", "FileRefusedError", "Reason", "refusal_for"]

Reason = Literal[
    "invalid",
    "outside",
    "missing",
    "exists",
    "not_a_file",
    "not_a_folder",
    "not_text",
    "too_large",
    "permission",
    "protected",
    "changed",
    "failed",
]
"""Why a file was refused, for code; people and models read the message."""

_SYSTEM: dict[int, tuple[Reason, str]] = {
    errno.ENOENT: ("missing", "there is no such file or folder"),
    errno.EEXIST: ("exists", "a file or folder of that name already exists"),
    errno.ENOTDIR: ("not_a_folder", "a part of it that should be a folder is not one"),
    errno.EISDIR: ("not_a_file", "it is a folder, not a file"),
    errno.EACCES: ("permission", "permission denied"),
    errno.EPERM: ("permission", "permission denied"),
    errno.EROFS: ("permission", "the file system is read-only"),
    errno.ENAMETOOLONG: ("invalid", "the name is too long"),
    errno.EINVAL: ("invalid", "the system does not accept that name"),
    errno.EILSEQ: ("invalid", "the system does not accept that name"),
    errno.ELOOP: ("changed", "it became a link while it was in use"),
    errno.ENXIO: ("not_a_file", "it is a socket, a pipe or a device, not a file"),
    errno.ENOSPC: ("failed", "no space is left on the disk"),
    errno.EDQUOT: ("failed", "the disk quota is used up"),
}


class FileRefusedError(ToolError):
    """Access to a file or folder was refused, with a message that a model can act on.

    `path` is the path as requested, `why` a clause about it, `reason` the same for code, and `hint` what to do instead.

    Example:
        >>> error = FileRefusedError("a/b.md", "there is no such file or folder", reason="missing")
        >>> str(error)
        'a/b.md: there is no such file or folder'
        >>> error.reason
        'missing'
    """

    def __init__(self, path: str, why: str, *, reason: Reason, hint: str | None = None) -> None:
        super().__init__(f"{path}: {why}", hint=hint)
        self.path = path
        self.why = why
        self.reason: Reason = reason


class ContentChangedError(FileRefusedError):
    """A file's content isn't the one that its change was approved for."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "it has changed since its change was approved", reason="changed", hint="Read it again.")


def refusal_for(path: str, error: OSError) -> FileRefusedError:
    """Convert an operating system's error to a refusal.

    Example:
        >>> refusal_for("a", FileNotFoundError(errno.ENOENT, "No such file or directory")).reason
        'missing'
    """
    reason, why = _SYSTEM.get(error.errno or 0, ("failed", f"the system refused it ({error.strerror or error})"))
    return FileRefusedError(path, why, reason=reason)
