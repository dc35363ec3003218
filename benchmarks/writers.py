"""Twenty processes that write to one store: whether one of them waits much longer than the others.

python -m benchmarks.writers FILE NAME SECONDS      # is one of them
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, as_a_service, python
from llm_do import AgentSpec
from llm_do.threads import SqliteStore
from tests.support.postgres import missing, start_server, stop_server
from tests.support.runs import runtime_of
from tests.support.scripted import script

PROCESSES = 20

SECONDS = 10.0
"""How long they write at the same time."""


def main() -> Iterator[Figure]:
    """Measure turns on threads of their own, in a file and in a database."""
    with tempfile.TemporaryDirectory() as folder:
        yield slowest("SQLite", str(Path(folder, "state.db")))
    if missing() is None:
        server = start_server(fsync="on")
        try:
            yield slowest("PostgreSQL", server.url())
        finally:
            stop_server(server)


def slowest(kind: str, store: str) -> Figure:
    """Compare the slowest turn of all with the median."""
    command = [python(), "-m", "benchmarks.writers", store]
    environment = {**os.environ, "PYDANTIC_AI_NO_BANNER": "1"}
    processes = [
        subprocess.Popen(
            [*command, f"t{number}", str(SECONDS)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for each in processes:  # none begins while others are still importing
        assert each.stdout is not None
        each.stdout.readline()
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    turns = sorted(second for each in processes for second in json.loads(each.communicate()[0]))
    middle = statistics.median(turns)
    return Figure(
        f"{PROCESSES} processes on {kind}, slowest turn / median",
        turns[-1] / middle,
        5.0,
        detail=f"{turns[-1] * 1000:.0f} ms against {middle * 1000:.0f} ms, of {len(turns)} turns",
    )


async def write(store: str, thread: str, seconds: float) -> list[float]:
    """Take turns on a thread, and return how long each took."""
    opened = store if "://" in store else SqliteStore(Path(store))
    agent = AgentSpec("main", model=script(*(["answer"] * 100_000)))
    runtime = runtime_of([agent], options={"store": opened})
    await runtime.run("x", thread_id=thread)
    took: list[float] = []
    # The processes do the same at the same time, so all would collect garbage in the same turn, and each wait for all.
    with as_a_service():
        print("ready", flush=True)
        sys.stdin.readline()
        until = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < until:
            await runtime.run("x", thread_id=thread)
            took.append(time.perf_counter() - begun)
    await runtime.aclose()
    return took


if __name__ == "__main__":
    print(json.dumps(asyncio.run(write(sys.argv[1], sys.argv[2], float(sys.argv[3])))))
