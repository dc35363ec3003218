"""Lock files that keep a queue of processes; what a process holds ends with it.

On Linux, each process locks one byte of the file, whose number is one more than the last one's, and waits for the byte
of the process before it. That byte is unlocked when the process before has had its turn or has ended, so the kernel
wakes one process and not all that wait. Queues of this kind were described for processors by Craig, "Building FIFO and
priority-queuing spin locks from atomic swap", 1993. Elsewhere all wait for one lock, nearly in order.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path
from typing import Protocol

if sys.platform != "win32":
    import fcntl

__all__ = ["QueueFile", "has_no_locks", "lock_alone", "open_queue"]

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
"""How a file system says that it has no locks, as a network drive without a lock service does."""


class QueueFile(Protocol):
    """One opening of a lock file; the places that it has taken end when it is closed."""

    def line_up(self) -> int:
        """Take the last place in the queue."""
        ...

    def is_first(self, place: int) -> bool:
        """Whether no one is before a place."""
        ...

    def wait(self, place: int) -> None:
        """Wait until no one is before a place; another thread may leave it meanwhile."""
        ...

    def leave(self, place: int) -> None:
        """Give a place up."""
        ...

    def probe(self) -> None:
        """Take a lock that no one waits for, and give it up.

        Raises:
            OSError: There are no locks.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def open_queue(path: Path) -> QueueFile | None:
    """Open a lock file, which is created if it isn't there; None on Windows, where SQLite's own lock has to do.

    Raises:
        OSError: It can't be opened.
    """
    if sys.platform == "win32":
        return None
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return _ByteQueue(descriptor) if sys.platform == "linux" else _LockQueue(descriptor)


def has_no_locks(error: OSError | None) -> bool:
    """Whether an error says that the file system has no locks."""
    return error is not None and error.errno in _NO_LOCKS


def lock_alone(descriptor: int) -> bool:
    """Lock an open file until it is closed; False if another process has locked it.

    Raises:
        OSError: The file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if sys.platform != "linux" or not has_no_locks(error):
            raise
        try:  # the kind that SQLite needs; a file system may have one kind alone
            _set_lock(descriptor, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 0)
        except (BlockingIOError, PermissionError):
            return False
    return True


_COUNTER = 0
"""The byte that is locked while a place is taken. The file says which was the last one."""

_NUMBER = struct.Struct("<Q")

_PLACES = 2**62
"""Places before they begin at 1 again."""

_PROBED = _PLACES + 1
"""A byte that is no one's place."""


class _ByteQueue:
    """A queue of bytes, with locks that belong to an opening of the file rather than to a process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def line_up(self) -> int:
        self._lock(_COUNTER)
        try:
            text = os.pread(self._descriptor, _NUMBER.size, 0)
            last = _NUMBER.unpack(text)[0] if len(text) == _NUMBER.size else 0
            place = last % _PLACES + 1
            self._lock(place)
            os.pwrite(self._descriptor, _NUMBER.pack(place), 0)
        finally:
            self.leave(_COUNTER)
        return place

    def is_first(self, place: int) -> bool:
        before = place - 1 or _PLACES
        try:
            self._set(fcntl.F_OFD_SETLK, fcntl.F_RDLCK, before)
        except BlockingIOError:
            return False
        self.leave(before)
        return True

    def wait(self, place: int) -> None:
        before = place - 1 or _PLACES
        self._set(fcntl.F_OFD_SETLKW, fcntl.F_RDLCK, before)
        self.leave(before)

    def leave(self, place: int) -> None:
        self._set(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, place)

    def probe(self) -> None:
        self._set(fcntl.F_OFD_SETLK, fcntl.F_RDLCK, _PROBED)
        self.leave(_PROBED)

    def close(self) -> None:
        os.close(self._descriptor)

    def _lock(self, byte: int) -> None:
        self._set(fcntl.F_OFD_SETLKW, fcntl.F_WRLCK, byte)

    def _set(self, command: int, kind: int, byte: int) -> None:
        _set_lock(self._descriptor, command, kind, byte)


def _set_lock(descriptor: int, command: int, kind: int, byte: int) -> None:
    # The C structure `flock` of Linux: kind, what the byte is counted from, its number, one byte, no process.
    fcntl.fcntl(descriptor, command, struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0))


class _LockQueue:
    """A lock for all: the kernel wakes all that wait, and the first to run has it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def line_up(self) -> int:
        return 0

    def is_first(self, place: int) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait(self, place: int) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def leave(self, place: int) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def probe(self) -> None:
        # A lock of the other kind, which SQLite uses too: one of this kind would change what the queue holds.
        fcntl.lockf(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1)

    def close(self) -> None:
        os.close(self._descriptor)
