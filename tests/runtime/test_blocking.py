"""Synchronous code can run a project inside a running event loop; Ctrl-C then ends the run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, CallContext, PromptInput, run
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


@pytest.mark.slow
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


def failing_entry(input: Any, ctx: Any) -> str:
    raise KeyError("x")


def failing_hook(**data: Any) -> None:
    raise KeyError("x")


FAILING: dict[str, Callable[[], Any]] = {
    "an entry": lambda: runtime_of([], failing_entry).run_sync("go"),
    "a hook": lambda: run.sync(AgentSpec("main", model="test", hooks=[("start", failing_hook)]), "go"),
    "an input": lambda: run.sync(AgentSpec("main", model="test"), {"output": 1}),
    "an unknown entry": lambda: runtime_of([], failing_entry).run_sync("go", entry="other"),
}


@pytest.mark.parametrize("where", FAILING)
@pytest.mark.parametrize("in_loop", [False, True])
def test_an_exception_of_a_synchronous_run_has_a_traceback_of_its_own(where: str, in_loop: bool) -> None:
    async def cell() -> None:
        FAILING[where]()

    with pytest.raises(Exception) as raised:
        asyncio.run(cell()) if in_loop else FAILING[where]()

    text = "".join(traceback.format_exception(raised.value))
    assert "During handling" not in text
    assert "no running event loop" not in text
