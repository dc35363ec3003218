"""Artifacts: files with complete results that are too long for a model, below the project's `.llm-do/artifacts`.

A project with `record: false` keeps none. Truncating results for the model is done elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO, cast

from llm_do.errors import LlmDoError
from llm_do.files import local_folder
from llm_do.files.folders import CREATE
from llm_do.files.root import Root
from llm_do.runtime.record.redaction import RedactedFile, redactor

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["FOLDER", "open_artifact", "save_artifact"]

FOLDER = f"{local_folder.FOLDER}/{local_folder.ARTIFACTS}"
"""Where artifacts are, relative to the project's root. A model reads those whose names it received, so no one can guess
a name."""

_MODE = 0o600
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def open_artifact(project: Project, label: str) -> tuple[BinaryIO, str] | None:
    """Create a new, empty artifact; return its file and path, or None if it can't be created.

    Secrets are removed from what is written to the file.
    """
    if not project.record:
        return None
    root = Root(project.root)
    name = f"{_UNSAFE.sub('_', label)[:60].strip('.') or 'result'}-{secrets.token_hex(8)}.txt"
    try:
        root.make_directory(FOLDER)
        with root.folder(FOLDER) as (folder, path):
            with contextlib.suppress(FileExistsError):
                os.close(folder.open(".gitignore", CREATE, _MODE))
                root.write(f"{FOLDER}/.gitignore", b"*\n")
            file = RedactedFile(os.fdopen(folder.open(name, CREATE, _MODE), "wb"), redactor())
            return cast("BinaryIO", file), f"{path}/{name}"
    except (LlmDoError, OSError):
        return None


def save_artifact(project: Project, label: str, pieces: Iterable[bytes]) -> str | None:
    """Save a complete result; return its path, or None if it can't be saved."""
    opened = open_artifact(project, label)
    if opened is None:
        return None
    file, path = opened
    try:
        with file:
            for piece in pieces:
                file.write(piece)
    except OSError:
        return None
    return path
