"""What a manifest says of single settings, read as plain JSON: whatever is wrong with the rest, and without its model.

Commands that read a project's store need no more of the project, and are quicker without.
"""

from __future__ import annotations

import json
from typing import Any, cast

from llm_do._bounded_files import read_bounded
from llm_do.linker.sources.project_root import ProjectLocation
from llm_do.project.title import title

__all__ = ["project_title", "stated_aliases", "stated_keep_days", "stated_store"]


def _stated(located: ProjectLocation, *keys: str) -> object:
    """The value at a place of a project's manifest; None if there is none, or the file can't be read."""
    try:
        data: Any = json.loads(read_bounded(located.manifest)) if located.manifest is not None else None
        for key in keys:
            data = data[key]
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
    return cast("object", data)


def project_title(located: ProjectLocation) -> str | None:
    """A project's name and description in one line."""
    texts = [each if isinstance(each := _stated(located, key), str) else None for key in ("name", "description")]
    return title(*texts)


def stated_store(located: ProjectLocation) -> str:
    """Where a project is recorded; by default `sqlite`."""
    store = _stated(located, "threads", "store")
    return store if isinstance(store, str) else "sqlite"


def stated_keep_days(located: ProjectLocation) -> int | None:
    """After how many days without a turn threads are deleted; None if they are kept."""
    days = _stated(located, "threads", "keep_days")
    return days if type(days) is int and days >= 1 else None


def stated_aliases(located: ProjectLocation) -> dict[str, str | list[str]]:
    """A project's aliases of models."""
    declared = _stated(located, "models")
    if not isinstance(declared, dict):
        return {}
    found: dict[str, str | list[str]] = {}
    for name, models in cast("dict[str, object]", declared).items():
        if isinstance(models, str):
            found[name] = models
        elif isinstance(models, list):
            found[name] = [each for each in cast("list[object]", models) if isinstance(each, str)]
    return found
