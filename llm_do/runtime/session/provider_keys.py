"""Which files a project's keys are read from: `.env` counts only if a person made it, or has agreed to it."""

from __future__ import annotations

from pathlib import Path

from llm_do.files.unreviewed import is_unreviewed
from llm_do.models.providers.key_files import ENV_FILE, read_keys

__all__ = ["project_keys"]


def project_keys(root: Path | None, file: str | None = None) -> dict[str, str]:
    """Read the keys in the `.env` of a project's folder, and in a file that the caller names."""
    return read_keys(None if root is not None and is_unreviewed(root, ENV_FILE) else root, file)
