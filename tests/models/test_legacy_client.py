"""Clients for SDKs that still use httpx read no more of an answer than others."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import httpx
import pytest
from pydantic_ai.exceptions import UserError

from llm_do import ModelUnavailableError
from llm_do.models import ModelPool
from llm_do.models.connections import answer_bounds
from llm_do.models.connections.answer_bounds import AnswerBoundError
from llm_do.models.connections.legacy_client import legacy_client
from llm_do.models.providers import provider_models
from tests.models.test_answer_bounds import MIB, Writer, bomb, endless, served, whole

JSON = "application/json"
PACKED = ("content-encoding", "gzip")


@pytest.fixture(autouse=True)
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_bounds, "LARGEST_DOCUMENT", 2 * MIB)
    monkeypatch.setattr(answer_bounds, "LARGEST_STREAM", 4 * MIB)


def ask(write: Writer) -> tuple[bytes, list[str]]:
    """Return the body of the server's answer, and what the client accepted."""
    with served(write) as (url, accepted):

        async def once() -> bytes:
            async with legacy_client(url) as client:
                return (await client.post(url, json={})).content

        return asyncio.run(once()), accepted


@pytest.mark.parametrize("write", [whole(JSON, b"{}"), whole(JSON, gzip.compress(b"{}"), PACKED)])
def test_an_ordinary_answer_is_read(write: Writer) -> None:
    assert ask(write) == (b"{}", ["gzip"])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (endless(JSON, b"{", b"x" * MIB), "the answer is longer than 2 MiB"),
        (whole(JSON, bomb(b"{", b"x", 10), PACKED), "the answer is longer than 2 MiB"),
        (endless("text/event-stream", b"", b"data: x\n\n" * 100_000), "the answer is longer than 4 MiB"),
        (endless("text/event-stream", b"", b"x" * MIB), "an event of the answer is longer than 2 MiB"),
        (whole(JSON, b"{}", ("content-encoding", "br")), "compressed as br"),
    ],
)
def test_an_answer_that_is_too_long_or_packed_otherwise_is_an_error(write: Writer, message: str) -> None:
    with pytest.raises(AnswerBoundError, match=message):
        ask(write)


@pytest.mark.parametrize("prefix", ["groq", "cohere"])
def test_the_sdks_get_such_a_client(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    class Sdk:
        def __init__(self, *, api_key: str, http_client: Any) -> None:
            given.append(http_client)
            raise UserError("not installed")

    monkeypatch.setattr(provider_models, "infer_provider_class", lambda _: Sdk)
    monkeypatch.setenv({"groq": "GROQ_API_KEY", "cohere": "CO_API_KEY"}[prefix], "k")

    async def once() -> None:
        pool = ModelPool()
        with pytest.raises(ModelUnavailableError):
            pool.get(f"{prefix}:m", agent="main")
        await pool.aclose()

    asyncio.run(once())

    assert isinstance(given[0], httpx.AsyncClient)
    assert given[0].is_closed
