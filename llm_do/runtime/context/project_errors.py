"""Exceptions of a project's own code: where in its files they came from, and the errors that they become."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TypeVar

from llm_do.errors import LlmDoError, error_text

__all__ = ["project_error", "project_location"]

E = TypeVar("E", bound=LlmDoError)


def project_error(
    kind: type[E],
    failure: str,
    error: BaseException,
    root: Path | None,
    *,
    agent_path: str | None = None,
    advice: str | None = None,
) -> E:
    """The error of an exception that a project's own code raised; `failure` is the sentence up to the exception."""
    file, line = project_location(error, root) if root is not None else (None, None)
    hint = "--debug shows the traceback."
    return kind(
        f"{failure} {error_text(error)}",
        hint=f"{advice} {hint}" if advice else hint,
        file=file,
        line=line,
        agent_path=agent_path,
    )


def project_location(error: BaseException, root: Path) -> tuple[str | None, int | None]:
    """Return file and line of the innermost traceback frame in the project's own files."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix(), frame.lineno
    return None, None
