"""What a command sees of ours: a short list of environment variables, none that looks like a secret, and where its
program is looked up.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from llm_do.errors import ToolError
from llm_do.policy.secrets import is_secret

__all__ = ["find_program", "shell_environment", "trusted_path"]

_KEPT = ("LANG", "LANGUAGE", "TZ", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME")
_ON_WINDOWS = ("SYSTEMROOT", "PATHEXT", "COMSPEC")


def trusted_path(root: Path, environ: Mapping[str, str] | None = None) -> str:
    """The search path without what the project could have put there.

    Args:
        root: The project's folder.
        environ: The environment, the process's own if left out.

    Returns:
        The absolute folders of `PATH` that are neither in the project nor above it.
    """
    given = (os.environ if environ is None else environ).get("PATH") or os.defpath
    inside = [root.absolute(), root.resolve()]
    kept: list[str] = []
    for entry in given.split(os.pathsep):
        if not Path(entry).is_absolute():
            continue
        spellings = (Path(os.path.normpath(entry)), Path(entry).resolve())
        if not any(one.is_relative_to(folder) for one in spellings for folder in inside):
            kept.append(entry)
    return os.pathsep.join(kept)


def shell_environment(path: str, names: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command.

    Args:
        path: Its `PATH`, unless `names` has it.
        names: Variables that it may see besides the usual ones.
        environ: The environment, the process's own if left out.

    Returns:
        Language, time zone, `PATH`, `TERM=dumb`, and what was named; nothing that looks like a secret.

    Example:
        >>> shell_environment("/bin", ["A", "A_TOKEN"], {"A": "1", "A_TOKEN": "x", "B": "2", "LANG": "C"})
        {'TERM': 'dumb', 'PATH': '/bin', 'LANG': 'C', 'A': '1'}
    """
    ours = os.environ if environ is None else environ
    kept = {"TERM": "dumb", "PATH": path}
    for name in (*_KEPT, *(_ON_WINDOWS if os.name == "nt" else ()), *names):
        if name in ours and not is_secret(name, ours[name]):
            kept[name] = ours[name]
    return kept


def find_program(name: str, path: str, cwd: Path) -> str:
    """The absolute path of a program.

    Args:
        name: The first word of a command; with a slash in it, it is taken from `cwd`.
        path: The search path; only its absolute folders count.
        cwd: The directory the command runs in.

    Returns:
        The path.

    Raises:
        ToolError: There is no such program.
    """
    if "/" in name or os.sep in name:
        found = shutil.which(str(cwd / name))
    else:
        folders = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
        found = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    if found is None:
        raise ToolError(f"there is no program {name!r}: name one that is installed, or do without")
    return found
