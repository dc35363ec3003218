"""Starts processes that take turns on a store by forking, which saves importing everything each time, and kills them.

It reads a task from each line of stdin, as JSON, and prints the exit status of each of its processes:

- `root`, the project; `mark`, which every prompt of the task begins with; `turns` of each process;
- `threads`, one for each process;
- `effects` after which they are killed, and `seconds` after that; or `commit`, the number of a commit, and `moment`,
  `before` or `after`, at which a process kills itself; or `effect`, the number of a tool call, in whose first
  statement it does;
- `tools`, whether turns call tools.

What a process has done it appends to files below `root`, one line a write: `effects` (run, tool call), `turns` (the
prompt of a turn that has ended, its status, its seconds).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from llm_do import Runtime, tool
from llm_do.runtime.context.call_context import current_call
from llm_do.threads import memory_store
from llm_do.threads.sql import transactions
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script


def append(file: Path, *words: object) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(words) + "\n")


def count_effects(task: dict[str, Any]) -> int:
    file = Path(task["root"], "effects")
    return file.read_bytes().count(b"\n") if file.exists() else 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(number: int, moment: str) -> Callable[[Any], None]:
    """Return a function that commits, and kills the process before or after the commit of this number."""
    counted, commit = itertools.count(), transactions.commit

    def counting(db: Any) -> None:
        here = next(counted) == number
        if here and moment == "before":
            die()
        commit(db)
        if here:
            die()

    return counting


def runtime_for(task: dict[str, Any]) -> Runtime:
    """Build an agent with two rounds of two tool calls a turn; one asks a nested agent, which has a tool too."""
    effects, counted = Path(task["root"], "effects"), itertools.count()

    @tool(approval="allow")
    async def work(item: str) -> str:
        """Work on an item."""
        ctx = current_call()
        append(effects, ctx.run_id, item)
        if next(counted) == task.get("effect"):
            die()
        await asyncio.sleep(0)
        if ctx.depth == 1:
            ctx.thread.state.setdefault("done", []).append(item)
        return f"worked on {item}"

    def name(messages: list[ModelMessage]) -> str:
        prompts = [part.content for each in messages for part in each.parts if isinstance(part, UserPromptPart)]
        return f"{prompts[-1]}-{_answers(messages)}"

    def ask(messages: list[ModelMessage], info: object) -> list[Any]:
        here = name(messages)
        return [call("work", {"item": here}, here), call("helper", {"input": f"{here}-h"}, f"{here}-h")]

    def help(messages: list[ModelMessage], info: object) -> list[Any]:
        return [call("work", {"item": name(messages)}, name(messages))]

    helper = agent("helper", script(help, "helped"), tools=[work])
    turns = (ask, ask, "answer") if task["tools"] else ("answer",)
    main = agent("main", script(*turns), tools=[work] if task["tools"] else [], toolsets=["helper"])
    return Runtime(project_of([main, helper], root=Path(task["root"])), approvals="approve_all")


def _answers(messages: list[ModelMessage]) -> int:
    """Count the responses since the last prompt."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
            break
        count += message.kind == "response"
    return count


async def take_turns(task: dict[str, Any], thread: str, process: int) -> None:
    runtime = runtime_for(task)
    for number in range(task["turns"]):
        prompt, began = f"{task['mark']}.{process}.{number}", time.monotonic()
        result = await runtime.execute(prompt, thread_id=thread)
        append(Path(task["root"], "turns"), prompt, result.status, time.monotonic() - began)
    await runtime.aclose()


def begin(task: dict[str, Any], thread: str, process: int) -> int:
    """Fork a process, and return its id."""
    pid = os.fork()
    if pid == 0:
        try:
            if "commit" in task:
                transactions.commit = die_at(task["commit"], task["moment"])
            asyncio.run(take_turns(task, thread, process))
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def carry_out(task: dict[str, Any]) -> list[int]:
    pids = [begin(task, thread, process) for process, thread in enumerate(task["threads"])]
    if "seconds" in task:
        handle = os.pidfd_open(pids[0])
        wanted = task["effects"] + count_effects(task)
        while count_effects(task) < wanted and not select.select([handle], [], [], 0.002)[0]:
            pass
        select.select([handle], [], [], task["seconds"])
        os.close(handle)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    return [os.waitpid(pid, 0)[1] for pid in pids]


# Once, so that processes are forked with everything imported and built.
warm = Runtime(runtime_for({"root": ".", "tools": False}).project, store=memory_store())
asyncio.run(warm.execute("hello", thread_id="t"))
for line in sys.stdin:
    print(json.dumps(carry_out(json.loads(line))), flush=True)
