"""A whole run from the shell, one agent without tools, against a minimal script on bare PydanticAI."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, interleaved_processes, python
from benchmarks.server import serving

BARE = """
from pydantic_ai import Agent
print(Agent("openai-chat:text", instructions="Answer briefly.").run_sync("Hello").output)
"""
AGENT = "---\nname: main\nmodel: openai-chat:text\n---\nAnswer briefly.\n"


def main() -> list[Figure]:
    """Measure both, each a process of its own."""
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        script = Path(folder, "bare.py")
        script.write_text(BARE)
        project = Path(folder, "project")
        project.mkdir()
        (project / "main.agent").write_text(AGENT)
        ours, bare = interleaved_processes(
            [python(), "-m", "llm_do.cli", "run", str(project), "Hello"],
            [python(), str(script)],
            extra={"OPENAI_BASE_URL": url},
        )
    detail = f"{ours * 1000:.0f} ms against {bare * 1000:.0f} ms"
    return [Figure("whole run / bare PydanticAI", ours / bare, 0.7, detail=detail)]
