"""Run the command line many times, each time in a fork: the program behind `cli_processes.run_many`.

Starting a process each time would cost a second of imports. It has also run an agent once: what a process makes when it
is first needed, such as compiled schemas, is there already.

All the processes that run tests share one, as it takes seconds to begin. Each connects to its socket, writes a call as
a line of JSON, and reads how it ended; calls of several run at once. It ends with the process that it is told.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pkgutil
import selectors
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from openai.types.chat import ChatCompletion
from pydantic import BaseModel
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest

import llm_do
from llm_do import Project, Runtime
from llm_do._startup import frozen
from llm_do._startup.compiled_texts import keep_compiled_texts
from llm_do.cli import app, main
from llm_do.linker import check_worker, subprocess_check

LIBRARIES = (
    "anyio._backends._asyncio",
    "encodings.utf_8_sig",
    "multiprocessing.popen_fork",
    "pydantic_ai.models.function",
    "pydantic_ai.models.openai",
    "pydantic_ai.models.test",
    "typer._click.decorators",
)
"""What a run imports late of the libraries, apart from servers' clients and telemetry."""

TOOL = '''\
def add(a: int) -> int:
    """Add one to a number."""
    return a + 1


TOOLS = [add]
'''

NAMES = ("in", "out", "err")
"""The files of a run's streams."""

LEFT_OUT = ("__main__", "dbos_engine", "llm_do.pytest_plugin", "llm_do.toolsets.mcp", "telemetry")
"""Modules of ours that need what no call here needs."""


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
        self.running: dict[int, tuple[socket.socket, Path]] = {}
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
        with connection.makefile(encoding="utf-8") as lines:
            line = lines.readline()
        if line:
            self.call(connection, **json.loads(line))
        else:
            self.selector.unregister(connection)
            connection.close()

    def call(
        self, connection: socket.socket, args: list[str], cwd: str, stdin: str, env: dict[str, str], together: bool
    ) -> None:
        """Begin a run; `together` merges stderr into stdout."""
        # Not a TemporaryDirectory, which a child would delete when it ends.
        folder = Path(tempfile.mkdtemp(dir=os.environ.get("TESTS_FOLDER")))
        files = [folder / name for name in NAMES]
        files[0].write_bytes(stdin.encode("latin-1"))
        number = os.fork()
        if number == 0:
            self.leave()
            os.environ.clear()
            os.environ.update(env)
            files[0] = files[0] if stdin else Path(os.devnull)
            begin(args, cwd, files[:2] if together else files)
        self.running[number] = (connection, folder)

    def leave(self) -> None:
        """In a child: drop what is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self.wakes.close()
        self.selector.close()
        tempfile.tempdir = None

    def answer(self) -> None:
        """Tell how the runs that are over have ended."""
        for number in list(self.running):
            ended, status = os.waitpid(number, os.WNOHANG)
            if not ended:
                continue
            connection, folder = self.running.pop(number)
            files = [folder / name for name in NAMES[1:]]
            out, err = (file.read_text(encoding="utf-8") if file.exists() else "" for file in files)
            shutil.rmtree(folder)
            answer = {"code": os.waitstatus_to_exitcode(status), "out": out, "err": err}
            with suppress(OSError):  # whoever asked has ended
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


def begin(args: list[str], cwd: str, files: list[Path]) -> None:
    """Become the command line."""
    os.chdir(cwd)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    if len(files) == 2:
        os.dup2(1, 2)
    if user := os.environ.pop("TEST_AS_USER", ""):
        os.setresuid(int(user), int(user), int(user))
    sys.argv = ["llm-do", *args]
    main()


def build_models(model: type[BaseModel]) -> None:
    """Build the schemas of our models, which the first validation by each would."""
    for each in model.__subclasses__():
        if each.__module__.startswith("llm_do.") and not each.__pydantic_complete__:
            each.model_rebuild(raise_errors=False)
        build_models(each)


def build_values() -> None:
    """Compile the `__init__` of each of our values, which the first of its class would."""
    for module in [module for name, module in sys.modules.items() if name.startswith("llm_do.")]:
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__init__.__qualname__ == "_init_later.<locals>.first":
                kind.__init__ = frozen._init_of(kind)  # type: ignore[misc]


def prepare_commands() -> None:
    """Make what reads the arguments of each command, and keep it."""
    app.get_command = cache(app.get_command)
    group: Any = app.get_command(app._root)
    for name in app.COMMANDS:
        group.get_command(None, name)


def warm_up() -> None:
    """Make what any command needs, and run an agent with a tool."""
    ours = [each.name for each in pkgutil.walk_packages(llm_do.__path__, "llm_do.")]
    for name in (*LIBRARIES, *(name for name in ours if not any(part in name for part in LEFT_OUT))):
        import_module(name)
    ChatCompletion.model_rebuild()
    build_values()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.agent").write_text("---\nname: main\nmodel: script:a.yaml\ntools: [add]\n---\nHelp.\n")
        Path(folder, "a.yaml").write_text("- tools: [{name: add, args: {a: 1}}]\n- text: done\n")
        Path(folder, "tools.py").write_text(TOOL)
        asyncio.run(Runtime(Project.load(folder), approvals="approve_all").run("hello"))
    ModelMessagesTypeAdapter.dump_python([ModelRequest.user_text_prompt("hello")])  # what a recorded run writes
    keep_compiled_texts()
    build_models(BaseModel)
    prepare_commands()
    gc.freeze()  # a collection in a fork would copy every page


if __name__ == "__main__":
    subprocess_check._run = link
    server = Server(sys.argv[1], int(sys.argv[2]))
    warm_up()
    server.serve()
