"""Synchronous code can run a project inside a running event loop; Ctrl-C then ends the run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from llm_do import CallContext, PromptInput
from tests.support.runs import runtime_of

REQUEST: ContextVar[str] = ContextVar("request")

NOTEBOOK = """
import asyncio, signal, threading
from llm_do import run
from tests.support.runs import project_of

signal.signal(signal.SIGINT, signal.default_int_handler)

async def main(input, ctx):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        print("cleaned up", flush=True)

async def cell():
    try:
        run.sync(project_of([], main), "go")
    except KeyboardInterrupt:
        print("interrupted", [thread.name for thread in threading.enumerate() if thread.name == "llm-do-run"])

asyncio.new_event_loop().run_until_complete(cell())
"""


def test_ctrl_c_in_a_notebook_ends_the_run_and_waits_for_its_cleanup() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout.splitlines()[:1] == ["cleaned up"], done.stderr
    assert done.stdout.splitlines()[1].startswith("interrupted")


def test_context_variables_are_visible_in_the_run_wherever_it_is_started() -> None:
    async def main(input: PromptInput, ctx: CallContext) -> str:
        return REQUEST.get("none")

    runtime = runtime_of([], main)

    async def cell() -> Any:
        REQUEST.set("seven")
        return runtime.run_sync("go").output, (await runtime.run("go")).output

    assert asyncio.run(cell()) == ("seven", "seven")
