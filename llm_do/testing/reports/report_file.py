"""The file that a report or a page goes to: it has all of it, or what it had before."""

from __future__ import annotations

from pathlib import Path

from llm_do.errors import UsageError
from llm_do.files.root import FileRefusedError, Root

__all__ = ["check_report_file", "write_report"]


def check_report_file(path: Path, *, name: str = "report", option: str = "--output") -> None:
    """Check, before any work is done, that a report could be written; `name` is what it is called.

    Raises:
        UsageError: Its folder doesn't exist, or something other than a file is there.
    """
    if not path.name:
        raise UsageError(f"the {name}'s file name is empty", hint=f"Name a file with {option}.")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} for the {name}", hint="Create it, or name another file.")
    try:
        Root(path.parent).check_write(path.name)
    except (FileRefusedError, OSError) as error:
        raise _unwritable(path, error, name, option) from error


def write_report(path: Path, text: str, *, name: str = "report", option: str = "--output") -> None:
    """Write a report in one step.

    Raises:
        UsageError: It can't be written.
    """
    try:
        Root(path.parent).write(path.name, text.encode("utf-8", "backslashreplace"))
    except (FileRefusedError, OSError) as error:
        raise _unwritable(path, error, name, option) from error


def _unwritable(path: Path, error: Exception, name: str, option: str) -> UsageError:
    return UsageError(f"the {name} {path} can't be written: {error}", hint=f"Name another file with {option}.")
