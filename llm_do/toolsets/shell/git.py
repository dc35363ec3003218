"""Run the read-only subcommands of git without the programs that a repository's configuration names.

A cloned or unpacked folder may configure pagers, file monitors, filters, diff programs, hooks and helpers. Every key
whose value is a program is overridden, submodules are ignored, and no remote is contacted. The configuration of the
user and of the system is not read either.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from llm_do._bounded_files import read_bounded_text
from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError

__all__ = ["Capture", "SafeGit", "safe_git"]

Capture = Callable[[Sequence[str], Mapping[str, str]], Awaitable[tuple[int, bytes]]]
"""Runs a command in the working directory and returns its exit code and output."""

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_OVERRIDES = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "diff.ignoreSubmodules": "all",
    "diff.submodule": "short",
    "gpg.openpgp.program": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.diffMerges": "separate",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
_RUNS_A_PROGRAM = re.compile(
    r"filter\..*\.(?:clean|smudge|process)|diff\..*\.(?:command|textconv)|diff\.external|merge\..*\.driver"
    r"|gpg\.ssh\.defaultkeycommand|core\.(?:editor|gitproxy|askpass|alternaterefscommand)"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs)|uploadpack\.packobjectshook|credential\..*|pager\..*",
    re.IGNORECASE | re.DOTALL,
)
_REQUIRED_FILTER = re.compile(r"filter\..*\.required", re.IGNORECASE | re.DOTALL)
_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv")
_FORCED: Mapping[str, tuple[str, ...]] = {
    "status": ("--ignore-submodules=all",),
    "diff": (*_NO_PROGRAMS, "--ignore-submodules=all"),
    **dict.fromkeys(("diff-files", "diff-index", "diff-tree"), (*_NO_PROGRAMS, "--ignore-submodules=all")),
    **dict.fromkeys(("log", "show", "whatchanged", "stash list", "stash show"), (*_NO_PROGRAMS, "--no-show-signature")),
    **dict.fromkeys(("reflog", "reflog show"), (*_NO_PROGRAMS, "--no-show-signature")),
    **dict.fromkeys(("annotate", "blame", "grep"), ("--no-textconv",)),
}
"""Options that a subcommand gets, whatever the configuration says."""
_OLDEST = (2, 31)
"""The first version that reads configuration from numbered environment variables."""


@frozen
class SafeGit:
    """A git command that is safe to run, with its environment and the folders of its repository."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    visible: Sequence[Path]


async def safe_git(
    argv: Sequence[str], subcommand: Sequence[str], environment: Mapping[str, str], root: Path, capture: Capture
) -> SafeGit:
    """Make a git command that only reads safe to run in an untrusted repository.

    `subcommand` may be several words, such as `stash list`; `capture` runs the queries to git. A git that is too old,
    or a repository outside the project, raises `ToolError`.
    """
    program = argv[0]
    plain = {**environment, **_ENVIRONMENT, **_config(_OVERRIDES)}
    await _check_version(program, plain, capture)
    code, listed = await capture([program, "config", "--list", "-z", "--includes"], plain)
    entries = listed.split(b"\0") if code == 0 else []
    keys = {entry.partition(b"\n")[0].decode(errors="surrogateescape") for entry in entries}
    found = {key: "" for key in keys if _RUNS_A_PROGRAM.fullmatch(key)}
    found |= {key: "false" for key in keys if _REQUIRED_FILTER.fullmatch(key)}
    places = await _find_repository(program, plain, capture)
    visible = _check_place(*places, root, configured="core.worktree" in keys) if places is not None else ()
    rest = argv[list(argv).index(subcommand[0], 1) + len(subcommand) :]
    forced = _FORCED.get(" ".join(subcommand), ())
    vector = [program, "--no-pager", "--no-optional-locks", *subcommand, *forced, *rest]
    return SafeGit(vector, {**environment, **_ENVIRONMENT, **_config({**found, **_OVERRIDES})}, visible)


def _config(values: Mapping[str, str]) -> dict[str, str]:
    """Return configuration as environment variables, which take precedence over every file."""
    numbered = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (key, value) in enumerate(values.items()):
        numbered[f"GIT_CONFIG_KEY_{number}"] = key
        numbered[f"GIT_CONFIG_VALUE_{number}"] = value
    return numbered


async def _check_version(program: str, environment: Mapping[str, str], capture: Capture) -> None:
    _, output = await capture([program, "version"], environment)
    found = re.search(rb"(\d+)\.(\d+)", output)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise ToolError("this git is too old to be run safely: it needs to be 2.31 or newer")


async def _find_repository(
    program: str, environment: Mapping[str, str], capture: Capture
) -> tuple[Path, Path, Path] | None:
    asked = ["--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"]
    code, output = await capture([program, "rev-parse", *asked], environment)
    lines = output.decode(errors="surrogateescape").splitlines()
    if code or len(lines) != 3:
        return None
    return Path(lines[0]), Path(lines[1]), Path(lines[2])


def _check_place(top: Path, data: Path, common: Path, root: Path, *, configured: bool) -> tuple[Path, ...]:
    """Check that a repository is the project's: it is below the root or contains it, and so is its data.

    `common` is the data that it shares with its other work trees; `configured` is set if the data's own configuration
    names the work tree, as a submodule's does.
    """
    top, data, common, real = top.resolve(), data.resolve(), common.resolve(), root.resolve()
    mutual = data == top / ".git" or _points_back(data, top)
    if top.is_relative_to(real):
        own = mutual or configured or data.is_relative_to(real)
    else:
        own = real.is_relative_to(top) and mutual
    if not (own and data.is_relative_to(common)):
        raise ToolError("the repository is neither in the project's folder nor around it: continue without git here")
    return top, common


def _points_back(data: Path, top: Path) -> bool:
    """Whether the repository of a linked work tree points back to it."""
    try:
        return Path(read_bounded_text(data / "gitdir").strip()).resolve() == top / ".git"
    except (OSError, ValueError):
        return False
