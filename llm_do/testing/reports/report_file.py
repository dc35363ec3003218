"""The file that a report goes to: it has the report as a whole or what it had before."""

from __future__ import annotations

from pathlib import Path

from llm_do.errors import UsageError
from llm_do.files.root import FileRefusedError, Root

__all__ = ["check_report_file", "write_report"]


def check_report_file(path: Path) -> None:
    """Check, before any test runs, that a report could be written.

    Raises:
        UsageError: Its folder doesn't exist, or something other than a file is there.
    """
    if not path.name:
        raise UsageError("the report's file name is empty", hint="Name a file, such as `--output report.xml`.")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} for the report", hint="Create it, or name another file.")
    try:
        Root(path.parent).check_write(path.name)
    except (FileRefusedError, OSError) as error:
        raise _unwritable(path, error) from error


def write_report(path: Path, text: str) -> None:
    """Write a report in one step.

    Raises:
        UsageError: It can't be written.
    """
    try:
        Root(path.parent).write(path.name, text.encode("utf-8", "backslashreplace"))
    except (FileRefusedError, OSError) as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: Exception) -> UsageError:
    return UsageError(f"the report {path} can't be written: {error}", hint="Name another file with --output.")
