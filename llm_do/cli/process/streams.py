"""The process's own streams: UTF-8 everywhere, only results on stdout, and a quick exit that loses nothing."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TextIO, cast

from llm_do.errors import StoreError
from llm_do.ui.terminal.screen import terminal_columns

__all__ = [
    "PIPE_CLOSED",
    "Capture",
    "ProtocolStreams",
    "Results",
    "claim_stdout",
    "ensure_open",
    "ensure_utf8",
    "stdout_fault",
    "warn",
    "write_all",
    "write_stderr",
]

PIPE_CLOSED = 141
"""The exit code of a run whose reader has gone away: 128 plus the number of SIGPIPE."""


def ensure_open() -> None:
    """Open the null device for every closed standard stream, and replace Python streams that can't be used.

    Otherwise the next file opened would become stdin, stdout or stderr. Call it again after importing a project's code.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if not _is_usable(getattr(sys, name, None)):
            _replace(name, number)


def _replace(name: str, number: int) -> None:
    stream = open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    setattr(sys, name, stream)


def _is_usable(stream: object) -> bool:
    """Whether a standard stream accepts text; a project's code may have replaced it with anything."""
    try:
        cast("TextIO", stream).write("")
        cast("TextIO", stream).flush()
    except OSError:
        return True  # its reader has gone away
    except Exception:  # noqa: BLE001 (closed, detached, or no stream at all)
        return False
    return True


_own: list[TextIO] = []
"""The stderr that the process started with: a project's code may replace it."""


def ensure_utf8() -> None:
    """Make UTF-8 the encoding of file names, arguments and streams, whatever the locale.

    With an ASCII locale the arguments are mangled before any Python code runs, so the interpreter is started again, in
    its UTF-8 mode.
    """
    if sys.getfilesystemencoding().lower().replace("-", "") != "utf8" and not sys.flags.utf8_mode:
        with suppress(OSError):
            os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    _own[:] = [sys.stderr]


class Results:
    """The stdout that the process was started with, for results.

    Args:
        number: Its file descriptor.
        closed: Whether the reader has gone away or the output can't be written.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._ended = False
        self.closed = False

    @property
    def is_terminal(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._number)

    @property
    def columns(self) -> int | None:
        """The terminal's width, None if it isn't a terminal."""
        return terminal_columns(self._number)

    def write(self, text: str) -> None:
        """Write all of a text; if the reader has gone away, set `closed` and return.

        Text for people has nothing that acts on a terminal, but JSON may, and a person may look at it.
        """
        if not text.isascii() and self.is_terminal:
            from llm_do.text.sanitizer import escape_data

            text = escape_data(text)
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        try:
            while data and not self.closed:
                data = data[os.write(self._number, data) :]
        except BrokenPipeError:
            self.closed = True
        except OSError as error:
            self.closed = True
            raise _unwritable(error) from error

    def write_last(self, text: str) -> None:
        """Write the end of the output once: a process that is killed meanwhile doesn't write it again."""
        if not self._ended:
            self._ended = True
            self.write(text)

    def write_lines(self, lines: Iterable[str]) -> None:
        """Write lines for a person, folded between words on a terminal."""
        text = "".join(f"{line}\n" for line in lines)
        columns = self.columns
        if columns is not None and any(len(line) > columns for line in text.split("\n")):
            from llm_do.ui.terminal.folding import fold_lines

            text = fold_lines(text, columns)
        self.write(text)


def stdout_fault(error: BaseException) -> StoreError | None:
    """Return what to report if Typer couldn't print a help text to stdout; None if an error came from elsewhere."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if not isinstance(error, OSError) or place is None or place.tb_frame.f_code.co_name != "echo":
        return None
    _replace("stdout", 1)  # the old one still has the text, which would go wherever stdout leads next
    return _unwritable(error)


def _unwritable(error: OSError) -> StoreError:
    return StoreError(
        f"the result can't be written to stdout: {error.strerror or error}", hint="Send it somewhere else."
    )


def claim_stdout() -> Results:
    """Keep stdout for results: anything else printed there, by C code and child processes too, goes to stderr."""
    kept = os.dup(1)
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    os.dup2(2, 1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
    return Results(kept)


class ProtocolStreams:
    """Stdin and stdout for a protocol alone: the project's code and child processes read nothing and print to stderr.

    Args:
        stdin: What the peer sends, as text.
        stdout: What the peer gets, as text.
        is_terminal: Whether a person is at the other end.
    """

    def __init__(self) -> None:
        self.is_terminal = os.isatty(0)
        self.stdin = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        self.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)


class Capture:
    """Captures what is printed to stdout and stderr, line by line, while the live tree is on the terminal.

    Args:
        sink: Called with complete lines, in a thread of its own.
    """

    def __init__(self, sink: Callable[[str], None]) -> None:
        self._sink = sink
        self._left: list[bytes] = []
        self._kept = (os.dup(1), os.dup(2))
        reads, writes = os.pipe()
        self._stop, self._wake = os.pipe()
        for number in (1, 2):
            os.dup2(writes, number)
        os.close(writes)
        self._reads = reads
        self._thread = threading.Thread(target=self._read, name="llm-do-output", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Pass on what is left, and restore both."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        for number, kept in zip((1, 2), self._kept, strict=True):
            os.dup2(kept, number)
            os.close(kept)
        os.close(self._wake)
        self._thread.join(timeout=1)

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._reads, self._stop], [], [])
            if self._reads in ready:
                part = os.read(self._reads, 1 << 16)
                self._pass_on(part)
                if part:
                    continue
            break
        if self._left:
            self._pass_on(b"\n")
        os.close(self._reads)
        os.close(self._stop)

    def _pass_on(self, part: bytes) -> None:
        lines, newline, rest = part.rpartition(b"\n")
        if newline:
            self._sink(b"".join([*self._left, lines, newline]).decode("utf-8", "backslashreplace"))
            self._left.clear()
        if rest:
            self._left.append(rest)


def warn(text: str) -> None:
    """Write lines to stderr, folded between words on a terminal, of which they can change nothing but colours.

    Commands in them find this command's project, and secrets are redacted.
    """
    from llm_do.runtime.record.redaction import redactor

    text = redactor()(text)
    if "`llm-do " in text:
        from llm_do.cli.process.named_commands import complete_commands

        text = complete_commands(text)
    if not all(line.isprintable() for line in text.split("\n")):
        from llm_do.text.sanitizer import escape_acting

        text = escape_acting(text)
    columns = terminal_columns()
    if columns is not None and any(len(line) > columns for line in text.splitlines()):
        from llm_do.ui.terminal.folding import fold_lines

        text = fold_lines(text, columns)
    write_stderr(text if text.endswith("\n") else text + "\n")


def write_all(number: int, text: str) -> None:
    """Write all of a text to a terminal, if it is still there."""
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    with suppress(OSError):
        while data:
            data = data[os.write(number, data) :]


def write_stderr(text: str) -> None:
    """Write text to stderr as it is, if it can be written."""
    stream = _own[0] if _own else sys.stderr
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        return
    except ValueError:  # it has been closed
        write_all(2, text)
