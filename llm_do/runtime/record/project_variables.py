"""The variables of a project: those of the environment, then of `--env-file`, then of `.env` beside its manifest.

Every `${NAME}` and every key of a provider is looked up here. `.env` counts only if a person made it, or has agreed to
it. What is read is redacted from then on, as secrets of the environment are.
"""

from __future__ import annotations

import os
from pathlib import Path

from llm_do.files.unreviewed import is_unreviewed
from llm_do.models.providers.env_files import ENV_FILE, read_variables, with_variables
from llm_do.runtime.record.redaction import protect_values

__all__ = ["file_variables", "project_variables"]


def file_variables(root: Path | None, file: str | None = None) -> dict[str, str]:
    """Read the variables in the `.env` of a project's folder, and in a file that the caller names."""
    found = read_variables(None if root is not None and is_unreviewed(root, ENV_FILE) else root, file)
    protect_values(found)
    return found


def project_variables(root: Path | None, file: str | None = None) -> dict[str, str]:
    """Return the environment with the variables of files, which never replace those that it has."""
    return with_variables(os.environ, file_variables(root, file))
