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
_New = dict[str, dict[Any, Callable[[], bytes | None]]]


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
        self._known: _Entries = {}
        self._new: dict[Path, _New] = {}
        self.learns = True
        """Whether new entries are kept."""
        self.turn_to(file)

    def turn_to(self, file: Path) -> None:
        """Use what another file has, too, and keep there what is new from now on."""
        self._file = file
        if file in self._new:
            return
        self._new[file] = {}
        known = _read(file)
        for kind, entries in self._known.items():
            known.setdefault(kind, {}).update(entries)
        self._known = known

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
            self._new[self._file].setdefault(kind, {})[key] = pack

    def save(self) -> None:
        """Write each file for which there is enough that isn't in it."""
        if not sys.dont_write_bytecode:
            for file, new in self._new.items():
                if sum(map(len, new.values())) >= FEW:
                    _save(file, new)
                    self._new[file] = {}


def _save(file: Path, new: _New) -> None:
    """Add entries to a file in one step: other processes may do the same."""
    added: _Entries = {}
    for kind, entries in new.items():
        packed = {key: pack() for key, pack in entries.items()}
        added[kind] = {key: data for key, data in packed.items() if data is not None}
    kept = _read(file)
    for kind, entries in added.items():
        kept.setdefault(kind, {}).update(entries)
    if sum(map(len, kept.values())) > MOST:
        kept = added
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError, ValueError):
        file.parent.mkdir(exist_ok=True)
        partial.write_bytes(marshal.dumps((_INTERPRETER, kept)))
        partial.replace(file)
    with suppress(OSError):
        partial.unlink(missing_ok=True)


def _read(file: Path) -> _Entries:
    # Bytecode is trusted as it is in the files beside this one. Only what a file of this kind has is taken out of it.
    with suppress(OSError, ValueError, EOFError, TypeError):
        interpreter, entries = cast("tuple[object, _Entries]", marshal.loads(file.read_bytes()))
        if interpreter == _INTERPRETER:
            return entries
    return {}
