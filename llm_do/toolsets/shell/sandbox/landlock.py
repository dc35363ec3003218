"""The wall made of permissions: Landlock, for machines on which no namespaces can be had, such as many containers.

Landlock only adds permissions, and one for a folder holds for all that is below it. So files can be created, renamed
and removed only in folders that contain nothing protected at any depth; in others, existing files can be written.
`launcher.py`, beside this file, applies the rules in the process that becomes the command.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from llm_do.toolsets.shell.sandbox.wall import SYSTEM_FOLDERS, Wall

__all__ = ["abi", "wrap"]

_CREATE_RULESET = 444
_MINIMUM = 3
"""The first version that keeps files from being truncated."""

_MACHINES = ("x86_64", "aarch64")

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ALL = (1 << 15) - 1
_MAKE_DEVICE = 1 << 6 | 1 << 11
"""A device made by root would be the whole disk."""

_WRITE = _ALL & ~_READ & ~_MAKE_DEVICE
_WRITE_ONE = _WRITE_FILE | _TRUNCATE
_TCP = 3
_SCOPES = 3
_DEVICES = ("full", "null", "ptmx", "random", "tty", "urandom", "zero")
_LAUNCHER = Path(__file__).with_name("launcher.py")


@functools.cache
def abi() -> int:
    """Return the version of Landlock that can be used here, 0 if none can."""
    if not sys.platform.startswith("linux") or platform.machine() not in _MACHINES:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    version = int(libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint(1)))
    return version if version >= _MINIMUM else 0


def wrap(argv: Sequence[str], wall: Wall, scratch: Path, rules: Path) -> list[str]:
    """Return the argument vector of a command behind the wall; the file `rules` is written."""
    version = abi()
    limits = {
        "handled": _ALL,
        "net": 0 if wall.network or version < 4 else _TCP,
        "scoped": _SCOPES if version >= 6 else 0,
        "network": wall.network,
        "rules": list(_rules(wall, scratch)),
    }
    rules.write_text(json.dumps(limits), encoding="utf-8")
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(rules), *argv]


def _rules(wall: Wall, scratch: Path) -> Iterator[tuple[str, int]]:
    hidden, kept = _Marked(wall.hidden), _Marked([*wall.read_only, *wall.hidden])
    for name in _DEVICES:
        yield f"/dev/{name}", _READ_FILE | _WRITE_FILE
    for folder in ("/dev/shm", "/dev/pts", "/dev/fd", str(scratch)):
        if Path(folder).is_dir():
            yield os.path.realpath(folder), _READ | (_WRITE if folder != "/dev/pts" else _WRITE_FILE)
    for entry in _entries("/"):
        if entry.name in SYSTEM_FOLDERS or not (wall.confined or entry.name == "dev"):
            yield from _readable(entry.path, hidden)
    if wall.confined:
        yield from _readable(str(wall.root), hidden)
    for shown in map(str, wall.visible):
        if os.path.exists(shown) and (wall.confined or any(shown.startswith(f"{path}/") for path in hidden.paths)):
            yield shown, _READ if os.path.isdir(shown) else _READ & ~_READ_DIR
    for folder in wall.writable:
        yield from _writable(str(folder), kept)


class _Marked:
    """Paths, and the folders that contain one of them at any depth."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = {str(path) for path in paths}
        self.above = {str(parent) for path in paths for parent in path.parents}


def _readable(path: str, hidden: _Marked) -> Iterator[tuple[str, int]]:
    """Allow to read everything but the hidden paths; names can be listed everywhere."""
    if path in hidden.paths:
        return
    if path not in hidden.above:
        yield path, _READ if os.path.isdir(path) else _READ & ~_READ_DIR
        return
    yield path, _READ_DIR
    for entry in _entries(path):
        yield from _readable(entry.path, hidden)


def _writable(path: str, kept: _Marked) -> Iterator[tuple[str, int]]:
    """Allow to write in folders without anything protected, and to write the other files of those with it."""
    if path in kept.paths:
        return
    if path not in kept.above:
        yield path, _WRITE if os.path.isdir(path) else _WRITE_ONE
        return
    for entry in _entries(path):
        yield from _writable(entry.path, kept)


def _entries(path: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; links have no permissions of their own."""
    try:
        with os.scandir(path) as entries:
            found = [entry for entry in entries if not entry.is_symlink()]
            return [entry for entry in found if entry.is_file() or entry.is_dir()]
    except OSError:
        return []
