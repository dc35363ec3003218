"""How long linking takes and what a linked agent weighs: `python benchmarks/link.py [AGENTS]`.

Prints processor time and memory for each agent, for a project of some and for one of ten times as many.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from llm_do.project.linker import link

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

Read what you are given, think about it, and answer in one paragraph.
"""

MANIFEST = '{"version": 1, "entry": {"agent": "agent_0"}, "agent_files": ["*.agent"]}'


def write_project(root: Path, count: int) -> None:
    """Write a project of so many agents, each listing the next."""
    (root / "project.json").write_text(MANIFEST, encoding="utf-8")
    for number in range(count):
        text = AGENT.format(number=number, next=(number + 1) % count)
        (root / f"agent_{number}.agent").write_text(text, encoding="utf-8")


def measure(count: int) -> tuple[float, float]:
    """Milliseconds of processor time, and kilobytes kept, for each of so many agents."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, count)
        link(root)
        spent: list[float] = []
        for _ in range(ROUNDS):
            gc.collect()
            start = time.process_time()
            link(root)
            spent.append(time.process_time() - start)
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        project = link(root)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(project.registry) == count
    return min(spent) * 1000 / count, (after - before) / 1000 / count


def main(count: int = 1000) -> dict[str, float]:
    """Measure.

    Args:
        count: Agents of the smaller project.

    Returns:
        Milliseconds and kilobytes for each agent, of the project and of one of ten times its size.
    """
    few_ms, few_kb = measure(count)
    many_ms, many_kb = measure(count * 10)
    return {
        "link_ms_per_agent": few_ms,
        "link_kb_per_agent": few_kb,
        "link_ms_per_agent_x10": many_ms,
        "link_kb_per_agent_x10": many_kb,
        "link_growth": many_ms / few_ms,
    }


if __name__ == "__main__":
    figures = main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    for name, value in figures.items():
        print(f"{name:24}{value:8.3f}")
    met = figures["link_ms_per_agent"] <= TARGET_MS and figures["link_kb_per_agent"] <= TARGET_KB
    print(f"targets {TARGET_MS} ms and {TARGET_KB:g} KB: {'met' if met else 'missed'}")
    sys.exit(0 if met else 1)
