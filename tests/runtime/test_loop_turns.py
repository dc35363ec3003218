"""Work that grows with what a project or a model brings is done in slices, so that the event loop keeps turning."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from llm_do import AgentSpec
from llm_do.models.connections.answer_bounds import bounded_stream
from llm_do.runtime.agents.agent_builder import AgentBuilder, builder_of
from llm_do.runtime.record.redaction import RedactedFile, Redactor
from tests.support.loop_blocks import numbered_tool
from tests.support.runs import agent, project_of
from tests.support.scripted import script

Work = Callable[[], Coroutine[Any, Any, object]]


def turns_during(work: Work) -> int:
    """The number of turns that others have while something is done."""

    async def scenario() -> int:
        turns = 0
        doing = asyncio.create_task(work())
        while not doing.done():
            turns += 1
            await asyncio.sleep(0)
        await doing
        return turns

    return asyncio.run(scenario())


@pytest.mark.slow
def test_the_tools_of_an_agent_are_made_a_few_at_a_time() -> None:
    def project(count: int) -> tuple[AgentBuilder, AgentSpec]:
        spec = agent("main", script("done"), tools=list(map(numbered_tool, range(count))))
        return builder_of(project_of([spec])), spec

    async def prepare() -> None:
        await builder.prepare(spec)

    builder, spec = project(300)
    assert turns_during(prepare) >= 300 / 10
    assert len(builder.build(spec).tools) == 300
    assert turns_during(prepare) < 5


def test_events_that_arrive_together_are_read_a_few_at_a_time() -> None:
    part = b"data: {}\n\n" * 6_400

    async def parts() -> AsyncIterator[bytes]:
        yield part

    async def read() -> None:
        pieces = [
            piece async for piece in bounded_stream(parts(), packed=False, in_events=True, begun=time.monotonic())
        ]
        assert b"".join(pieces) == part
        assert max(map(len, pieces)) <= 4096

    assert turns_during(read) >= len(part) / 4096


class Noted(Redactor):
    """Notes how much it is given at a time."""

    def __init__(self) -> None:
        super().__init__({"ACME_API_KEY": "sk-123456789"})
        self.most = 0

    def __call__(self, text: str) -> str:
        self.most = max(self.most, len(text))
        return super().__call__(text)


def test_what_is_written_at_once_is_searched_for_secrets_in_pieces() -> None:
    """A search is one call into native code, which no other thread interrupts."""
    redact, written = Noted(), Kept()
    text = "a line without a secret\n" * 100_000 + "a key: sk-123456789\n" * 20_000
    with RedactedFile(written, redact) as file:
        file.write(text.encode())

    assert written.content.decode() == text.replace("sk-123456789", "[redacted ACME_API_KEY]")
    assert redact.most < 2**20


class Kept(io.BytesIO):
    """A file whose content is known after it was closed."""

    content = b""

    def close(self) -> None:
        if not self.closed:
            self.content = self.getvalue()
        super().close()
