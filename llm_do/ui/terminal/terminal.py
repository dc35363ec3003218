"""The terminal that a person sits at: whether there is one to ask on, and reading a line of it without blocking."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from llm_do.text.sanitizer import sanitize
from llm_do.ui.terminal.screen import in_ci, is_plain

__all__ = ["Terminal", "find_terminal"]

_LINE_BYTES = 4096

_MOST_SHOWN = 64 * 1024
"""Characters of a question that are kept to draw it again."""


def find_terminal(environ: Mapping[str, str], writes: int = 2) -> Terminal | None:
    """The terminal on which a person can be asked.

    That is stdin's where stderr is one too; where stdin is a pipe or a file that holds the input, the process's
    controlling terminal. Closed stdin, the null device and `CI` mean that no person is there. A terminal without
    abilities (`TERM=dumb`) shows plain lines, on which a person can answer too.
    """
    if not os.isatty(2) or in_ci(environ):
        return None
    plain = is_plain(environ)
    if os.isatty(0):
        return Terminal(0, writes, plain=plain) if _in_foreground(0) else None
    try:
        mode = os.fstat(0).st_mode
        if not stat.S_ISFIFO(mode) and not stat.S_ISREG(mode):
            return None
        number = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    if _in_foreground(number):
        return Terminal(number, number, plain=plain)
    os.close(number)
    return None


def _in_foreground(number: int) -> bool:
    try:
        return os.tcgetpgrp(number) == os.getpgrp()
    except OSError:
        return True


class Terminal:
    """A terminal to write questions to and read answers from, in its ordinary line mode.

    A process that is suspended while it waits for an answer (Ctrl-Z) writes the question again when it continues.

    Args:
        reads: The file descriptor to read.
        writes: The one to write.
        plain: Whether it can only show lines, so that nothing can be edited on them.
    """

    def __init__(self, reads: int, writes: int, *, plain: bool = False) -> None:
        self._plain = plain
        self._reads = reads
        self._writes = writes
        self._echoing: Any = None
        self._shown = ""

    @property
    def columns(self) -> int:
        """How wide it is now."""
        with suppress(OSError):
            return os.get_terminal_size(self._writes).columns or 80
        return 80

    @property
    def rows(self) -> int:
        """How high it is now."""
        with suppress(OSError):
            return os.get_terminal_size(self._writes).lines or 24
        return 24

    def write(self, text: str) -> None:
        """Write text that is sanitized already."""
        self._shown = f"{self._shown}{text}"[-_MOST_SHOWN:]
        self._write(text)

    def _write(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        with suppress(OSError):
            while data:
                data = data[os.write(self._writes, data) :]

    def write_again(self) -> None:
        """Write the current question once more, as much of it as there is room for, below what a shell has written."""
        if _in_foreground(self._reads):
            self._write("".join(self._shown.splitlines(keepends=True)[-self.rows :]))

    @contextmanager
    def aside(self) -> Generator[None]:
        """What is written meanwhile, such as on the other screen, is no part of the question afterwards."""
        before, self._shown = self._shown, ""
        try:
            yield
        finally:
            self._shown = before

    def mute(self) -> None:
        """Turn echo off: an echoed Enter would move what is drawn."""
        if sys.platform == "win32" or self._echoing is not None or not _in_foreground(self._reads):
            return
        import termios

        with suppress(OSError, termios.error):
            before = termios.tcgetattr(self._reads)
            silent = [*before[:3], before[3] & ~(termios.ECHO | termios.ECHONL), *before[4:]]
            termios.tcsetattr(self._reads, termios.TCSANOW, silent)
            self._echoing = before

    def unmute(self) -> bool:
        """Show what is typed, as before."""
        before, self._echoing = self._echoing, None
        if before is None or sys.platform == "win32":
            return False
        import termios

        with suppress(OSError, termios.error):
            if _in_foreground(self._reads):
                termios.tcsetattr(self._reads, termios.TCSANOW, before)
        return True

    def forget_typed(self) -> None:
        """Begin a question: what was typed before it could be read answers nothing, and is dropped."""
        self._shown = ""
        if sys.platform != "win32":
            import termios

            with suppress(OSError, termios.error):
                termios.tcflush(self._reads, termios.TCIFLUSH)

    @property
    def is_plain(self) -> bool:
        """Whether it can only show lines."""
        return self._plain

    @property
    def edits(self) -> bool:
        """Whether `edit_line` lets a person edit the line, and not only type it."""
        return sys.platform != "win32" and not self._plain

    async def edit_line(self, mark: str, text: str) -> str | None:
        """Let a person edit a line, or type it where there is no line editor."""
        if not self.edits:
            self.write(mark)
            return await self.read_line()
        from llm_do.ui.terminal.line_editor import edit_line

        def size() -> tuple[int, int]:
            with suppress(OSError):
                found = os.get_terminal_size(self._writes)
                return found.columns or 80, found.lines or 24
            return 80, 24

        try:
            return await edit_line(self._reads, self._writes, mark, text, size, self.write_again)
        except KeyboardInterrupt:
            # The line editor reads Ctrl-C as a key; it means what it means everywhere else.
            signal.raise_signal(signal.SIGINT)
            return None

    async def read_line(self) -> str | None:
        """Wait for a line; the event loop keeps running, and cancelling ends the wait."""
        with _on_continuing(self.write_again):
            line = await self._read_line()
        self._shown += f"{sanitize(line or '')}\n"  # as it was echoed
        return line

    async def _read_line(self) -> str | None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        watched, wake = os.pipe()

        def settle(line: bytes) -> None:
            if not answer.done():
                answer.set_result(line)

        def wait() -> None:
            line = b""
            with suppress(OSError):
                ready, _, _ = select.select([self._reads, watched], [], [])
                if watched not in ready:
                    line = os.read(self._reads, _LINE_BYTES)
            os.close(watched)
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, line)

        # A thread, since not every system's event loop can watch a terminal.
        threading.Thread(target=wait, name="llm-do-question", daemon=True).start()
        try:
            line = await answer
        finally:
            os.close(wake)
        return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


@contextmanager
def _on_continuing(call: Callable[[], None]) -> Generator[None]:
    """Call a function whenever the process continues after it was suspended, where a loop can watch for that."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGCONT, call)
    except (NotImplementedError, RuntimeError):  # a loop that watches no signals
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCONT)
