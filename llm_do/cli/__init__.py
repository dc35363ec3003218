"""The command line: one thin module a command, imported when that command runs.

`main` is the console script. Text for people is made in `llm_do.ui`.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from llm_do._machine_limits import find_limit
from llm_do._startup.option_names import name_options_as_flags
from llm_do._startup.process import exit_process, hasten_commands, pause_collector
from llm_do._startup.stack import with_stack_room

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        with_stack_room(_main)()
    except KeyboardInterrupt:  # while the command line is imported
        exit_process(130)
    except Exception as error:  # noqa: BLE001 (a machine that can't even do that)
        exit_process(_report_start(error))


def _main() -> None:
    pause_collector()
    from llm_do.cli.process import signals, streams

    name_options_as_flags()
    streams.ensure_open()  # before a file is opened, which would stand for a stream that is closed
    signals.exit_on_signals()
    hasten_commands()
    streams.ensure_utf8()
    from llm_do.cli.app import run

    exit_process(run(sys.argv[1:]))


def _report_start(error: Exception) -> int:
    """Say why nothing could be started, with as little as possible; returns the exit code."""
    limit = find_limit(error)
    if limit is not None:
        text = f"{limit.message}. {limit.hint}"
    else:
        text = f"llm-do can't be started: {type(error).__name__}: {error}. Is the installation complete?"
    with suppress(OSError):
        os.write(2, f"error: {' '.join(text.split())}\n".encode("utf-8", "backslashreplace"))
    return 1
