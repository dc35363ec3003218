"""The command line in a pseudo-terminal, forked so that nothing is imported twice, and its screen."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pyte
from pexpect.fdpexpect import fdspawn

from tests.cli.cli_processes import environment, start_in_fork

HEAVY = (
    "llm_do.cli.actions.run_action",
    "llm_do.cli.actions.session",
    "llm_do.cli.actions.chat.chat_session",
    "llm_do.models.builtin.script_model",
)


class Screen:
    """A command line in a terminal: keys go in, the contents of the screen come out.

    Args:
        args: The arguments of `llm-do`.
        cwd: The folder it runs in.
        columns: How wide the terminal is.
        rows: How high.
        env: Changes of the environment.
    """

    def __init__(self, args: Sequence[str], cwd: Path, columns: int = 80, rows: int = 40, **env: str | None) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.Stream(self.screen)
        self.raw = ""
        self._number, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = start_in_fork(args, cwd, [terminal], environment(**env))
        os.close(terminal)
        self._child = fdspawn(self._number, encoding="utf-8", timeout=30)
        self._child.delaybeforesend = None
        self._child.logfile_read = self

    def write(self, text: str) -> None:
        """Process output to the terminal; pexpect calls this."""
        self.raw += text
        self._stream.feed(text)

    def flush(self) -> None:
        """Do nothing: `write` buffers nothing."""

    def wait(self, text: str) -> None:
        """Wait until exactly this has been written, in one piece."""
        self._child.expect_exact(text)

    def wait_for_match(self, pattern: str) -> None:
        """Wait until something that matches this pattern has been written."""
        self._child.expect(pattern)

    def wait_until_shown(self, text: str) -> None:
        """Wait until this is on the screen, in however many pieces it was written."""
        while not any(text in line for line in self.lines):
            self._child.expect(r"(?s).+")

    def type(self, keys: str) -> None:
        """Type keys."""
        self._child.send(keys)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal."""
        fcntl.ioctl(self._number, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def end(self) -> int:
        """Wait for the process to end, and return its exit code."""
        import pexpect

        self._child.expect(pexpect.EOF)
        return self._process.wait()

    def hang_up(self) -> int:
        """Close the terminal, wait for the process to end, and return its exit code."""
        os.close(self._number)
        return self._process.wait()

    @property
    def lines(self) -> list[str]:
        """The scrollback and the screen, without empty lines."""
        above = ["".join(row[column].data for column in range(self.screen.columns)) for row in self.screen.history.top]
        return [line.rstrip() for line in [*above, *self.screen.display] if line.strip()]

    def close(self) -> None:
        """Kill the process if it still runs."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._number)


def start_process(args: Sequence[str], cwd: Path, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start the command line in a fork, with pipes for its output."""
    for name in HEAVY:
        import_module(name)
    return subprocess.Popen(
        ["llm-do"],
        preexec_fn=lambda: _become(args, cwd, environment(), above=2),  # never gets as far as what would be executed
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _become(args: Sequence[str], cwd: Path, env: dict[str, str], above: int | None = None) -> None:
    """Turn the child into the command line; `above` is the last file descriptor that stays open."""
    try:
        if above is not None:
            os.closerange(above + 1, min(os.sysconf("SC_OPEN_MAX"), 65536))
        atexit._clear()
        warnings.resetwarnings()
        warnings.simplefilter("default")
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        tempfile.tempdir = None  # the parent has looked it up in its own environment
        sys.argv = ["llm-do", *args]
        gc.disable()
        time.tzset()
        from llm_do.cli import main

        main()
    finally:
        os._exit(99)
