"""Run the command line many times, each time in a fork: the program behind `cli_processes.run_many`.

It reads a call from each line of stdin, as JSON, and prints how it ended. Starting a process each time
would cost a second of imports. It has also run an agent once: what a process makes when it is first needed, such as
compiled schemas, is there already.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from openai.types.chat import ChatCompletion
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest

import llm_do
from llm_do import Project, Runtime
from llm_do.cli import main
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

LEFT_OUT = ("__main__", "dbos_engine", "llm_do.pytest_plugin", "llm_do.toolsets.mcp", "telemetry")
"""Modules of ours that need what no call here needs."""


def call(args: list[str], cwd: str, stdin: str, env: dict[str, str], together: bool) -> dict[str, Any]:
    """Run once and return how it ended; `together` merges stderr into stdout."""
    # Not a TemporaryDirectory, which a child would delete when it ends.
    folder = tempfile.mkdtemp()
    files = [Path(folder, name) for name in ("in", "out", "err")]
    files[0].write_bytes(stdin.encode("latin-1"))
    number = os.fork()
    if number == 0:
        os.environ.clear()
        os.environ.update(env)
        files[0] = files[0] if stdin else Path(os.devnull)
        begin(args, cwd, files[:2] if together else files)
    _, status = os.waitpid(number, 0)
    out, err = (file.read_text(encoding="utf-8") if file.exists() else "" for file in files[1:])
    shutil.rmtree(folder)
    return {"code": os.waitstatus_to_exitcode(status), "out": out, "err": err}


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


def warm_up() -> None:
    """Import what any command needs, and run an agent with a tool."""
    ours = [each.name for each in pkgutil.walk_packages(llm_do.__path__, "llm_do.")]
    for name in (*LIBRARIES, *(name for name in ours if not any(part in name for part in LEFT_OUT))):
        import_module(name)
    ChatCompletion.model_rebuild()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.agent").write_text("---\nname: main\nmodel: test\ntools: [add]\n---\nHelp.\n")
        Path(folder, "tools.py").write_text("def add(a: int) -> int:\n    return a\n\n\nTOOLS = [add]\n")
        asyncio.run(Runtime(Project.load(folder), approvals="approve_all").run("hello"))
    ModelMessagesTypeAdapter.dump_python([ModelRequest.user_text_prompt("hello")])  # what a recorded run writes
    gc.freeze()  # a collection in a fork would copy every page


if __name__ == "__main__":
    subprocess_check._run = link
    warm_up()
    for line in sys.stdin:
        print(json.dumps(call(**json.loads(line))), flush=True)
