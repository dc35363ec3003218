"""Real processes for the tests of the command line: a folder for each project, scripted answers, no network."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, TextIO

REPOSITORY = Path(__file__).parents[2]
LLM_DO = [sys.executable, "-m", "llm_do.cli"]

AGENT = """\
---
name: main
model: script:answers.yaml
tools: [send, shout, fail, stop, sleep, block, spawn]
---
Help.
"""

TOOLS = '''\
import asyncio, os, subprocess, sys, time, warnings
from pathlib import Path


def send(to: str, text: str = "") -> str:
    """Send a text."""
    return f"sent to {to}"


def shout() -> str:
    """Write to stdout in every way there is."""
    print("by print")
    os.write(1, b"by write\\n")
    subprocess.run(["echo", "by child"], check=True)
    warnings.warn("by warning")
    return "Grüße"


def fail() -> str:
    """Fail."""
    raise RuntimeError("it broke")


def stop() -> str:
    """Stop the program."""
    raise KeyboardInterrupt


async def sleep(seconds: float) -> str:
    """Sleep, and clean up when woken."""
    Path("begun").touch()
    try:
        await asyncio.sleep(seconds)
    finally:
        Path("cleaned").touch()
    return "slept"


async def block(seconds: float) -> str:
    """Sleep as badly written code does."""
    Path("begun").touch()
    time.sleep(seconds)
    return "slept"


async def spawn() -> str:
    """Start a process and leave it to itself."""
    child = await asyncio.create_subprocess_exec("sleep", "300")
    Path("child").write_text(str(child.pid))
    Path("begun").touch()
    await asyncio.sleep(300)
    return "over"


def entry(input, ctx):
    raise ValueError("the entry broke")


TOOLS = [send, shout, fail, stop, sleep, block, spawn]
'''


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout, which must be exactly one JSON value."""
        return json.loads(self.out)


def environment(**changes: str | None) -> dict[str, str]:
    """This environment, cleaned by `conftest.py` of what would change a run, with changes; None removes one."""
    variables: dict[str, str | None] = {"PYTHONPATH": str(REPOSITORY), "LANG": "C.UTF-8", **changes}
    kept = {name: value for name, value in os.environ.items() if name not in variables}
    return kept | {name: value for name, value in variables.items() if value is not None}


def run(
    *args: str,
    cwd: Path | None = None,
    stdin: bytes | int | None = subprocess.DEVNULL,
    env: Mapping[str, str | None] | None = None,
) -> Ended:
    """Run `llm-do` to its end, without a terminal."""
    source: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    ended = subprocess.run(
        [*LLM_DO, *args], cwd=cwd, capture_output=True, timeout=60, env=environment(**(env or {})), **source
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@dataclass
class Forked:
    """A process that the one that forks has started.

    Args:
        pid: Its number.
        answers: Where it is told how the process has ended.
    """

    pid: int
    answers: TextIO
    returncode: int | None = None

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, negative after a signal."""
        if self.returncode is None:
            with self.answers:
                self.returncode = json.loads(self.answers.readline())["code"]
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass
class Batch:
    """The process that has imported everything and forks for each run, which all that run tests share."""

    connection: socket.socket | None = None

    def run(
        self,
        args: Sequence[str],
        cwd: Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        together: bool = False,
    ) -> Ended:
        """Run once.

        Args:
            args: The arguments of `llm-do`.
            cwd: The folder it runs in.
            stdin: Its stdin; the null device if empty.
            env: The whole environment; `environment()` when None.
            together: Whether `out` includes stderr.
        """
        if self.connection is None:
            self.connection = connected()
            atexit.register(self.close)
        call = {
            "args": list(args),
            "cwd": str(cwd),
            "stdin": stdin.decode("latin-1"),
            "env": dict(environment() if env is None else env),
            "together": together,
        }
        self.connection.sendall(json.dumps(call).encode() + b"\n")
        with self.connection.makefile(encoding="utf-8") as lines:
            return Ended(**json.loads(lines.readline()))

    def close(self) -> None:
        """End the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def connected() -> socket.socket:
    """Connect to the process, which the first that calls this starts."""
    folder = Path(os.environ["TESTS_FOLDER"])
    with (folder / "batch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "batch").exists():
            owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
            program = Path(__file__).with_name("cli_batch.py")
            started = subprocess.Popen(
                [sys.executable, str(program), str(folder / "batch"), str(owner)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env=environment(),
                start_new_session=True,
            )
            started.returncode = 0  # it ends after this process
            wait_for(folder / "batch")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(folder / "batch"))
    return connection


def start_in_fork(args: Sequence[str], cwd: Path, streams: Sequence[int], env: Mapping[str, str]) -> Forked:
    """Start `llm-do` in a fork with open streams: stdin, stdout and stderr, or a terminal alone."""
    connection = connected()
    call = {"args": list(args), "cwd": str(cwd), "env": dict(env)}
    socket.send_fds(connection, [json.dumps(call).encode() + b"\n"], list(streams))
    answers = connection.makefile(encoding="utf-8")
    connection.close()  # what reads the answers keeps it open
    return Forked(json.loads(answers.readline())["process"], answers)


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} isn't there"
        time.sleep(0.01)


BATCH = Batch()


def run_many(calls: Mapping[str, tuple[Sequence[str], Path, bytes]]) -> dict[str, Ended]:
    """Run `llm-do` many times without a terminal, each in a fork.

    Args:
        calls: Name to arguments, folder and stdin; empty stdin is the null device.
    """
    return {name: BATCH.run(*call) for name, call in calls.items()}


def run_forked(
    *args: str, cwd: Path = REPOSITORY, stdin: bytes = b"", env: Mapping[str, str | None] | None = None
) -> Ended:
    """Run `llm-do` once like `run`, but in a fork: for tests that aren't about starting up."""
    return BATCH.run(args, cwd, stdin, environment(**(env or {})))


def write_project(root: Path, answers: str = "", **files: str) -> Path:
    """Write a project with an agent, its tools, and a script of answers.

    Args:
        root: Its folder, created if missing.
        answers: YAML of `script:answers.yaml`.
        files: Texts of more files by name; `manifest` is `project.json`, `agent` is `main.agent`.
    """
    root.mkdir(parents=True, exist_ok=True)
    names = {"manifest": "project.json", "agent": "main.agent"}
    texts = {"main.agent": AGENT, "tools.py": TOOLS, "answers.yaml": answers or '- text: "answer to {input}"'}
    texts |= {names.get(stem, stem): text for stem, text in files.items()}
    for name, text in texts.items():
        (root / name).write_text(dedent(text), encoding="utf-8")
    return root
