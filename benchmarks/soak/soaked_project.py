"""The project that a soak runs, and the answers of its model."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["answer", "environment", "expected", "read_effects", "write_project"]

MANIFEST = {
    "version": 1,
    "entry": {"agent": "main"},
    "agent_files": ["*.agent"],
    "python_files": ["work.py"],
    "threads": {"history_limit": 12},
}

AGENT = "---\nname: main\nmodel: openai-chat:soak\ntools: [work]\n---\nWork.\n"

WORK = '''\
import asyncio
import os

from llm_do import tool


@tool(approval="allow")
async def work(word: str) -> str:
    """Do something that must not happen twice."""
    line = f"{word} {os.getpid()} {len(asyncio.all_tasks())}\\n"
    file = os.open(os.environ["SOAK_EFFECTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, line.encode())
    os.close(file)
    await asyncio.sleep(0.03)
    return word.upper()


TOOLS = [work]
'''

MARK = "SOAK_PROCESS"
"""The variable by which the processes of a soak are recognised, those that a killed process left behind included."""


def write_project(root: Path) -> None:
    """Write the files of the project."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in {"project.json": json.dumps(MANIFEST), "main.agent": AGENT, "work.py": WORK}.items():
        (root / name).write_text(text)


def environment(folder: Path, base_url: str) -> dict[str, str]:
    """The environment of the soak's processes, whose temporary files all go to one folder."""
    (folder / "tmp").mkdir(exist_ok=True)
    repository = str(Path(__file__).parents[2])
    more = {
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": base_url,
        "SOAK_EFFECTS": str(folder / "effects"),
        MARK: str(folder),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": repository,
        "LLM_DO_TRUST": "1",
        "NO_COLOR": "1",
    }
    return {**os.environ, **more}


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request: a call of the tool with the word that the user wrote, and then its result.

    Words that end with 7 fail at the provider, once and for all.
    """
    last = body["messages"][-1]
    content = last["content"]
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    delay = random.uniform(0.01, 0.15)
    if last["role"] == "tool":
        return {"text": text, "delay": delay}
    if text.endswith("7"):
        return {"status": 400, "body": {"error": {"message": f"no {text}"}}, "delay": delay}
    return {"tools": [{"name": "work", "args": {"word": text}}], "delay": delay}


def expected(word: str) -> str | None:
    """What comes of a word if nothing is killed; None if it fails."""
    return None if word.endswith("7") else word.upper()


def read_effects(folder: Path) -> tuple[Counter[str], dict[int, list[int]]]:
    """Read how often each word had its effect, and how many tasks each process had, in order."""
    found: Counter[str] = Counter()
    tasks: dict[int, list[int]] = {}
    path = folder / "effects"
    for line in path.read_text().splitlines() if path.exists() else ():
        word, process, count = line.split()
        found[word] += 1
        tasks.setdefault(int(process), []).append(int(count))
    return found, tasks
