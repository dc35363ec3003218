"""Carries out durable runs in forked processes that die at a commit, which saves importing everything each time.

It reads a task from each line of stdin, as JSON (`scenario`, `root`, `thread`; the URL of a `store`, or null for the
file of the root; `options` of the runtime; `commit` and `moment`, at which the process dies), and prints the exit
status of the process. A run that is there already is resumed, and what was in flight runs again. A run that ends
appends its result to the file `result`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_do.threads import memory_store
from llm_do.threads.sql import transactions
from tests.durable.scenarios import SCENARIOS, runtime_for


def die_at(number: int, moment: str) -> Callable[[Any], None]:
    """A function that commits, and kills the process before or after the commit of this number."""
    counted, commit = itertools.count(), transactions.commit

    def counting(db: Any) -> None:
        here = next(counted) == number
        if here and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(db)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)

    return counting


async def carry_out(task: dict[str, Any]) -> None:
    root = Path(task["root"])
    runtime = runtime_for(task["scenario"], root, store=task["store"], **task.get("options", {}))
    if ((root / ".llm-do").exists() or task["store"]) and await runtime.shared.recorder().find("r") is not None:
        result = await runtime.execute_again("r", in_flight="repeat")
    else:
        result = await runtime.execute("go", run_id="r", thread_id=task["thread"])
    if result.status != "suspended":
        (root / "result").write_text(json.dumps(result.to_dict()))
    await runtime.aclose()


def fork(task: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            if "commit" in task:
                transactions.commit = die_at(task["commit"], task["moment"])
            asyncio.run(carry_out(task))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


# Once, so that processes are forked with everything imported and built.
for name in SCENARIOS:
    warm = runtime_for(name, Path(sys.argv[1]), durable=False, record=False, store=memory_store())
    asyncio.run(warm.execute("go"))
for line in sys.stdin:
    task = json.loads(line)
    if task["store"]:
        import psycopg  # noqa: F401 (once, too)
    print(fork(task), flush=True)
