"""What one process has compiled, so that the next need not, in a file beside this package's bytecode.

What is kept, and for whom, is decided by `compiled_texts` and `compiled_patterns`. Of a file, only its index is held in
memory, so what other commands or earlier versions of packages have left there costs a process next to nothing.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

__all__ = ["FEW", "KeptFile"]

FEW = 40
"""New entries that aren't worth writing a file for; prices that have changed have more."""

MOST = 20_000
"""Entries in a file; beyond, the file is begun again."""

_WINDOW = 1 << 14
"""Bytes that are read at once; entries lie in the order in which a process needed them."""

_KIND = marshal.dumps((MAGIC_NUMBER, sys.version, sys.byteorder))
"""What a file begins with: the interpreter whose code it holds."""

_NUMBER = array("Q").itemsize


class KeptFile:
    """Entries by key: a process reads few of those that all processes have kept.

    Args:
        file: Where they are kept; one that can't be read or written is ignored.

    Example:
        >>> kept = KeptFile(Path("/nowhere"))
        >>> kept.take(b"1 + 1") is None
        True
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._opened: list[_Entries] = []
        self._new: dict[Path, dict[bytes, Callable[[], bytes | None]]] = {}
        self.learns = True
        """Whether new entries are to be kept."""
        self.turn_to(file)

    def turn_to(self, file: Path) -> None:
        """Use what another file has, too, and keep there what is new from now on."""
        self._file = file
        if file not in self._new:
            self._new[file] = {}
            self._opened.insert(0, _Entries(file))
        self._is_writable = not sys.dont_write_bytecode and _may_be_written(file)

    @property
    def is_learning(self) -> bool:
        """Whether new entries are kept: they are to be, and there is where to write them."""
        return self.learns and self._is_writable

    def take(self, key: bytes) -> bytes | None:
        """Return what is kept under a key, or None."""
        for entries in self._opened:
            data = entries.take(key)
            if data is not None:
                return data
        return None

    def learn(self, key: bytes, pack: Callable[[], bytes | None]) -> None:
        """Keep what `pack` returns when the file is written, unless it returns None."""
        if self.is_learning and all(entries.find(key) < 0 for entries in self._opened):
            self._new[self._file][key] = pack

    def save(self) -> None:
        """Write each file for which there is enough that isn't in it."""
        if sys.dont_write_bytecode:
            return
        for file, new in self._new.items():
            if len(new) >= FEW:
                packed = {key: pack() for key, pack in new.items()}
                _write(file, {key: data for key, data in packed.items() if data is not None})
                self._new[file] = {}


class _Entries:
    """The entries of a file: what their keys are hashed to, in order, and where each begins and ends.

    Bytecode is trusted as it is in the files beside this one.
    """

    def __init__(self, file: Path) -> None:
        self._hashes, self._starts, self._ends = (array("Q") for _ in range(3))
        self._descriptor = -1
        self._window = b""
        self._window_start = 0
        with suppress(OSError, ValueError, EOFError):
            self._open(file)

    def find(self, key: bytes) -> int:
        """The number of an entry, -1 if it isn't there."""
        hashed = _hash(key)
        number = bisect_left(self._hashes, hashed)
        return number if number < len(self._hashes) and self._hashes[number] == hashed else -1

    def take(self, key: bytes) -> bytes | None:
        """The data of an entry."""
        number = self.find(key)
        if number < 0:
            return None
        try:
            found, data = self._entry(number)
        except OSError:  # a project's code has closed all files that it doesn't know
            self._window = b""
            return None
        return data if found == key else None

    def all(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys and data, in the order in which they lie in the file."""
        for number in sorted(range(len(self._starts)), key=self._starts.__getitem__):
            yield self._entry(number)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _open(self, file: Path) -> None:
        with file.open("rb") as opened:
            if opened.read(len(_KIND)) != _KIND:
                return
            count, end = array("Q", opened.read(2 * _NUMBER))
            if os.fstat(opened.fileno()).st_size != end or 3 * count * _NUMBER > end:
                return
            self._hashes, self._starts, self._ends = (array("Q", opened.read(count * _NUMBER)) for _ in range(3))
            if hasattr(os, "pread"):
                self._descriptor = os.dup(opened.fileno())
            else:
                opened.seek(0)
                self._window = opened.read()

    def _entry(self, number: int) -> tuple[bytes, bytes]:
        start, end = self._starts[number] - self._window_start, self._ends[number] - self._window_start
        if start < 0 or end > len(self._window):
            self._window_start, size = self._starts[number], end - start
            self._window = os.pread(self._descriptor, max(size, _WINDOW), self._window_start)
            start, end = 0, size
        key_start = start + 4
        key_end = key_start + int.from_bytes(self._window[start:key_start], "little")
        return self._window[key_start:key_end], self._window[key_end:end]


def _may_be_written(file: Path) -> bool:
    """Whether a file can be written, whose folder may still have to be made."""
    folder = file.parent if file.parent.exists() else file.parent.parent
    return os.access(folder, os.W_OK)


def _hash(key: bytes) -> int:
    return int.from_bytes(source_hash(key), "little")


def _write(file: Path, new: Mapping[bytes, bytes]) -> None:
    """Add entries to a file in one step: other processes may do the same."""
    before = _Entries(file)
    try:
        kept = {**dict(before.all()), **new}
    except OSError:
        kept = dict(new)
    before.close()
    if len(kept) > MOST:
        kept = dict(new)
    by_hash = {_hash(key): (key, data) for key, data in kept.items()}
    place = len(_KIND) + (2 + 3 * len(by_hash)) * _NUMBER
    places: dict[int, tuple[int, int]] = {}
    body: list[bytes] = []
    for hashed, (key, data) in by_hash.items():
        entry = len(key).to_bytes(4, "little") + key + data
        places[hashed] = place, place + len(entry)
        place += len(entry)
        body.append(entry)
    hashes = sorted(places)
    starts, ends = ([places[hashed][side] for hashed in hashes] for side in (0, 1))
    index = [array("Q", numbers).tobytes() for numbers in ([len(hashes), place], hashes, starts, ends)]
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError, ValueError):
        file.parent.mkdir(exist_ok=True)
        partial.write_bytes(b"".join((_KIND, *index, *body)))
        partial.replace(file)
    with suppress(OSError):
        partial.unlink(missing_ok=True)
