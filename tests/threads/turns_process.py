"""A process that takes turns on threads and prints how each ended.

turns_process.py ROOT MARK TURNS THREAD...
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from llm_do import AgentSpec, Runtime, ThreadConflict, tool
from tests.support.runs import project_of
from tests.support.scripted import call, script

root, mark, turns, threads = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]


@tool(approval="allow")
async def work(item: int) -> str:
    """Work."""
    return f"worked {item}"


async def main() -> None:
    plain = Runtime(project_of([AgentSpec("main", model=script("answer"))], root=root))
    working = Runtime(
        project_of([AgentSpec("main", model=script(call("work", item=1), "answer"), tools=[work])], root=root)
    )
    ends: list[list[str]] = []
    for number in range(turns):
        for thread in threads:
            runtime = working if number % 3 == 2 else plain
            prompt = f"{mark}.{number}"
            try:
                await runtime.run(prompt, thread_id=thread)
            except ThreadConflict:
                ends.append([thread, prompt, "conflict"])
            else:
                ends.append([thread, prompt, "saved"])
    await plain.aclose()
    await working.aclose()
    print(json.dumps(ends))


asyncio.run(main())
