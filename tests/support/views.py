"""The ways in which one run can be looked at; however that is done, it ends alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llm_do import LlmDoError, Project, RunResult, Runtime, RuntimeConfig
from llm_do.ui.live.display import Display

__all__ = [
    "VIEWS",
    "Ending",
    "plain",
    "recorded",
    "run_sync",
    "runtime_for",
    "stream",
    "streamed",
    "terminal",
    "text_subscriber",
]


@dataclass(frozen=True)
class Ending:
    """How a run ended, in what every view must agree on."""

    status: str
    output: object = None
    error: str = ""
    hint: str = ""
    warnings: tuple[str, ...] = ()
    requests: int = 0

    @classmethod
    def of(cls, result: RunResult) -> Ending:
        error = result.error
        return cls(
            result.status,
            result.output,
            error.message if isinstance(error, LlmDoError) else str(error or ""),
            (error.hint if isinstance(error, LlmDoError) else "") or "",
            tuple(record.message for record in result.warnings),
            result.usage.requests,
        )


def runtime_for(project: Project) -> Runtime:
    """A runtime that approves everything and retries at once."""
    return Runtime(project, config=RuntimeConfig.of(project, approvals="approve_all", retry_delay=0.0))


def _run(project: Project, use: Callable[[Runtime], Awaitable[RunResult]]) -> Ending:
    async def once() -> Ending:
        runtime = runtime_for(project)
        try:
            return Ending.of(await use(runtime))
        finally:
            await runtime.aclose()

    return asyncio.run(once())


def plain(project: Project, folder: Path) -> Ending:
    return _run(project, lambda runtime: runtime.execute("go"))


def text_subscriber(project: Project, folder: Path) -> Ending:
    async def use(runtime: Runtime) -> RunResult:
        runtime.on("text", lambda event: None)
        return await runtime.execute("go")

    return _run(project, use)


async def streamed(runtime: Runtime, **options: Any) -> RunResult:
    """Run as a stream of events, and return the result."""
    events = runtime.stream("go", **options)
    try:
        async for _ in events:
            pass
    except LlmDoError:
        pass
    assert events.result is not None
    return events.result


def stream(project: Project, folder: Path) -> Ending:
    return _run(project, streamed)


def terminal(project: Project, folder: Path) -> Ending:
    async def use(runtime: Runtime) -> RunResult:
        shown: list[str] = []
        runtime.on(None, Display(shown.append, verbosity=2).on_event)
        result = await runtime.execute("go")
        assert "\x1b" not in "".join(shown)
        return result

    return _run(project, use)


def recorded(project: Project, folder: Path) -> Ending:
    """A turn of a thread; the next turn must work, too."""

    async def use(runtime: Runtime) -> RunResult:
        first = await runtime.execute("go", thread_id="t")
        second = await runtime.execute("go", thread_id="t")
        assert (second.status, second.output) == (first.status, first.output), second.error
        return first

    return _run(project, use)


def run_sync(project: Project, folder: Path) -> Ending:
    """An error says how a run ended; the rest is in the result, which there is none of."""
    try:
        return Ending.of(runtime_for(project).run_sync("go"))
    except LlmDoError as error:
        return replace(plain(project, folder), status=error.status, error=error.message, hint=error.hint or "")


VIEWS = (plain, text_subscriber, stream, terminal, recorded, run_sync)
