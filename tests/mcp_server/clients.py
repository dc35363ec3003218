"""MCP clients of a project, in this process: one of the older protocol, and one of that of 2026-07-28."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.client.client import Client
from mcp.types import CallToolResult, ElicitResult

from llm_do import Event, Project
from llm_do.mcp_server.server import ProjectServer
from llm_do.runtime.session.runtime_config import RuntimeConfig

MODES = ("legacy", "auto")
"""Clients that are asked while their call waits, and clients that call again with the answer."""


@dataclass
class Person:
    """Answers forms in this order, repeats the last answer, and keeps the forms."""

    answers: list[ElicitResult]
    forms: list[Any] = field(default_factory=list)

    async def __call__(self, context: Any, form: Any) -> ElicitResult:
        self.forms.append(form)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def message(self) -> str:
        return self.forms[-1].message


def accepts(answer: str, **more: str) -> Person:
    """A person who fills in the form."""
    return Person([ElicitResult(action="accept", content={"answer": answer, **more})])


@asynccontextmanager
async def client_of(
    project: Project,
    mode: str = "auto",
    person: Callable[..., Awaitable[ElicitResult]] | None = None,
    *,
    only: Sequence[str] = (),
    events: list[Event] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client that is connected to the project."""

    def configure(approvals: Any, ask_user: Any) -> RuntimeConfig:
        return RuntimeConfig.of(project, **{"approvals": approvals, "ask_user": ask_user, **options})

    on_event = None if events is None else events.append
    served = ProjectServer(project, configure, version="1", only=only, on_event=on_event)
    async with Client(served.server, mode=mode, elicitation_callback=person) as client:
        yield client


def call(
    project: Project,
    name: str = "main",
    arguments: Mapping[str, Any] | None = None,
    *,
    progress: Any = None,
    **how: Any,
) -> CallToolResult:
    """Call one tool and return its result."""

    async def once() -> CallToolResult:
        async with client_of(project, **how) as client:
            given = {"input": "go"} if arguments is None else dict(arguments)
            return await client.call_tool(name, given, progress_callback=progress)

    return asyncio.run(asyncio.wait_for(once(), 30))


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    (content,) = result.content
    return content.text  # type: ignore[union-attr]
