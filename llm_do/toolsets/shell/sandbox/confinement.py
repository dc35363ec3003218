"""`Sandbox`: confines the commands that run without approval, with whatever this machine offers.

What the wall protects is found anew for each command: the project's code, version control, our own folder, secrets.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from llm_do._home_folder import account_folder, find_home_folder
from llm_do._startup.frozen import frozen
from llm_do.concurrency.temporary_folders import make_temporary_folder, remove_temporary_folder
from llm_do.files.code_tree import CodeScan
from llm_do.files.glob_patterns import matches_any_path
from llm_do.files.local_folder import FOLDER
from llm_do.files.state_folder import state_folder
from llm_do.policy.denied_effects import DeniedEffects
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.toolsets.shell.sandbox import bubblewrap, landlock
from llm_do.toolsets.shell.sandbox.backends import Backend
from llm_do.toolsets.shell.sandbox.denied_paths import find_denied
from llm_do.toolsets.shell.sandbox.home_links import link_home, named_in_home
from llm_do.toolsets.shell.sandbox.kept_paths import KeptPaths, keep_paths
from llm_do.toolsets.shell.sandbox.tool_homes import tool_homes
from llm_do.toolsets.shell.sandbox.wall import Wall

__all__ = [
    "Confinement",
    "Sight",
    "closed_wall",
    "command_wall",
    "confine",
    "program_folders",
    "reading_wall",
    "remove_scratch_folders",
]

_TEMPORARY = ("/tmp/", "/var/tmp/")
"""Folders in whose place a command sees a scratch folder."""

_UNSEEN = ("/run/", "/var/run/", *_TEMPORARY)
"""Where sockets can't be seen anyway."""

_GIT_CODE = ("hooks", "config", "config.worktree")
_HOME_SECRETS = (
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d",
    ".vault-token",
    ".Xauthority",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".config/llm-do",
    ".local/state/llm-do",
    ".local/share/llm-do",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
)
"""What may hold secrets in a home folder."""

_SYSTEM_SECRETS = tuple(map(Path, ("/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/etc/krb5.keytab")))


@frozen
class Confinement:
    """How a command runs behind a wall: its argument vector, and variables that it needs there."""

    argv: Sequence[str]
    environment: Mapping[str, str]


def confine(argv: Sequence[str], wall: Wall, cwd: Path, backend: Backend) -> Confinement:
    """Put a command behind a wall."""
    scratch = _scratch(wall.root)
    if not wall.confined:
        link_home(scratch / "home", wall.named)
    if backend == "bubblewrap":
        temporary = Path("/tmp") if wall.hides_temporary_files else scratch
        return Confinement(bubblewrap.wrap(argv, wall, scratch, cwd), _environment(temporary, wall))
    descriptor, rules = tempfile.mkstemp(".json", "rules-", scratch.parent)
    os.close(descriptor)
    return Confinement(landlock.wrap(argv, wall, scratch, Path(rules)), _environment(scratch, wall))


@frozen
class Sight:
    """What a command is shown.

    Args:
        visible: Folders that it needs, such as its program's.
        outside: Whether a command that only reads may read outside the project.
        asked: Whether a person has allowed it.
        git: Whether it is git and only reads: that compares files that it tracks, and would fail on one that it
            can't read.
    """

    visible: Sequence[Path] = ()
    outside: bool = False
    asked: bool = False
    git: bool = False


def reading_wall(root: Path, scan: CodeScan, sight: Sight) -> Wall:
    """Return the wall of a command that only reads."""
    real = root.resolve()
    secrets = () if sight.asked or sight.git else _below(real, scan.secrets)
    hidden = [*secrets, *(() if sight.asked else _home_secrets()), *_sockets(real), real / FOLDER]
    shown = [*sight.visible, real / FOLDER / "artifacts"]
    return Wall(real, hidden=hidden, visible=shown, confined=not sight.outside and real.parent != real)


def command_wall(root: Path, scan: CodeScan, sight: Sight, spec: SandboxSpec, *, network: bool) -> Wall:
    """Return the wall of a command that may write what isn't code."""
    real = root.resolve()
    unread = [] if sight.git else [path for path in scan.secrets if not matches_any_path(path, spec.readable)]
    named = named_in_home(spec.readable)
    secrets = [path for path in _home_secrets() if not _is_below(path, named)]
    hidden = [*_below(real, unread), *secrets, *_sockets(real, keep_own=network), real / FOLDER]
    # A program's own folder in the project can be read anyway, and made visible it couldn't be written.
    needed = [folder for folder in sight.visible if not folder.is_relative_to(real)]
    shown = [*needed, *named, real / FOLDER / "artifacts"]
    more = [Path(os.path.realpath(real / os.path.expanduser(folder))) for folder in spec.writable]  # noqa: PTH111
    if not scan.complete:
        return Wall(real, more, [real], hidden, shown, network, named)
    kept = _kept(real, scan, tuple(path.relative_to(real).as_posix() for path in more if real in path.parents))
    single = list(kept.single)
    if real / ".git" in more:
        single = [path for path in single if path != ".git"]
        single += [f".git/{name}" for name in _GIT_CODE if (real / ".git" / name).exists()]
    read_only = _below(real, [*single, *kept.held, *sorted(kept.trees)])
    free = [folder for path in kept.held for folder in _folders(real / path)]
    above = {parent for path in (*read_only, *hidden) for parent in path.parents if parent.is_relative_to(real)}
    fixed = [path for path in sorted(above) if not kept.is_closed(path.relative_to(real).as_posix())]
    writable = [real, *more, *free, *_below(real, sorted(kept.open)), *fixed]
    return Wall(real, writable, read_only, hidden, shown, network, named)


def closed_wall(wall: Wall, denied: DeniedEffects, sight: Sight) -> Wall:
    """Return a wall that also holds what rules deny: paths that mustn't be read or written, and the network."""
    unread = [] if sight.git else find_denied(wall.root, denied.reads)
    unwritten = find_denied(wall.root, denied.writes)
    if not unread and not unwritten and not denied.network:
        return wall
    closed = [*unread, *unwritten]
    inside = {parent for path in closed for parent in path.parents if parent.is_relative_to(wall.root)}
    # A folder in one that is kept as a whole must not be opened: what is in it isn't kept by itself.
    fixed = [path for path in sorted(inside) if _is_writable(path, wall)]
    writable = [path for path in (*wall.writable, *fixed) if not _is_below(path, closed)] if wall.writable else []
    read_only = [path for path in (*wall.read_only, *unwritten) if not _is_below(path, unread)]
    return replace(
        wall,
        writable=writable,
        read_only=read_only,
        hidden=[*wall.hidden, *unread],
        visible=[path for path in wall.visible if not _is_below(path, unread)],
        network=wall.network and not denied.network,
    )


def _is_writable(path: Path, wall: Wall) -> bool:
    """Whether a folder may be written: the nearest path above it that the wall names decides."""
    read_only, writable = set(wall.read_only), set(wall.writable)
    for each in (path, *path.parents):
        if each in read_only:
            return False
        if each in writable:
            return True
    return False


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def program_folders(program: str, path: str) -> list[Path]:
    """Return the folders that a command needs to find its program: the program's own, and those of `path`."""
    own = [Path(program).parent, Path(program).resolve().parent]
    search = [Path(entry) for entry in path.split(os.pathsep) if entry.startswith(_TEMPORARY)]
    return [*own, *(folder.parent if folder.name == "bin" else folder for folder in search)]


def _kept(root: Path, scan: CodeScan, apart: Sequence[str]) -> KeptPaths:
    """Return what is kept; most commands find the names that the last one found."""
    layout = (scan.code.keys(), scan.linked, scan.links, scan.closed, scan.held, scan.folders, apart)
    known = _plans.get(root)
    if known is None or known[0] != layout:
        known = _plans[root] = layout, keep_paths(scan, apart)
    return known[1]


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder that may be written though the folder itself may not."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _below(root: Path, paths: Sequence[str]) -> list[Path]:
    return [root / path for path in paths]


def _home_secrets() -> list[Path]:
    """Return what may hold secrets in this person's home folder and in those that root could read, and the system's."""
    # A program may be started with another HOME; what is in that of the account is as secret.
    homes = [find_home_folder(), account_folder(), *(Path("/home").glob("*") if os.geteuid() == 0 else ())]
    found = [home / name for home in dict.fromkeys(homes) if home is not None for name in _HOME_SECRETS]
    with suppress(OSError):
        found.append(state_folder())
    return [path for path in (*found, *_SYSTEM_SECRETS) if path.exists()]


def _sockets(root: Path, *, keep_own: bool = False) -> list[Path]:
    """Return the sockets on this machine that have a path: behind one is a service that acts for whoever connects.

    Those in the project itself may be kept, such as that of a database.
    """
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    names = {line.split(maxsplit=7)[7] for line in lines if line.count(" ") >= 7 and " /" in line}
    found = [Path(name) for name in names if not name.startswith(_UNSEEN)]
    return [path for path in found if not (keep_own and path.is_relative_to(root)) and path.is_socket()]


def _environment(temporary: Path, wall: Wall) -> dict[str, str]:
    """Return the variables that lead programs to the scratch folder, and to what they may read in the home folder."""
    return {
        **({} if wall.confined else tool_homes(network=wall.network)),
        "TMPDIR": str(temporary),
        "HOME": str(temporary / "home"),
        "XDG_CACHE_HOME": str(temporary / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _scratch(root: Path) -> Path:
    """Return the scratch folder of a project's commands, which lasts as long as this process."""
    key = (os.getpid(), str(root))
    with _lock:
        if key not in _scratches:
            folder = make_temporary_folder("scratch")
            for name in ("home", "cache"):
                (folder / "tmp" / name).mkdir(parents=True)
            if all(process != key[0] for process, _ in _scratches):
                atexit.register(remove_scratch_folders)
            _scratches[key] = folder / "tmp"
        return _scratches[key]


_plans: dict[Path, tuple[tuple[object, ...], KeptPaths]] = {}
_scratches: dict[tuple[int, str], Path] = {}
_lock = threading.Lock()


def remove_scratch_folders() -> None:
    """Remove the scratch folders that this process has made; a command that follows has a new one."""
    with _lock:
        for key in [
            key for key in _scratches if key[0] == os.getpid()
        ]:  # not those of a process that it was forked off
            remove_temporary_folder(_scratches.pop(key).parent)
