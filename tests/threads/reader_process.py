"""A process that opens a project's store, reads it and closes it again and again, until stdin is closed.

reader_process.py ROOT
"""

from __future__ import annotations

import asyncio
import select
import sys
from pathlib import Path

from llm_do.threads import SqliteStore


async def read(path: Path) -> None:
    store = SqliteStore(path)
    await store.threads()
    await store.aclose()


state = Path(sys.argv[1], ".llm-do", "state.db")
while not select.select([sys.stdin], [], [], 0.01)[0]:
    if state.exists():
        asyncio.run(read(state))
