"""Startup: help and usage errors against an idle interpreter, and commands that only read files."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path

from benchmarks.measure import Figure, interleaved_processes, peak_memory, python
from llm_do import Project, Runtime

MODEL = "from pydantic import BaseModel\nclass Model(BaseModel):\n    name: str"
AGENT = "---\nname: main\nmodel: openai-chat:text\n---\nAnswer briefly.\n"

LIGHT = (
    ("--help", ["--help"], 0),
    ("--version", ["--version"], 0),
    ("run --help", ["run", "--help"], 0),
    ("run --nonsense", ["run", "--nonsense"], 2),
)
"""Name, arguments and exit code."""

MANY = 100_000
"""Runs and threads of a large store."""


def main() -> list[Figure]:
    """Measure the commands that must be fast."""
    figures: list[Figure] = []
    nothing = [python(), "-c", "pass"]
    for name, arguments, code in LIGHT:
        command = [python(), "-m", "llm_do.cli", *arguments]
        ours, floor = interleaved_processes(command, nothing, code=code)
        detail = f"{ours * 1000:.0f} ms against {floor * 1000:.0f} ms"
        figures.append(Figure(f"llm-do {name} / python -c pass", ours / floor, 8, detail=detail))
    figures.append(Figure("llm-do --help, memory", peak_memory([python(), "-m", "llm_do.cli", "--help"]), 25, " MB"))
    return [*figures, *readers(), *lists()]


def readers() -> list[Figure]:
    """Measure commands that only read a project, against defining one pydantic model."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.agent").write_text(AGENT)
        for name, arguments in (("check", [folder]), ("graph", [folder]), ("schema", ["agent"])):
            ours, floor = interleaved_processes(
                [python(), "-m", "llm_do.cli", name, *arguments], [python(), "-c", MODEL]
            )
            detail = f"{ours / floor:.2f}x a pydantic model's {floor:.3f} s"
            figures.append(Figure(f"llm-do {name}", ours, 0.2, " s", detail=detail))
    return figures


def lists() -> list[Figure]:
    """Measure the lists of a store with many runs and threads, against the same of one with a single run."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large"), Path(folder, "small")
        for root in (large, small):
            root.mkdir()
            (root / "main.agent").write_text("---\nname: main\nmodel: test\n---\nAnswer briefly.\n")
            asyncio.run(Runtime(Project.load(root), record=True).run("hello", thread_id="t"))
        fill(large / ".llm-do" / "state.db")
        for name in ("runs list", "threads list"):
            command = [python(), "-m", "llm_do.cli", *name.split()]
            ours, few = interleaved_processes([*command, str(large)], [*command, str(small)])
            detail = f"{ours / few:.2f}x the list of one, {few:.3f} s"
            figures.append(Figure(f"llm-do {name}, {MANY}", ours, 0.15, " s", detail=detail))
    return figures


def fill(store: Path) -> None:
    """Copy the only run and thread of a store many times."""
    database = sqlite3.connect(store)
    for table, moment in (("runs", "started"), ("threads", "updated")):
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        values = {"id": "printf('%032x', value)", moment: f"{moment} - value"}
        chosen = ", ".join(values.get(name, name) for name in columns)
        database.execute(
            f"WITH RECURSIVE numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < {MANY})"
            f" INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table}, numbers"
        )
    database.commit()
    database.close()
