"""A process that works on a thread until it is killed, turn after turn with tools, and prints its progress.

worker_process.py ROOT THREAD TURNS MARK
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from llm_do import AgentSpec, Runtime, ThreadConflict, tool
from llm_do.runtime.context.call_context import current_call
from tests.support.runs import project_of
from tests.support.scripted import call, script

root, thread, turns, mark = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]


def tell(text: str) -> None:
    print(text, flush=True)


@tool(approval="allow")
async def work(item: str) -> str:
    """Work on an item."""
    state = current_call().thread.state
    state.setdefault("done", []).append(item)
    await asyncio.sleep(0)
    return f"worked on {item}"


def turn(messages: list, info: object) -> list:
    """Make two parallel calls, and print the results the model sees, which are finished by now."""
    prompt = [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)][-1]
    step = 0
    for message in reversed(messages):
        if isinstance(message, ModelRequest) and any(isinstance(p, UserPromptPart) for p in message.parts):
            break
        step += message.kind == "response"
    return [call("work", item=f"{prompt}-{step}-{n}") for n in (1, 2)]


def last(messages: list, info: object) -> str:
    return "answer"


async def main() -> None:
    model = script(turn, turn, turn, "answer")
    runtime = Runtime(project_of([AgentSpec("main", model=model, tools=[work])], root=root), approvals="approve_all")

    def finished(event: object) -> None:
        # A model's next response: everything before its request is on disk by now.
        if event.type == "usage":
            tell(f"step {mark}")

    runtime.on("usage", finished)
    tell("ready")
    for number in range(turns):
        try:
            result = await runtime.run(f"{mark}.{number}", thread_id=thread)
        except ThreadConflict as error:
            tell(f"conflict {mark}.{number} {error.message}")
            continue
        returned = sum(isinstance(p, ToolReturnPart) for m in result.messages for p in m.parts)
        tell(f"turn {mark}.{number} {returned}")
    await runtime.aclose()


asyncio.run(main())
