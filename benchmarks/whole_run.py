"""A complete run of one agent without tools from the shell, against a minimal script on bare PydanticAI."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, interleaved_processes, peak_memory, python
from benchmarks.server import serving

BARE = """
from pydantic_ai import Agent
print(Agent("openai-chat:text", instructions="Answer briefly.").run_sync("Hello").output)
"""
FLOOR = f"""
import gc, os, sys
gc.disable()
{BARE}
sys.stdout.flush()
os._exit(0)
"""
AGENT = "---\nname: main\nmodel: openai-chat:text\n---\nAnswer briefly.\n"


def main() -> list[Figure]:
    """Measure both in separate processes, and the minimum achievable with the same imports as bare PydanticAI."""
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        scripts = {"bare": BARE, "floor": FLOOR}
        for name, text in scripts.items():
            Path(folder, f"{name}.py").write_text(text)
        project = Path(folder, "project")
        project.mkdir()
        (project / "main.agent").write_text(AGENT)
        bare_command = [python(), str(Path(folder, "bare.py"))]
        address = {"OPENAI_BASE_URL": url}
        command = [python(), "-m", "llm_do.cli", "run", str(project), "Hello"]
        ours, bare = interleaved_processes(command, bare_command, rounds=11, extra=address)
        memory = peak_memory(command, address)
        detail = f"bare {peak_memory(bare_command, address):.1f} MB"
        floor, again = interleaved_processes([python(), str(Path(folder, "floor.py"))], bare_command, extra=address)
    return [
        Figure(
            "whole run / bare PydanticAI", ours / bare, 0.6, detail=f"{ours * 1000:.0f} ms against {bare * 1000:.0f} ms"
        ),
        Figure("whole run, memory", memory, 86, " MB", detail=detail),
        Figure("bare, no collector, no teardown / bare", floor / again, detail="without what llm-do keeps or defers"),
    ]
