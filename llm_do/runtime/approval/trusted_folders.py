"""Trusted folders: those whose code a person lets run on this machine, in `trust.json` of their state folder.

A folder is known by its real path and its device; those below it on the same device are trusted with it. What can't be
read trusts nothing.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from llm_do._home_folder import home_folder
from llm_do._machine_limits import hint_for
from llm_do._startup.frozen import frozen
from llm_do.errors import StoreError, UsageError
from llm_do.files.state_folder import StateFile, state_folder
from llm_do.formats.syntax.json_nodes import parse_json

__all__ = ["TrustedFolder", "add", "find", "load", "refusal", "remove"]

_VERSION = 1
_NAME = "trust.json"


@frozen
class TrustedFolder:
    """One trusted folder.

    Args:
        path: Its real path.
        device: The device that it was on.
        added: The day, as ISO text; empty where it isn't known.

    Example:
        >>> TrustedFolder("/", -1).covers(Path("/etc"))
        False
    """

    path: str
    device: int
    added: str = ""

    def covers(self, folder: Path) -> bool:
        """Whether a folder is this one or below it, and both are still on this device."""
        real = os.path.realpath(folder)
        if real != self.path and not real.startswith(f"{self.path.rstrip(os.sep)}{os.sep}"):
            return False
        try:
            return all(os.stat(each).st_dev == self.device for each in (self.path, real))  # noqa: PTH116
        except OSError:
            return False


def load() -> tuple[TrustedFolder, ...]:
    """Read the trusted folders.

    Raises:
        StoreError: The file is damaged, of a newer version, or can't be read.
    """
    return _parse(_file())


def find(folder: Path) -> TrustedFolder | None:
    """Return the entry that makes a folder trusted.

    Raises:
        StoreError: The file is damaged, of a newer version, or can't be read.
    """
    return next((each for each in load() if each.covers(folder)), None)


def add(folder: Path) -> TrustedFolder:
    """Trust a folder, and those below it.

    Raises:
        StoreError: The file can't be read or written.
        UsageError: The folder can't be trusted.
    """
    reason = refusal(folder)
    if reason is not None:
        raise UsageError(f"{folder} can't be trusted: {reason}", hint="Name a project's folder.")
    real = os.path.realpath(folder)
    try:
        info = os.stat(real)  # noqa: PTH116
        if not stat.S_ISDIR(info.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), real)
    except OSError as error:
        raise UsageError(
            f"{folder} can't be trusted: {error.strerror or error}", hint="Name a folder that exists."
        ) from error
    new = TrustedFolder(real, info.st_dev, datetime.datetime.now(tz=datetime.UTC).date().isoformat())
    _change(lambda known: [*(each for each in known if each.path != real), new])
    return new


def remove(folder: Path) -> bool:
    """Stop trusting a folder; returns whether it was listed.

    Raises:
        StoreError: The file can't be read or written.
    """
    names = {os.path.realpath(folder), os.path.abspath(folder)}  # noqa: PTH100
    found: list[TrustedFolder] = []

    def without(known: list[TrustedFolder]) -> list[TrustedFolder]:
        found.extend(each for each in known if each.path in names)
        return [each for each in known if each.path not in names]

    _change(without)
    return bool(found)


def refusal(folder: Path) -> str | None:
    """Return why a folder can't be trusted, None if it can.

    Example:
        >>> refusal(Path("/"))
        'it is a home folder or above one, which holds everything that you download'
        >>> refusal(Path.home() / "project")
    """
    real = Path(os.path.realpath(folder))
    homes = [os.environ.get("HOME") or "/"]
    with contextlib.suppress(RuntimeError):
        homes.append(str(home_folder()))
    if real == Path(real.anchor) or any(Path(os.path.realpath(home)).is_relative_to(real) for home in homes):
        return "it is a home folder or above one, which holds everything that you download"
    try:
        str(real).encode()
    except UnicodeEncodeError:
        return "its path is not text in UTF-8"
    return None


def _file() -> StateFile:
    try:
        return StateFile(state_folder() / _NAME)
    except OSError as error:
        raise StoreError(f"trusted folders can't be kept: {error}", hint="Set XDG_STATE_HOME to a folder.") from error


def _change(change: Callable[[list[TrustedFolder]], list[TrustedFolder]]) -> None:
    file = _file()
    try:
        with file.locked():
            known = list(_parse(file))
            changed = change(known)
            if changed != known:
                file.write(_text(changed))
    except OSError as error:
        raise StoreError(
            f"{file.path} can't be written: {error.strerror or error}",
            hint=hint_for(error, "See that only you may write there."),
        ) from error


def _text(folders: list[TrustedFolder]) -> str:
    entries = [{"path": each.path, "device": each.device, "added": each.added} for each in folders]
    lines = ",\n".join(
        f"    {json.dumps(entry, ensure_ascii=True)}" for entry in sorted(entries, key=lambda e: e["path"])
    )
    inner = f"\n{lines}\n  " if lines else ""
    return f'{{\n  "version": {_VERSION},\n  "trusted": [{inner}]\n}}\n'


def _parse(file: StateFile) -> tuple[TrustedFolder, ...]:
    try:
        text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not text in UTF-8"
        raise _fault(file, None, reason) from error
    if text is None:
        return ()
    parsed = parse_json(text, _NAME)
    if parsed.node is None or parsed.diagnostics:
        first = parsed.diagnostics[0]
        raise _fault(file, first.line, first.message)
    data: object = parsed.node.data()
    if not isinstance(data, dict):
        raise _fault(file, 1, "it is not an object")
    found = cast("dict[str, object]", data)
    version = found.get("version")
    if isinstance(version, int) and version > _VERSION:
        place = parsed.node.place_of(("version",)).line
        raise _fault(file, place, f"version {version} was written by a newer llm-do", hint="Update llm-do.")
    entries = found.get("trusted")
    if version != _VERSION or not isinstance(entries, list):
        raise _fault(file, 1, 'it is not {"version": 1, "trusted": [...]}')
    folders: list[TrustedFolder] = []
    for index, entry in enumerate(cast("list[object]", entries)):
        folder = _entry(entry)
        if folder is None:
            line = parsed.node.place_of(("trusted", index)).line
            raise _fault(file, line, "an entry has a folder's real `path` and its `device`")
        folders.append(folder)
    return tuple(folders)


def _entry(entry: object) -> TrustedFolder | None:
    if not isinstance(entry, dict):
        return None
    data = cast("dict[str, Any]", entry)
    path, device, added = data.get("path"), data.get("device"), data.get("added", "")
    if not isinstance(path, str) or not isinstance(added, str):
        return None
    if "\0" in path or not path.startswith(os.sep) or path != f"{os.sep}{os.path.normpath(path).lstrip(os.sep)}":
        return None
    return TrustedFolder(path, device, added) if type(device) is int else None


def _fault(file: StateFile, line: int | None, reason: str, hint: str | None = None) -> StoreError:
    where = str(file.path) if line is None else f"{file.path}:{line}"
    return StoreError(
        f"{where}: {reason}", hint=hint or "Nothing is trusted until it is correct; delete it to begin again."
    )
