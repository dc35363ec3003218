"""The command line: one thin module a command, imported when that command runs.

`main` is the console script. Text for people is made in `llm_do.ui`.
"""

from __future__ import annotations

import sys

from llm_do._startup.process import exit_process, hasten_commands, pause_collector
from llm_do._startup.stack import with_stack_room

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    with_stack_room(_main)()


def _main() -> None:
    pause_collector()
    from llm_do.cli.process import signals, streams

    streams.ensure_open()  # before a file is opened, which would stand for a stream that is closed
    hasten_commands()
    streams.ensure_utf8()
    signals.exit_on_signals()
    from llm_do.cli.app import run

    exit_process(run(sys.argv[1:]))
