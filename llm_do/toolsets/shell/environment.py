"""The environment of a command: a short list of variables without secrets, and the search path for its program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from llm_do.errors import ToolError
from llm_do.policy.secrets import is_secret

__all__ = ["MissingProgramError", "find_program", "shell_environment", "trusted_path"]

_KEPT = ("LANG", "LANGUAGE", "TZ", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME")
_ON_WINDOWS = ("SYSTEMROOT", "PATHEXT", "COMSPEC")


class MissingProgramError(ToolError):
    """There is no program of that name."""


def trusted_path(root: Path, environ: Mapping[str, str] | None = None) -> str:
    """Return the absolute folders of `PATH` that are neither in the project nor above it.

    So the project can't put a program of its own on the path.
    """
    entries = (os.environ if environ is None else environ).get("PATH") or os.defpath
    inside = [root.absolute(), root.resolve()]
    kept: list[str] = []
    for entry in entries.split(os.pathsep):
        if not Path(entry).is_absolute():
            continue
        spellings = (Path(os.path.normpath(entry)), Path(entry).resolve())
        if not any(one.is_relative_to(folder) for one in spellings for folder in inside):
            kept.append(entry)
    return os.pathsep.join(kept)


def shell_environment(path: str, names: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a command: language, time zone, `PATH`, `TERM=dumb`, and the named variables.

    Variables that look like secrets are left out, named or not.

    Example:
        >>> shell_environment("/bin", ["A", "A_TOKEN"], {"A": "1", "A_TOKEN": "x", "B": "2", "LANG": "C"})
        {'TERM': 'dumb', 'PATH': '/bin', 'LANG': 'C', 'A': '1'}
    """
    variables = os.environ if environ is None else environ
    kept = {"TERM": "dumb", "PATH": path}
    for name in (*_KEPT, *(_ON_WINDOWS if os.name == "nt" else ()), *names):
        if name in variables and not is_secret(name, variables[name]):
            kept[name] = variables[name]
    return kept


def find_program(name: str, path: str, cwd: Path) -> str:
    """Find the absolute path of a program; raise `MissingProgramError` if there is none.

    A name with a slash is relative to `cwd`; others are searched for in the absolute folders of `path`.
    """
    if "/" in name or os.sep in name:
        found = shutil.which(str(cwd / name))
    else:
        folders = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
        found = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    if found is None and ("/" in name or os.sep in name) and (cwd / name).is_file():
        raise MissingProgramError(f"the file {name!r} can't be run: it is not executable")
    if found is None:
        raise MissingProgramError(f"there is no program {name!r}: name one that is installed, or do without")
    return found
