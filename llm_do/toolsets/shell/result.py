"""What a shell tool gives its model."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict  # pydantic reads only these before Python 3.12

__all__ = ["ShellResult"]


class ShellResult(TypedDict):
    """How a command ended and what it printed.

    Args:
        exit_code: The exit code, of the last command in a pipeline; minus a number for a signal.
        stdout: What it printed, its middle left out when it is long.
        stderr: What it said on standard error, likewise.
        truncated: Whether something is left out.
        stdout_file: Where all of its output is, when something is left out and files are kept.
        stderr_file: Likewise.
        exit_codes: Those of all commands, when one before the last failed; a reader that has enough fails nobody.
    """

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    stdout_file: NotRequired[str]
    stderr_file: NotRequired[str]
    exit_codes: NotRequired[list[int]]
