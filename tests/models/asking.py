"""Sends one prompt to a model of a pool."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent

from llm_do.models import ModelPool

HELLO = {"gpt-test": [{"text": "Hello"}], "other": [{"text": "Other"}]}


def say(pool: ModelPool, name: Any, **options: Any) -> str:
    async def run() -> str:
        try:
            return (await Agent(pool.get(name, **options)).run("Hi")).output
        finally:
            await pool.aclose()

    return asyncio.run(run())
