"""Helpers for tests of threads: agents on a thread, histories, and a child process that can be killed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from llm_do import AgentSpec, RunResult, Runtime, tool
from llm_do.runtime.context.call_context import current_call
from llm_do.threads import ConversationManager, SqliteStore, ThreadRecord, ThreadStore
from llm_do.threads.sqlite.sqlite_store import open_file
from tests.support.runs import runtime_of

T = TypeVar("T")

ROOT = Path(__file__).parents[2]


def user_text(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


def model_text(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


def done(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def talk(store: ThreadStore, turns: int, thread: str = "t", user: str | None = None) -> list[str]:
    """Add a conversation of this many turns, and return the ids of its messages."""
    messages = [each for number in range(turns) for each in (user_text(f"q{number}"), model_text(f"a{number}"))]
    return await ConversationManager(store, user).add_messages(thread, messages)


def runtime_on(store: Any, *specs: AgentSpec, entry: Any = None, options: Any = None, **fields: Any) -> Runtime:
    """Create a runtime for a project of these agents that records in a store."""
    return runtime_of(specs, entry, options={"store": store, **(options or {})}, **fields)


def prompts(messages: list[Any]) -> list[Any]:
    """Return the contents of the user prompts."""
    return [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


@tool(approval="allow")
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(approval="allow")
def remember(key: str, value: str) -> str:
    """Remember something."""
    ctx = current_call()
    ctx.thread.state[key] = value
    ctx.user.state["count"] = ctx.user.state.get("count", 0) + 1
    return "remembered"


def on_thread(runtime: Runtime, *inputs: str, thread: str = "t", user: str | None = None) -> list[RunResult]:
    """Run one turn after another on a thread in one event loop."""

    async def turns() -> list[RunResult]:
        try:
            return [await runtime.execute(each, thread_id=thread, user_id=user) for each in inputs]
        finally:
            await runtime.aclose()

    return asyncio.run(turns())


def stored_messages(store: ThreadStore, thread: str = "t", user: str | None = None) -> list[ModelMessage]:
    """Return a thread's stored messages."""

    async def read() -> list[ModelMessage]:
        record = await store.thread(thread, user)
        assert record is not None
        return [each.message for each in await store.history(record.head)]

    return asyncio.run(read())


def record_of(store: ThreadStore, thread: str = "t", user: str | None = None) -> ThreadRecord:
    record = asyncio.run(store.thread(thread, user))
    assert record is not None
    return record


def state_file(root: Path) -> SqliteStore:
    """Open a project's store."""
    return SqliteStore(root / ".llm-do" / "state.db")


def store_of_another_process(path: Path) -> SqliteStore:
    """Open a store that shares neither connection nor lock with the others of this process."""
    store = SqliteStore(path)
    store._share(open_file(path))
    return store


def child(program: str, *args: object, wait: bool = True, **options: Any) -> subprocess.Popen[str]:
    """Start one of the programs next to this file."""
    command: Sequence[str] = [sys.executable, str(Path(__file__).parent / program), *map(str, args)]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}", "PYDANTIC_AI_NO_BANNER": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if wait:
        process.wait(timeout=120)
    return process
