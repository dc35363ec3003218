"""`CodeFiles`: which files of a project are code, since linking it, or a program that it starts, would load them.

It is asked before a tool writes a file, when commands are confined, and when new files are noticed. The rule is about
names and the manifest's lists, not about what was loaded last, so that it also covers files that don't exist yet.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from llm_do.files.paths import fold_name
from llm_do.text.globs import Glob, match_segments, parse_glob

__all__ = ["CLOSED_FOLDERS", "KEY_FILE", "LIBRARY_FOLDERS", "CodeFiles", "CodeKind", "is_python"]

CodeKind = Literal["manifest", "lock", "agent", "python", "skill", "program"]

CLOSED_FOLDERS = (".git", ".llm-do")
"""Folders, at any depth, in which no tool writes."""

KEY_FILE = ".env"
"""The file with keys of providers in a project's folder: whoever makes it has the next run use an account of theirs."""

LIBRARY_FOLDERS = ("node_modules",)
"""Folders with code of other languages; Python files in them count as data."""

_MANIFEST = "project.json"
_LOCK = "llm-do.lock"
_PYTHON = (".py", ".pyw", ".pyc", ".pth", ".so", ".pyd")
_LIBRARY = "lib"


@dataclass(frozen=True, eq=False)
class CodeFiles:
    """A project's rule for what is code.

    Args:
        root: The project's folder.
        manifest: The manifest; None for an implied one.
        listed: The agent files and Python files that the last link found.
        patterns: The manifest's paths and globs of agent files and Python files.
        skills: The paths and globs of folders of skills.
        programs: Files that the commands of servers name, relative to the root.
        data_folders: Folders, relative to the root, whose Python files are data unless a pattern takes them; `.` is
            the root.

    Example:
        >>> code = CodeFiles(Path("/p"), patterns=["agents/*.md"], data_folders=["out"])
        >>> [code.kind(path) for path in ("lib/a.py", "out/a.py", "agents/a.md", "docs/a.md")]
        ['python', None, 'agent', None]
    """

    root: Path
    manifest: Path | None = None
    listed: Sequence[Path] = ()
    patterns: Sequence[str] = ()
    data_folders: Sequence[str] = ()
    skills: Sequence[str] = ()
    programs: Sequence[str] = ()

    def kind(self, path: str) -> CodeKind | None:
        """Return what kind of code a POSIX path below the root is; None for other files."""
        names = _names(path)
        if not names:
            return None
        name = names[-1]
        if name == _MANIFEST or names == self._manifest:
            return "manifest"
        if name == _LOCK:
            return "lock"
        if name.endswith(".agent"):
            return "agent"
        python = is_python(name)
        if any(match_segments(glob, names, below=True) for glob in self._skills):
            return "python" if python else "skill"
        if names in self._listed or any(match_segments(glob, names) for glob in self._globs):
            return "python" if python else "agent"
        if names in self._programs:
            return "program"
        return "python" if python and not self.is_data(path) else None

    def leads_to_code(self, path: str) -> bool:
        """Whether a path is a listed file, or a folder on the way to one, be it a link."""
        names = _names(path)
        return any(listed[: len(names)] == names for listed in self._listed)

    def is_data(self, path: str) -> bool:
        """Whether a path is in a folder whose Python files are data."""
        names = _names(path)
        if any(name in LIBRARY_FOLDERS for name in names[:-1]):
            return True
        return any(names[: len(folder)] == folder for folder in self._data if len(names) > len(folder))

    @cached_property
    def reaches_anywhere(self) -> bool:
        """Whether a pattern takes files at any depth, those in folders of libraries included."""
        return any(None in glob for glob in (*self._globs, *self._skills))

    def below_root(self, path: str) -> str | None:
        """Return an absolute path relative to the root, None if it isn't below it."""
        for root in self._roots:
            if path.startswith(f"{root}/"):
                return path[len(root) + 1 :]
        return None

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        spellings = (str(self.root.absolute()), os.path.realpath(self.root))
        return tuple(dict.fromkeys(root.rstrip("/") for root in spellings))

    @cached_property
    def _manifest(self) -> tuple[str, ...] | None:
        found = self.below_root(str(self.manifest)) if self.manifest is not None else None
        return _names(found) if found is not None else None

    @cached_property
    def _listed(self) -> frozenset[tuple[str, ...]]:
        spellings = (spelling for path in self.listed for spelling in (str(path.absolute()), os.path.realpath(path)))
        found = map(self.below_root, spellings)
        return frozenset(_names(path) for path in found if path is not None)

    @cached_property
    def _globs(self) -> tuple[tuple[Glob | None, ...], ...]:
        return tuple(_glob(pattern) for pattern in self.patterns)

    @cached_property
    def _skills(self) -> tuple[tuple[Glob | None, ...], ...]:
        return tuple(glob for glob in map(_glob, self.skills) if glob)

    @cached_property
    def _programs(self) -> frozenset[tuple[str, ...]]:
        return frozenset(map(_names, self.programs))

    @cached_property
    def _data(self) -> tuple[tuple[str, ...], ...]:
        return tuple(map(_names, self.data_folders))


def is_python(name: str) -> bool:
    """Whether Python would load a file of this name: source, compiled, or an extension module.

    A shared library (`libz.so`) isn't meant to be imported, and many projects build some.

    Example:
        >>> [is_python(name) for name in ("a.py", "a.pyc", "a.cpython-311-x86_64-linux-gnu.so", "liba.so")]
        [True, True, True, False]
    """
    plain = fold_name(name)
    return plain.endswith(_PYTHON) and not (plain.endswith(".so") and plain.startswith(_LIBRARY))


def _names(path: str) -> tuple[str, ...]:
    return tuple(fold_name(name) for name in path.replace(os.sep, "/").split("/") if name not in ("", "."))


def _glob(pattern: str) -> tuple[Glob | None, ...]:
    parts: list[str] = []
    for part in pattern.replace(os.sep, "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return tuple(None if part == "**" else parse_glob(fold_name(part)) for part in parts)
