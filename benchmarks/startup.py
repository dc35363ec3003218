"""Startup: help and usage errors against an idle interpreter, and commands that only read files."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.measure import Figure, environment, interleaved_processes, python

MEMORY = (
    "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=-3,stderr=-3);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)
MODEL = "from pydantic import BaseModel\nclass Model(BaseModel):\n    name: str"
AGENT = "---\nname: main\nmodel: openai-chat:text\n---\nAnswer briefly.\n"

LIGHT = (
    ("--help", ["--help"], 0),
    ("--version", ["--version"], 0),
    ("run --help", ["run", "--help"], 0),
    ("run --nonsense", ["run", "--nonsense"], 2),
)
"""Name, arguments and exit code."""


def main() -> list[Figure]:
    """Measure the commands that must be fast."""
    figures: list[Figure] = []
    nothing = [python(), "-c", "pass"]
    for name, arguments, code in LIGHT:
        command = [python(), "-m", "llm_do.cli", *arguments]
        ours, floor = interleaved_processes(command, nothing, code=code)
        detail = f"{ours * 1000:.0f} ms against {floor * 1000:.0f} ms"
        figures.append(Figure(f"llm-do {name} / python -c pass", ours / floor, 8, detail=detail))
    peak = subprocess.run(
        [python(), "-c", MEMORY, python(), "-m", "llm_do.cli", "--help"],
        capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    figures.append(Figure("llm-do --help, memory", int(peak.stdout) / 1024, 25, " MB"))
    return [*figures, *readers()]


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
