"""What the shell completes values with: names of agents and models, ids of threads, runs and batches.

Nothing is linked, imported or changed for it, and nothing is raised: a shell that is asked for help with a word shows
what there is, or nothing. What a PostgreSQL database holds isn't looked up while someone types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._bounded_files import read_bounded, read_bounded_text

if TYPE_CHECKING:
    from llm_do.linker.sources.project_root import ProjectLocation

__all__ = ["agents_here", "batches_here", "memories_here", "models_here", "runs_here", "threads_here", "undoable_here"]

_OWN_NAME = re.compile(r"^name:\s*[\"']?([A-Za-z_][\w.-]*)", re.MULTILINE)
_MOST_FILES = 1000
_MOST_IDS = 200
_LOCKED = 0.5
"""Seconds to wait for a store that a run is writing."""


def agents_here(incomplete: str) -> list[str]:
    """The current project's agents whose names start with `incomplete`."""
    return _starting(incomplete, _agents)


def models_here(incomplete: str) -> list[str]:
    """Models that could be used here: aliases, the default models of providers whose key is set, and our own.

    `NAME=MODEL` names the model of one agent, so what is behind the sign is completed, too.
    """
    agent, sign, start = incomplete.rpartition("=")
    found = [f"{agent}{sign}{name}" for name in _starting(start, _models)]
    return found if sign else [*found, *(f"{name}=" for name in agents_here(start) if start)]


def threads_here(incomplete: str) -> list[str]:
    """Ids of the current project's threads, the most recent first."""
    return _starting(incomplete, lambda: _ids("SELECT id FROM threads ORDER BY updated DESC"), ordered=True)


def memories_here(incomplete: str) -> list[str]:
    """Ids of what the current project's agents remember, the most recent first."""
    return _starting(incomplete, lambda: _ids("SELECT id FROM memories ORDER BY updated DESC"), ordered=True)


def runs_here(incomplete: str) -> list[str]:
    """Ids of the current project's runs, the most recent first."""
    return _starting(incomplete, lambda: _ids("SELECT id FROM runs ORDER BY started DESC"), ordered=True)


def batches_here(incomplete: str) -> list[str]:
    """Ids of the current project's batches, the most recent first."""
    return _starting(incomplete, lambda: _ids("SELECT id FROM batches ORDER BY used DESC"), ordered=True)


def undoable_here(incomplete: str) -> list[str]:
    """Ids of the current project's runs that changed files, and of undos, the most recent first."""

    def ids() -> Iterable[str]:
        from llm_do.files.changes.kept_folder import KeptFolder

        return [record.id for record in reversed(KeptFolder(_here().root).records())][:_MOST_IDS]

    return _starting(incomplete, ids, ordered=True)


def _starting(incomplete: str, find: Callable[[], Iterable[str]], *, ordered: bool = False) -> list[str]:
    """The names that start with what has been typed, sorted unless they have an order of their own."""
    try:
        names = [name for name in find() if name.startswith(incomplete) and name.isprintable()]
    except Exception:  # noqa: BLE001 (whatever is wrong, the shell must not show a traceback between two words)
        return []
    return list(dict.fromkeys(names)) if ordered else sorted(set(names))


def _here() -> ProjectLocation:
    from llm_do.linker.sources.project_root import find_project

    return find_project(Path.cwd())


def _agents() -> Iterable[str]:
    root = _here().root
    for path in [*root.glob("*.agent"), *root.glob("*/*.agent"), *root.glob("*/*/*.agent")][:_MOST_FILES]:
        try:
            found = _OWN_NAME.search(read_bounded_text(path, errors="replace")[:4000])
        except OSError:
            continue
        yield found[1] if found else path.stem


def _models() -> Iterable[str]:
    import os

    from llm_do.models.aliases import known_aliases
    from llm_do.models.providers.model_names import BUILT_IN, DEFAULT_MODELS, PROVIDERS

    yield from (f"{name}:" if name == "script" else name for name in BUILT_IN)
    yield from known_aliases(_declared_aliases())
    for prefix, info in PROVIDERS.items():
        if any(os.environ.get(key) for key in info.keys):
            yield f"{prefix}:{DEFAULT_MODELS.get(prefix, '')}"


def _declared_aliases() -> dict[str, str]:
    """The aliases that the manifest declares; what they stand for doesn't matter here."""
    from llm_do.errors import LlmDoError

    try:
        manifest = _here().manifest
        declared: Any = json.loads(read_bounded(manifest))["models"] if manifest is not None else {}
        return dict.fromkeys(map(str, declared), "")
    except (LlmDoError, OSError, ValueError, TypeError, LookupError, RecursionError):
        return {}


def _ids(query: str) -> Iterable[str]:
    import sqlite3

    location = _here()
    store = "sqlite"
    if location.manifest is not None:
        data: Any = json.loads(read_bounded(location.manifest))
        store = str(data["threads"]["store"]) if "store" in data.get("threads", {}) else store
    if store not in ("sqlite", "memory"):
        return []
    file = location.root / ".llm-do" / "state.db"
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_LOCKED)) as opened:
        return [str(row[0]) for row in opened.execute(f"{query} LIMIT {_MOST_IDS}")]
