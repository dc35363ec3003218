"""Where in a project's own files an exception came from."""

from __future__ import annotations

import traceback
from pathlib import Path

__all__ = ["project_location"]


def project_location(error: BaseException, root: Path) -> tuple[str | None, int | None]:
    """The deepest line of the project's own files that an exception came through."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix(), frame.lineno
    return None, None
