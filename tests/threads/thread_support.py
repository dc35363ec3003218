"""What tests of threads share: agents on a thread, histories, and a child process that can be killed at any moment."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from llm_do import RunResult, Runtime
from llm_do.threads import SqliteStore, ThreadRecord, ThreadStore

ROOT = Path(__file__).parents[2]


def said(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


def answered(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


def on_thread(runtime: Runtime, *inputs: str, thread: str = "t", user: str | None = None) -> list[RunResult]:
    """One turn after the other on a thread, in one event loop."""

    async def turns() -> list[RunResult]:
        try:
            return [await runtime.execute(each, thread_id=thread, user_id=user) for each in inputs]
        finally:
            await runtime.aclose()

    return asyncio.run(turns())


def whole(store: ThreadStore, thread: str = "t", user: str | None = None) -> list[ModelMessage]:
    """A thread's stored messages."""

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
    """A project's store, as another process would open it."""
    return SqliteStore(root / ".llm-do" / "state.db")


def child(program: str, *args: object, wait: bool = True, **options: Any) -> subprocess.Popen[str]:
    """Start one of the programs beside this file."""
    command: Sequence[str] = [sys.executable, str(Path(__file__).parent / program), *map(str, args)]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}", "PYDANTIC_AI_NO_BANNER": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if wait:
        process.wait(timeout=120)
    return process
