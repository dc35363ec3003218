"""The command line: one thin module a command, imported when that command runs.

`main` is the console script. Text for people is made in `llm_do.ui`.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    from llm_do.cli.process.stack import with_stack_room

    with_stack_room(_main)()


def _main() -> None:
    gc.disable()
    from llm_do.cli.process import signals, streams

    streams.ensure_open()
    streams.ensure_utf8()
    signals.exit_on_sigterm()
    from llm_do.cli.app import run

    streams.exit_process(run(sys.argv[1:]))
