"""From the manifest's lists of paths and globs to files: sorted, each once, none outside of the project."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from llm_do.diagnostics.codes import names as problems
from llm_do.diagnostics.codes.files import no_such_skills, skill_not_folder, unreadable_file
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.linker.sources.name_index import NameIndex
from llm_do.text.globs import parse_glob

__all__ = ["is_inside", "list_files", "list_folders", "stay_inside"]

_MAGIC = re.compile(r"[*?\[]")


def list_files(root: Path, patterns: Sequence[tuple[str, Location]]) -> tuple[dict[Path, Location], list[Diagnostic]]:
    """Find the files that a list of paths and globs names, each with the place of the first entry that does.

    `*` stays in one folder, `**` goes through any number of them; hidden names match only where the
    pattern has the dot.
    """
    found: dict[str, str] = {}
    places: dict[str, Location] = {}
    faults: list[Diagnostic] = []
    folders = _Folders()
    for pattern, place in patterns:
        parts = _normal(pattern)
        if parts is None:
            faults.append(problems.path_outside(pattern, None).at(place))
            continue
        literal = str(root.joinpath(*parts))
        if os.path.lexists(literal) or not any(_MAGIC.search(part) for part in parts):
            matches, exact = [(literal, False)], True
        else:
            matches, exact = list(_walk(folders, str(root), parts)), False
        if not matches:
            faults.append(problems.unmatched_pattern(pattern).at(place))
        for match, plain in matches:
            fault = None if plain else _fault(root, match, pattern, place, exact)
            if fault is not None:
                faults.append(fault)
                continue
            real = match if plain else os.path.realpath(match)
            found[real] = min(match, found.get(real, match))
            places.setdefault(real, place)
    return {Path(file): places[real] for real, file in sorted(found.items(), key=itemgetter(1))}, faults


def list_folders(root: Path, pattern: str, place: Location) -> tuple[list[Path], list[Diagnostic]]:
    """Find the folders that a path or a glob names, by the same rules as files."""
    parts = _normal(pattern)
    if parts is None:
        return [], [problems.path_outside(pattern, None).at(place)]
    literal = str(root.joinpath(*parts))
    exact = os.path.lexists(literal) or not any(_MAGIC.search(part) for part in parts)
    matches = [literal] if exact else list(_walk_folders(str(root), parts))
    if not matches:
        return [], [no_such_skills(pattern).at(place)]
    found: dict[str, str] = {}
    faults: list[Diagnostic] = []
    for match in matches:
        real = os.path.realpath(match)
        if os.path.lexists(match) and not _below(root, real):
            faults.append(problems.path_outside(pattern, None if exact else Path(match).name).at(place))
        elif os.path.isdir(match):
            found[real] = min(match, found.get(real, match))
        elif os.path.lexists(match):
            faults.append(skill_not_folder(pattern).at(place))
        else:
            folder, name = os.path.split(match)
            beside = [entry.name for entry in _entries(folder) if _is_folder(entry)]
            faults.append(no_such_skills(pattern, name, beside).at(place))
    return [Path(folder) for folder in sorted(found.values())], faults


def stay_inside(root: Path, path: str, place: Location) -> tuple[Path | None, Diagnostic | None]:
    """Make a path of the manifest absolute; a diagnostic when it leaves the project."""
    parts = _normal(path)
    absolute = root.joinpath(*parts) if parts is not None else None
    if absolute is None or not _below(root, os.path.realpath(absolute)):
        return None, problems.path_outside(path, None).at(place)
    return absolute, None


def is_inside(root: Path, path: str) -> bool:
    """Whether a path that is relative to the project's folder stays in it, with every link on its way."""
    return _below(Path(os.path.realpath(root)), os.path.realpath(root / path))


def _normal(pattern: str) -> list[str] | None:
    """The parts of a relative path without `.` and `..`; None when it is absolute or leaves the folder."""
    if Path(pattern).is_absolute() or "\0" in pattern:
        return None
    parts: list[str] = []
    for part in pattern.replace(os.sep, "/").split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts


class _Folders:
    """What is in folders, read once for all patterns of a list."""

    def __init__(self) -> None:
        self._entries: dict[str, list[os.DirEntry[str]]] = {}
        self._names: dict[str, NameIndex] = {}

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Return what is in a folder."""
        if folder not in self._entries:
            self._entries[folder] = _entries(folder)
        return self._entries[folder]

    def find(self, folder: str, part: str) -> Iterator[os.DirEntry[str]]:
        """Find what a part of a pattern matches in a folder."""
        entries = self.entries(folder)
        if folder not in self._names:
            self._names[folder] = NameIndex([entry.name for entry in entries])
        for place in self._names[folder].find(parse_glob(part)):
            if part.startswith(".") or not entries[place].name.startswith("."):
                yield entries[place]


def _walk(folders: _Folders, folder: str, parts: Sequence[str], direct: bool = True) -> Iterator[tuple[str, bool]]:
    """Everything but folders below `folder` that matches, and whether it surely is an ordinary file in the project."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk_deep(folders, folder, rest, direct)
        return
    for entry in folders.find(folder, part):
        if rest and entry.is_dir():
            yield from _walk(folders, entry.path, rest, direct and not entry.is_symlink())
        elif not rest and not entry.is_dir():
            yield entry.path, direct and entry.is_file(follow_symlinks=False)


def _walk_deep(folders: _Folders, folder: str, rest: Sequence[str], direct: bool) -> Iterator[tuple[str, bool]]:
    """What `rest` matches in a folder and in every folder below it; links to folders aren't followed."""
    while rest and rest[0] == "**":
        rest = rest[1:]
    if rest:
        yield from _walk(folders, folder, rest, direct)
    for entry in folders.entries(folder):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk_deep(folders, entry.path, rest, direct)
        elif not rest and not entry.is_dir():
            yield entry.path, direct and entry.is_file(follow_symlinks=False)


def _walk_folders(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """The folders below `folder` that match; `**` follows no links to folders."""
    part, rest = parts[0], parts[1:]
    deep = part == "**"
    if deep and rest:
        yield from _walk_folders(folder, rest)
    matches = parse_glob(part).matches
    for entry in _entries(folder):
        if (entry.name.startswith(".") and not part.startswith(".")) or not _is_folder(entry):
            continue
        if deep:
            if not rest:
                yield entry.path
            if not entry.is_symlink():
                yield from _walk_folders(entry.path, parts)
        elif matches(entry.name):
            yield from _walk_folders(entry.path, rest) if rest else [entry.path]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _fault(root: Path, match: str, pattern: str, place: Location, exact: bool) -> Diagnostic | None:
    try:
        mode = Path(match).stat().st_mode
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not Path(match).is_symlink():
            folder, name = os.path.split(match)
            return problems.missing_file(pattern, name, [entry.name for entry in _entries(folder)]).at(place)
        reason = error.strerror or str(error)
        return unreadable_file(reason, file_label(root, Path(match))).at(place)
    if not _below(root, os.path.realpath(match)):
        return problems.path_outside(pattern, None if exact else Path(match).name).at(place)
    if stat.S_ISDIR(mode):
        return problems.folder_listed(pattern).at(place)
    if not stat.S_ISREG(mode):
        return problems.not_ordinary(file_label(root, Path(match))).at(place)
    return None


def _below(root: Path, real: str) -> bool:
    return real == str(root) or real.startswith(str(root).rstrip(os.sep) + os.sep)
