"""The extras of the package: which modules each one installs, and the command that installs it here.

Whatever needs one imports its modules where they are used, and says what is missing with `missing_extra`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["EXTRAS", "Missing", "extra_of", "has_extra", "has_module", "install_command", "missing_extra"]

_NAME = "llm-do"


class _Extra(NamedTuple):
    package: str
    """The distribution whose version stands for it."""

    modules: tuple[str, ...]
    """Modules that are there if it is installed."""


EXTRAS: Mapping[str, _Extra] = {
    "dbos": _Extra("dbos", ("dbos", "sqlalchemy")),
    "google": _Extra("google-genai", ("google.genai",)),
    "local": _Extra("xllamacpp", ("xllamacpp",)),
    "mcp": _Extra("mcp", ("mcp", "fastmcp")),
    "otel": _Extra("opentelemetry-sdk", ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")),
    "postgres": _Extra("psycopg", ("psycopg",)),
    "service": _Extra("starlette", ("starlette", "uvicorn")),
}
"""The extras of pyproject.toml, apart from `all`."""


class Missing(NamedTuple):
    """What is missing, and how it is installed."""

    message: str
    """What needs which extra or package."""

    command: str
    """The command that installs it."""

    @property
    def hint(self) -> str:
        """What to do, for an error."""
        return f"Install it with `{self.command}`."


def has_module(name: str) -> bool:
    """Whether a module can be found; it isn't imported.

    Example:
        >>> has_module("json"), has_module("json.no_such_module"), has_module("no.such.module")
        (True, False, False)
    """
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def has_extra(extra: str) -> bool:
    """Whether what an extra installs is there; nothing is imported."""
    return all(map(has_module, EXTRAS[extra].modules))


def extra_of(module: str) -> str | None:
    """Return the extra that installs a module.

    Example:
        >>> extra_of("starlette.routing"), extra_of("fastmcp"), extra_of("json")
        ('service', 'mcp', None)
    """
    for extra, (_, modules) in EXTRAS.items():
        if any(module == each or module.startswith(f"{each}.") for each in modules):
            return extra
    return None


def missing_extra(extra: str, user: str) -> Missing:
    """Say what needs an extra, and how to install it.

    Args:
        extra: The extra.
        user: What needs it.
    """
    return Missing(f"{user} needs the extra `{extra}`, which isn't installed", install_command(extra))


def install_command(extra: str | None = None, package: str = "") -> str:
    """Return the command that installs an extra, or another package, into this environment.

    An extra is installed from where llm-do was installed: an index, a folder, a repository or a file.

    Args:
        extra: The extra.
        package: A requirement that no extra of ours has.
    """
    installed = _distribution()
    if extra is None:
        return _command(installed, {"pipx": "pipx inject llm-do", "uv": "uv tool install llm-do --with"}, [package])
    # These make the environment anew, so they must be given all that it shall have.
    tools = {"pipx": "pipx install --force", "uv": "uv tool install --force"}
    extras = {extra}
    if _tool() is not None:
        extras |= {name for name in EXTRAS if has_extra(name)}
    return _command(installed, tools, _requirements(installed, sorted(extras)))


def _command(installed: Distribution | None, tools: Mapping[str, str], arguments: Iterable[str]) -> str:
    tool = _tool()
    return f"{_installer(installed) if tool is None else tools[tool]} {' '.join(map(_quoted, arguments))}"


def _tool() -> str | None:
    """The program that keeps this environment for llm-do alone, if one does."""
    files = {"pipx": "pipx_metadata.json", "uv": "uv-receipt.toml"}
    return next((tool for tool, file in files.items() if Path(sys.prefix, file).is_file()), None)


def _installer(installed: Distribution | None) -> str:
    """The program that installs packages into this environment, with what it needs to find it."""
    if installed is not None and (installed.read_text("INSTALLER") or "").strip() == "uv":
        same = os.environ.get("VIRTUAL_ENV") == sys.prefix
        return "uv pip install" if same else f"uv pip install --python {_quoted(_python())}"
    pip = shutil.which("pip")
    same = pip is not None and Path(pip).parent == Path(sys.executable).parent
    return "pip install" if same else f"{_quoted(_python())} -m pip install"


def _python() -> str:
    """The interpreter, as it can be called in the current folder."""
    try:
        below = Path(sys.executable).relative_to(Path.cwd())
    except (ValueError, OSError):
        return sys.executable
    return str(below) if len(below.parts) > 1 else sys.executable


def _distribution() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(_NAME)
    except PackageNotFoundError:
        return None


def _requirements(installed: Distribution | None, extras: list[str]) -> list[str]:
    """What to install for extras: llm-do with them, from where it came, or what they consist of."""
    names = ",".join(extras)
    if installed is None:
        folder = Path(__file__).parents[1]
        return [f"{_folder(folder)}[{names}]" if (folder / "pyproject.toml").is_file() else f"{_NAME}[{names}]"]
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = str(origin.get("url", ""))
    if not url:
        return [f"{_NAME}[{names}]"]
    if vcs := origin.get("vcs_info"):
        part = f"#subdirectory={origin['subdirectory']}" if origin.get("subdirectory") else ""
        return [f"{_NAME}[{names}] @ {vcs['vcs']}+{url}@{vcs.get('commit_id', 'HEAD')}{part}"]
    if not url.startswith("file:"):
        return [f"{_NAME}[{names}] @ {url}"]
    path = _path(url)
    if not path.exists():
        return _parts(installed, extras) or [f"{_NAME}[{names}]"]
    if "dir_info" not in origin:
        return [f"{_NAME}[{names}] @ {url}"]
    editable = ["-e"] if origin["dir_info"].get("editable") else []
    return [*editable, f"{_folder(path)}[{names}]"]


def _path(url: str) -> Path:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    return Path(url2pathname(urlsplit(url).path))


def _folder(path: Path) -> str:
    try:
        return "." if path.samefile(Path.cwd()) else str(path)
    except OSError:
        return str(path)


def _parts(installed: Distribution, extras: Iterable[str]) -> list[str]:
    """The packages that extras consist of, for a folder or file that is gone."""
    found: list[str] = []
    for line in installed.requires or ():
        requirement, _, marker = line.partition(";")
        named = re.search(r"""extra == ['"]([^'"]+)['"]""", marker)
        if named is not None and named[1] in extras and not requirement.strip().startswith(f"{_NAME}["):
            found.append(requirement.strip())
    return found


def _quoted(text: str) -> str:
    if os.name == "nt":
        return f'"{text}"' if re.search(r"[^\w./:\\=-]", text) else text
    return shlex.quote(text)  # noqa: TID251 (the installer is used before any of our modules is)
