"""Run the command line many times, each time in a fork: the program behind `cli_processes.run_many`.

Starting a process each time would cost a second of imports. It has also run an agent once: what a process makes when it
is first needed, such as compiled schemas, is there already.

All the processes that run tests share one, as it takes seconds to begin. Each connects to its socket, writes a call as
a line of JSON, and reads how it ended; calls of several run at once. A call that comes with open streams, such as those
of a terminal, is answered twice: with its process when it begins, and with how it ended. The server ends with the
process that it is told.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from llm_do._startup.process import hasten_imports, pause_collector
from llm_do.cli import main

NAMES = ("in", "out", "err")
"""The files of a run's streams."""


class Server:
    """Carries out the calls that come by connections to a socket.

    Args:
        path: The socket.
        owner: The process to end with.
    """

    def __init__(self, path: str, owner: int) -> None:
        self.owner = owner
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{path}.new")
        self.listener.listen()
        Path(f"{path}.new").rename(path)  # whoever sees it can connect
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.running: dict[int, tuple[socket.socket, Path | None]] = {}
        # A signal that a child has ended wakes up whoever waits for connections.
        self.woken, self.wakes = socket.socketpair()
        for end in (self.woken, self.wakes):
            end.settimeout(0)
        self.selector.register(self.woken, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakes.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until the owner has ended."""
        while is_alive(self.owner):
            for key, _ in self.selector.select(1.0):
                if key.fileobj is self.listener:
                    self.selector.register(self.listener.accept()[0], selectors.EVENT_READ)
                elif key.fileobj is self.woken:
                    self.woken.recv(4096)
                    self.answer()
                else:
                    self.read(key.fileobj)

    def read(self, connection: Any) -> None:
        """Begin a call, or forget a connection that has been closed."""
        line, streams = b"", []
        with suppress(ConnectionResetError):  # whoever asked has ended without reading the answer
            line, streams, *_ = socket.recv_fds(connection, 65_536, len(NAMES))
            while line and not line.endswith(b"\n"):
                line += connection.recv(65_536)
        if not line:
            self.selector.unregister(connection)
            connection.close()
            return
        call = json.loads(line)
        if streams:
            self.start(connection, streams, **call)
        else:
            self.call(connection, **call)

    def start(
        self, connection: socket.socket, streams: list[int], args: list[str], cwd: str, env: dict[str, str]
    ) -> None:
        """Begin a run with these streams; a single one is a terminal, which becomes its controlling one."""
        number = os.fork()
        if number == 0:
            self.leave(env)
            if len(streams) == 1:
                os.setsid()
                fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
            begin(args, cwd, [streams[min(each, len(streams) - 1)] for each in range(len(NAMES))], streams)
        for each in streams:
            os.close(each)
        self.running[number] = (connection, None)
        self.tell(connection, {"process": number})

    def call(
        self, connection: socket.socket, args: list[str], cwd: str, stdin: str, env: dict[str, str], together: bool
    ) -> None:
        """Begin a run; `together` merges stderr into stdout."""
        # Not a TemporaryDirectory, which a child would delete when it ends.
        folder = Path(tempfile.mkdtemp())
        files = [folder / name for name in NAMES]
        files[0].write_bytes(stdin.encode("latin-1"))
        number = os.fork()
        if number == 0:
            self.leave(env)
            made = [os.open(files[0] if stdin else os.devnull, os.O_RDONLY)]
            made += [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for file in files[1 : 2 if together else 3]]
            begin(args, cwd, [*made, made[1]][: len(NAMES)], made)
        self.running[number] = (connection, folder)

    def leave(self, env: dict[str, str]) -> None:
        """In a child: drop what is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self.wakes.close()
        self.selector.close()
        tempfile.tempdir = None
        os.environ.clear()
        os.environ.update(env)

    def answer(self) -> None:
        """Tell how the runs that are over have ended."""
        for number in list(self.running):
            ended, status = os.waitpid(number, os.WNOHANG)
            if not ended:
                continue
            connection, folder = self.running.pop(number)
            answer: dict[str, Any] = {"code": os.waitstatus_to_exitcode(status)}
            if folder is not None:
                files = {name: folder / name for name in NAMES[1:]}
                answer |= {
                    key: file.read_text(encoding="utf-8") if file.exists() else "" for key, file in files.items()
                }
                shutil.rmtree(folder)
            self.tell(connection, answer)

    def tell(self, connection: socket.socket, answer: dict[str, Any]) -> None:
        """Write an answer to whoever asked, unless that process has ended."""
        with suppress(OSError):
            connection.sendall(json.dumps(answer).encode() + b"\n")


def is_alive(process: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def link(task: str, limit: float) -> int | None:
    """Link in a fork, where `subprocess_check` starts a process; its own tests start the real one."""
    from llm_do.linker import check_worker

    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            check_worker.main(json.loads(task))
        finally:
            os._exit(99)
    _, status = os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def begin(args: list[str], cwd: str, streams: list[int], opened: list[int]) -> None:
    """Become the command line, with these streams, and close what was opened for them.

    The variable `TEST_CODE` is code that runs first, `TEST_AS_USER` the number of the user who runs it.
    """
    os.chdir(cwd)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for each in opened:
        os.close(each)
    exec(os.environ.pop("TEST_CODE", ""), {})  # noqa: S102
    if user := os.environ.pop("TEST_AS_USER", ""):
        os.setresuid(int(user), int(user), int(user))
    # The server's own objects remember what they could do with its streams.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    time.tzset()
    sys.argv = ["llm-do", *args]
    main()


if __name__ == "__main__":
    server = Server(sys.argv[1], int(sys.argv[2]))
    pause_collector()
    hasten_imports()
    from llm_do.linker import subprocess_check
    from tests.cli.cli_warm_up import warm_up

    subprocess_check._run = link
    warm_up()
    server.serve()
