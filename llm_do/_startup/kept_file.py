"""What one process has compiled, so that the next need not, in a file beside this package's bytecode.

What is kept, and for whom, is decided by `compiled_texts` and `compiled_patterns`.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

__all__ = ["FEW", "KeptFile"]

FEW = 50
"""New entries that aren't worth writing a file for."""

MOST = 20_000
"""Entries in a file; beyond, the file is begun again."""

_INTERPRETER = (importlib.util.MAGIC_NUMBER, sys.version)

_Entries = dict[str, dict[Any, bytes | None]]


class KeptFile:
    """Entries by kind and key, each marshalled by itself: a process reads few of those that all processes have kept.

    Args:
        file: Where they are kept; one that can't be read or written is ignored.

    Example:
        >>> kept = KeptFile(Path("/nowhere"))
        >>> kept.take("eval", "1 + 1") is None
        True
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _read(file)
        self._new: dict[str, dict[Any, Callable[[], bytes | None]]] = {}
        self.learns = True
        """Whether new entries are kept."""

    def take(self, kind: str, key: Any) -> bytes | None:
        """Return what is kept under a key, or None, and hold it in memory no longer: most is needed once."""
        entries = self._known.get(kind, {})
        data = entries.get(key)
        if data is not None:
            entries[key] = None
        return data

    def has_taken(self, kind: str, key: Any) -> bool:
        """Whether an entry was there, and has been taken."""
        return self._known.get(kind, {}).get(key, b"") is None

    def learn(self, kind: str, key: Any, pack: Callable[[], bytes | None]) -> None:
        """Keep what `pack` returns when the file is written, unless it returns None."""
        if self.learns and key not in self._known.get(kind, ()):
            self._new.setdefault(kind, {})[key] = pack

    def save(self) -> None:
        """Write the file if there is enough that isn't in it, in one step: other processes may do the same."""
        if sys.dont_write_bytecode or sum(map(len, self._new.values())) < FEW:
            return
        new: _Entries = {}
        for kind, entries in self._new.items():
            packed = {key: pack() for key, pack in entries.items()}
            new[kind] = {key: data for key, data in packed.items() if data is not None}
        kept = _read(self._file)
        for kind, entries in new.items():
            kept.setdefault(kind, {}).update(entries)
        if sum(map(len, kept.values())) > MOST:
            kept = new
        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with suppress(OSError, ValueError):
            self._file.parent.mkdir(exist_ok=True)
            partial.write_bytes(marshal.dumps((_INTERPRETER, kept)))
            partial.replace(self._file)
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        self._new = {}


def _read(file: Path) -> _Entries:
    # Bytecode is trusted as it is in the files beside this one. Only what a file of this kind has is taken out of it.
    with suppress(OSError, ValueError, EOFError, TypeError):
        interpreter, entries = cast("tuple[object, _Entries]", marshal.loads(file.read_bytes()))
        if interpreter == _INTERPRETER:
            return entries
    return {}
