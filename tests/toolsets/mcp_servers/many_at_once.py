"""Start several runs that need an MCP server while the process is still importing the MCP client."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from llm_do import RunResult
from tests.support.scripted import call
from tests.toolsets.mcp_support import runtime


class Slow:
    """An import finder that slows down the import of the client and finds nothing."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name.startswith(("fastmcp.client", "pydantic_ai.mcp")):
            time.sleep(0.03)


assert "pydantic_ai.mcp" not in sys.modules
sys.meta_path.insert(0, Slow())  # type: ignore[arg-type]
session = runtime(Path(sys.argv[1]), [call("small_add", {"a": 1, "b": 1})])


async def many() -> list[RunResult]:
    async def one(number: int) -> RunResult:
        await asyncio.sleep(number * 0.05)
        return await session.execute("go")

    try:
        return await asyncio.gather(*map(one, range(8)))
    finally:
        await session.aclose()


print([result.status if result.error is None else str(result.error) for result in asyncio.run(many())])
