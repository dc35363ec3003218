"""What a machine can run out of, or refuse: memory, threads, open files, space on the disk.

Such an error may come from any line of any library, so what reports errors asks here before it blames that line.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

__all__ = ["Limit", "find_limit", "hint_for"]


class Limit(NamedTuple):
    """What the machine lacks.

    Args:
        message: A sentence.
        hint: What to do.
    """

    message: str
    hint: str


_MEMORY = Limit(
    "there isn't enough memory",
    "Close other programs, or raise the limit: `ulimit -v` shows a shell's; a container or a service has its own.",
)
_THREADS = Limit(
    "no more processes or threads can be started",
    "End other processes, or raise the limits: `ulimit -u` and `ulimit -v` show a shell's; a container or a service "
    "has its own.",
)
_ALL_FILES = Limit("too many files are open on this machine", "Close other programs, or raise the system's limit.")
_FILES = Limit(
    "too many files are open", "Raise the limit of open files: `ulimit -n` shows a shell's, `ulimit -n 1024` sets it."
)
_SPACE = "Free some space."
_DISK = "Look at the system's log and at the disk; a network drive may be disconnected."

_LIMITS: dict[int, Limit] = {errno.ENOMEM: _MEMORY, errno.EMFILE: _FILES, errno.ENFILE: _ALL_FILES}
"""Whichever file was to be opened doesn't matter."""

_FILE_LIMITS: dict[int, Limit] = {
    errno.ENOSPC: Limit("no space is left on the disk", _SPACE),
    errno.EDQUOT: Limit("the disk quota is used up", _SPACE),
    errno.EIO: Limit("the disk can't be read or written", _DISK),
    errno.EROFS: Limit("the file system is read-only", "Use a folder on another one."),
}

_NO_THREADS = ("can't start new thread", "unable to start watchdog thread")
_LOST = ("error return without exception set", "without setting an exception")
"""What the interpreter says when native code has failed without a reason, as some of it does for lack of memory."""

_NO_LIBRARY = "shared object"
_LIBRARY_LIMITS = {
    os.strerror(errno.EMFILE): _FILES,
    os.strerror(errno.ENOMEM): _MEMORY,
    "failed to map segment": _MEMORY,
    "Error 24": _FILES,
}
"""What the system says when it can't load a library, which is an `ImportError` without a number."""


def find_limit(error: BaseException | None) -> Limit | None:
    """Return which limit of the machine an exception, or one that it was raised from, is about; None if it is none.

    Example:
        >>> find_limit(OSError(errno.EMFILE, "Too many open files")).message
        'too many files are open'
        >>> find_limit(ValueError("no")) is None
        True
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        limit = _own_limit(error)
        if limit is not None:
            return limit
        seen.add(id(error))
        error = error.__cause__
    return None


def hint_for(error: BaseException, otherwise: str | None) -> str | None:
    """Return what to do about an error: about the machine's limit if it is one, or else what is usual.

    Example:
        >>> hint_for(OSError(errno.ENOSPC, "No space left on device"), "Is the folder read-only?")
        'Free some space.'
    """
    limit = find_limit(error)
    return otherwise if limit is None else limit.hint


def _own_limit(error: BaseException) -> Limit | None:
    match error:
        case MemoryError():
            return _MEMORY
        case SystemError() if str(error).endswith(_LOST) and _is_memory_limited():
            return _MEMORY
        case RuntimeError() if str(error) in _NO_THREADS:
            return _THREADS
        case BlockingIOError() if error.errno == errno.EAGAIN and error.filename is None:
            return _THREADS  # of a fork; files that would block name themselves, or are handled where they are read
        case OSError():
            return _of_system(error)
        case ImportError() if _NO_LIBRARY in str(error):
            return next((limit for text, limit in _LIBRARY_LIMITS.items() if text in str(error)), None)
        case _:
            return None


def _of_system(error: OSError) -> Limit | None:
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_without_folder():
        return Limit("the current folder has been deleted", "Change to a folder that exists.")
    limit = _FILE_LIMITS.get(error.errno or 0)
    if limit is None or not isinstance(error.filename, str):
        return limit or _LIMITS.get(error.errno or 0)
    return Limit(f"{error.filename}: {limit.message}", limit.hint)


def _is_memory_limited() -> bool:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return False
    except (ImportError, MemoryError, SystemError):  # there isn't enough memory to load it either
        return True
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _is_without_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 (the question is whether there is one)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
