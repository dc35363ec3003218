"""`Sandbox`: confines the commands that run without approval, with whatever this machine offers.

What the wall protects is found anew for each command: the project's code, version control, our own folder, secrets.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.files.code_tree import CodeScan
from llm_do.files.glob_patterns import matches_any_path
from llm_do.files.local_folder import FOLDER
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.toolsets.shell.sandbox import bubblewrap, landlock
from llm_do.toolsets.shell.sandbox.backends import Backend
from llm_do.toolsets.shell.sandbox.wall import Wall

__all__ = ["Confinement", "command_wall", "confine", "program_folders", "reading_wall"]

_MOST_FILES = 100
"""More files than this aren't kept one by one: then whole folders are."""

_TEMPORARY = ("/tmp/", "/var/tmp/")
"""Folders in whose place a command sees a scratch folder."""

_CROWDED = 5
"""How many files of code make a folder one that is kept as a whole, if there are too many."""

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
    if backend == "bubblewrap":
        temporary = Path("/tmp") if wall.hides_temporary_files else scratch
        return Confinement(bubblewrap.wrap(argv, wall, scratch, cwd), _environment(temporary))
    descriptor, rules = tempfile.mkstemp(".json", "rules-", scratch.parent)
    os.close(descriptor)
    return Confinement(landlock.wrap(argv, wall, scratch, Path(rules)), _environment(scratch))


def reading_wall(root: Path, visible: Sequence[Path], scan: CodeScan, *, outside: bool, secrets: bool) -> Wall:
    """Return the wall of a command that only reads, be it `outside` the project, or the project's `secrets` too."""
    real = root.resolve()
    hidden = [*(() if secrets else _below(real, scan.secrets)), *(() if outside else _home_secrets()), real / FOLDER]
    shown = [*visible, real / FOLDER / "artifacts"]
    return Wall(real, hidden=hidden, visible=shown, confined=not outside and real.parent != real)


def command_wall(
    root: Path, visible: Sequence[Path], scan: CodeScan, spec: SandboxSpec, *, network: bool, secrets: bool = False
) -> Wall:
    """Return the wall of a command that may write what isn't code."""
    real = root.resolve()
    unread = [] if secrets else [path for path in scan.secrets if not matches_any_path(path, spec.readable)]
    hidden = [*_below(real, unread), *_home_secrets(), real / FOLDER]
    # A program's own folder in the project can be read anyway, and made visible it couldn't be written.
    shown = [*(folder for folder in visible if not folder.is_relative_to(real)), real / FOLDER / "artifacts"]
    more = [Path(os.path.realpath(real / Path(folder).expanduser())) for folder in spec.writable]
    if not scan.complete:
        return Wall(real, more, [real], hidden, shown, network)
    kept, held = _kept(scan)
    if real / ".git" in more:
        kept = [path for path in kept if path != ".git"]
        kept += [f".git/{name}" for name in _GIT_CODE if (real / ".git" / name).exists()]
    read_only = _below(real, [*kept, *held])
    free = [folder for path in held for folder in _folders(real / path)]
    fixed = {parent for path in read_only for parent in path.parents if parent.is_relative_to(real)}
    fixed |= {parent for path in hidden for parent in path.parents if parent.is_relative_to(real)}
    return Wall(real, [real, *more, *free, *sorted(fixed)], read_only, hidden, shown, network)


def program_folders(program: str, path: str) -> list[Path]:
    """Return the folders that a command needs to find its program: the program's own, and those of `path`."""
    own = [Path(program).parent, Path(program).resolve().parent]
    search = [Path(entry) for entry in path.split(os.pathsep) if entry.startswith(_TEMPORARY)]
    return [*own, *(folder.parent if folder.name == "bin" else folder for folder in search)]


def _kept(scan: CodeScan) -> tuple[list[str], set[str]]:
    """Return the paths that are kept one by one, and the folders that are kept apart from the folders in them."""
    held = set(scan.held)
    files = [path for path in (*scan.code, *scan.linked) if path not in scan.links]  # no mount holds a link itself
    folders = {path: path.rpartition("/")[0] or "." for path in files}
    if len(files) > _MOST_FILES:
        counts = Counter(folders.values())
        held |= {folder for folder, count in counts.items() if count >= _CROWDED}
    single = [path for path in files if folders[path] not in held]
    return [*single, *(path for path in scan.closed if path.rpartition("/")[2] != FOLDER)], held


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
    homes = [Path.home(), *(Path("/home").glob("*") if os.geteuid() == 0 else ())]
    found = [home / name for home in homes for name in _HOME_SECRETS]
    return [path for path in (*found, *_SYSTEM_SECRETS) if path.exists()]


def _environment(temporary: Path) -> dict[str, str]:
    """Return the variables that lead programs to the scratch folder."""
    return {
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
            folder = Path(tempfile.mkdtemp(prefix="llm-do-"))
            for name in ("home", "cache"):
                (folder / "tmp" / name).mkdir(parents=True)
            atexit.register(_remove, key[0], folder)
            _scratches[key] = folder / "tmp"
        return _scratches[key]


_scratches: dict[tuple[int, str], Path] = {}
_lock = threading.Lock()


def _remove(process: int, folder: Path) -> None:
    if os.getpid() == process:  # not in a process that was forked off this one
        shutil.rmtree(folder, ignore_errors=True)
