"""A complete run from the shell against the same run of other tools, where they are installed.

Their dependencies exclude each other, so they are looked for in the interpreters that `LLM_DO_BENCHMARK_PEERS` names
(separated as in `PATH`), and in the running one. Each has the shortest script that its documentation shows for an agent
with instructions and a prompt, and sends the same request to the same server. What would call anything else (tracing,
telemetry) is turned off. A tool that isn't found has no line.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import Figure, environment, interleaved_processes, python
from benchmarks.server import serving
from benchmarks.whole_run import AGENT

__all__ = ["PEERS", "Peer", "main"]

WHERE = "LLM_DO_BENCHMARK_PEERS"


@dataclass(frozen=True)
class Peer:
    """Another tool.

    Args:
        name: Its name in the report.
        package: The module whose presence says that it is installed.
        arguments: What its interpreter is called with, in a folder that holds `files`.
        files: The files by name; `{url}` is the server's address.
        target: The most processor time that a run of llm-do may take, as a multiple of its run.
        variables: What it needs in its environment.
    """

    name: str
    package: str
    arguments: Sequence[str]
    files: Mapping[str, str]
    target: float = 1.0
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


PEERS = (
    Peer(
        "llm",
        "llm",
        ("-m", "llm", "-m", "bench", "-s", "Answer briefly.", "--no-stream", "Hello"),
        {"extra-openai-models.yaml": "- model_id: bench\n  model_name: text\n  api_base: {url}\n"},
        1.1,  # it has no agents
        {"LLM_USER_PATH": "."},
    ),
    Peer(
        "openai-agents",
        "agents",
        ("run.py",),
        {
            "run.py": """
from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
set_default_openai_api("chat_completions")
set_tracing_disabled(True)
agent = Agent(name="main", instructions="Answer briefly.", model="text")
print(Runner.run_sync(agent, "Hello").final_output)
"""
        },
    ),
    Peer(
        "adk",
        "google.adk",
        ("run.py",),
        {
            "run.py": """
import asyncio
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
agent = LlmAgent(name="main", instruction="Answer briefly.", model=LiteLlm("openai/text", api_base="{url}"))
for event in asyncio.run(InMemoryRunner(agent).run_debug("Hello", quiet=True)):
    if event.is_final_response():
        print(event.content.parts[0].text)
"""
        },
        variables={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    Peer(
        "fast-agent",
        "fast_agent",
        ("run.py",),
        {
            "run.py": """
import asyncio
from fast_agent import FastAgent
fast = FastAgent("bench", parse_cli_args=False, quiet=True)
@fast.agent("main", instruction="Answer briefly.", model="generic.text")
async def main():
    async with fast.run() as agent:
        print(await agent("Hello"))
asyncio.run(main())
""",
            "fastagent.config.yaml": "generic:\n  api_key: benchmark\n  base_url: {url}\nlogger:\n  type: none\n",
        },
    ),
)


def main() -> list[Figure]:
    """Measure a run of llm-do against each of the others that are found, alternately."""
    found = {peer.name: interpreter for peer in PEERS if (interpreter := _find(peer.package)) is not None}
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        project = Path(folder, "project")
        project.mkdir()
        (project / "main.agent").write_text(AGENT)
        command = [python(), "-m", "llm_do.cli", "run", str(project), "Hello"]
        for peer in PEERS:
            if peer.name not in found:
                continue
            home = Path(folder, peer.name)
            home.mkdir()
            for name, text in peer.files.items():
                (home / name).write_text(text.replace("{url}", url))
            extra = {"OPENAI_BASE_URL": url, **peer.variables}
            other = [found[peer.name], *peer.arguments]
            ours, theirs = interleaved_processes(command, other, extra=extra, folder=home)
            detail = f"{ours * 1000:.0f} ms against {theirs * 1000:.0f} ms"
            figures.append(Figure(f"whole run / {peer.name}", ours / theirs, peer.target, detail=detail))
    return figures


def _find(package: str) -> str | None:
    """The first interpreter that has a package."""
    named = [entry for entry in os.environ.get(WHERE, "").split(os.pathsep) if entry]
    look = f"import importlib.util,sys;sys.exit(importlib.util.find_spec({package!r}) is None)"
    for interpreter in (*named, python()):
        if not subprocess.run(
            [interpreter, "-c", look], env=environment(), capture_output=True, check=False
        ).returncode:
            return interpreter
    return None
