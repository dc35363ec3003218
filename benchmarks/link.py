"""Processor time and memory of linking, per agent, as the number of agents grows."""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from pathlib import Path

from benchmarks.measure import Figure
from llm_do.linker.linker import link

AGENTS = 1000
TARGET_MS = 0.25
TARGET_KB = 10.0
ROUNDS = 3

AGENT = """---
name: agent_{number}
description: "Handles part {number} of the work: reads, thinks, answers."
model_settings:
  temperature: 0.2
toolsets:
  - filesystem_project_ro
  - agent_{next}
---
You handle part {number}.

Read the input, think about it, and answer in one paragraph.
"""

MANIFEST = '{"version": 1, "entry": {"agent": "agent_0"}, "agent_files": ["*.agent"]}'


def write_project(root: Path, count: int) -> None:
    """Write a project of this many agents, each listing the next."""
    (root / "project.json").write_text(MANIFEST, encoding="utf-8")
    for number in range(count):
        text = AGENT.format(number=number, next=(number + 1) % count)
        (root / f"agent_{number}.agent").write_text(text, encoding="utf-8")


def measure(count: int, rounds: int = ROUNDS) -> tuple[float, float]:
    """Measure processor milliseconds and retained kilobytes per agent."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, count)
        link(root)
        spent: list[float] = []
        for _ in range(rounds):
            gc.collect()
            start = time.process_time()
            link(root)
            spent.append(time.process_time() - start)
        kept = min(_kept(root, count) for _ in range(2))  # the table of interned strings may grow in one of them
    return min(spent) * 1000 / count, kept / 1000 / count


def _kept(root: Path, count: int) -> int:
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    project = link(root)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(project.registry) == count
    return after - before


def main() -> list[Figure]:
    """Measure a project of a thousand agents, and one of ten thousand."""
    few_ms, few_kb = measure(AGENTS)
    many_ms, many_kb = measure(AGENTS * 10, rounds=1)
    return [
        Figure(f"linking {AGENTS} agents, each", few_ms, TARGET_MS, " ms"),
        Figure(f"{AGENTS} linked agents, each", few_kb, TARGET_KB, " KB"),
        Figure(f"linking {AGENTS * 10} agents, each / of {AGENTS}", many_ms / few_ms, 1.2, detail=f"{many_ms:.3f} ms"),
        Figure(f"{AGENTS * 10} linked agents, each / of {AGENTS}", many_kb / few_kb, 1.1, detail=f"{many_kb:.2f} KB"),
    ]
