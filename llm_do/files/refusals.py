"""The one error of this room, and how an operating system's error becomes it.

What may be touched is decided in `llm_do.files.root`; what a model reads when it may not is worded here.
"""

from __future__ import annotations

import errno
from typing import Literal

from llm_do.errors import ToolError

__all__ = ["FileRefusedError", "Reason", "refusal_for"]

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
"""Why a file was refused, for code; the message says it for people and models."""

_SYSTEM: dict[int, tuple[Reason, str]] = {
    errno.ENOENT: ("missing", "there is no such file or folder"),
    errno.EEXIST: ("exists", "there is something of that name already"),
    errno.ENOTDIR: ("not_a_folder", "a part of it that should be a folder is not one"),
    errno.EISDIR: ("not_a_file", "it is a folder, not a file"),
    errno.EACCES: ("permission", "permission denied"),
    errno.EPERM: ("permission", "permission denied"),
    errno.EROFS: ("permission", "the file system is read-only"),
    errno.ENAMETOOLONG: ("invalid", "the name is too long"),
    errno.EINVAL: ("invalid", "the system does not accept that name"),
    errno.EILSEQ: ("invalid", "the system does not accept that name"),
    errno.ELOOP: ("changed", "it turned into a link while it was used"),
    errno.ENXIO: ("not_a_file", "it is a socket, a pipe or a device, not a file"),
    errno.ENOSPC: ("failed", "no space is left on the disk"),
    errno.EDQUOT: ("failed", "the disk quota is used up"),
}


class FileRefusedError(ToolError):
    """Access to a file or folder is refused, worded so that the model can act on it.

    Args:
        path: The path as it was asked for.
        why: What is wrong with it, a clause.
        reason: The same for code.
        hint: What to do instead.

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


def refusal_for(path: str, error: OSError) -> FileRefusedError:
    """The refusal that an operating system's error amounts to.

    Example:
        >>> refusal_for("a", FileNotFoundError(errno.ENOENT, "No such file or directory")).reason
        'missing'
    """
    reason, why = _SYSTEM.get(error.errno or 0, ("failed", f"the system refused it ({error.strerror or error})"))
    return FileRefusedError(path, why, reason=reason)
