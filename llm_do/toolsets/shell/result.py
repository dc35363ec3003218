"""The result of a shell tool."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict  # pydantic reads only these before Python 3.12

__all__ = ["ShellResult"]


class ShellResult(TypedDict):
    """The exit code and the output of a command.

    Args:
        exit_code: The exit code of the command, or of the last one in a pipeline; negative for a signal.
        stdout: Its standard output, without the middle if it is long.
        stderr: Its standard error, without the middle if it is long.
        truncated: Whether a part of the output is omitted.
        stdout_file: The file with all of its standard output, if a part is omitted and files are kept.
        stderr_file: The file with all of its standard error, likewise.
        exit_codes: The exit codes of all commands, if one before the last failed. A command whose reader stopped early
            did not fail.
        note: What may explain a failure in the sandbox, and which new code no one has agreed to.
    """

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    stdout_file: NotRequired[str]
    stderr_file: NotRequired[str]
    exit_codes: NotRequired[list[int]]
    note: NotRequired[str]
