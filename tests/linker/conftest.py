from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from llm_do.linker.linker import LinkReport, check_project

Make = Callable[[Mapping[str, object]], Path]
Check = Callable[[Mapping[str, object]], LinkReport]


def write_files(root: Path, files: Mapping[str, object]) -> Path:
    """Write files below a folder: text as it is (dedented), bytes as bytes, anything else as JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(textwrap.dedent(content).removeprefix("\n"), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return root


def agent(name: str, front: str = "", body: str = "Help.") -> str:
    """The text of an `.agent` file."""
    return f"---\nname: {name}\n{textwrap.dedent(front).strip()}\n---\n{body}\n".replace("\n\n---\n", "\n---\n", 1)


def manifest(entry: object = "main", **keys: object) -> dict[str, object]:
    """A manifest that lists every agent; an entry that is text names an agent."""
    if isinstance(entry, str):
        entry = {"agent": entry}
    return {"version": 1, "entry": entry, "agent_files": ["*.agent"], **keys}


MAIN = agent("main", "tools: [add]")
TOOLS = "def add(a: int, b: int) -> int:\n    'Add.'; return a + b\nTOOLS = [add]\n"
MODELS = """
from llm_do import AgentArgs
from dataclasses import dataclass
class Pitch(AgentArgs):
    company: str
@dataclass
class Verdict:
    good: bool
class Odd: pass
LIMIT = 3
def helper(): ...
"""


def project(entry: object = "main", /, tools: str = TOOLS, main: str = MAIN, **keys: object) -> dict[str, object]:
    """A project with an agent and a file with a tool; keys are the manifest's."""
    return {
        "project.json": manifest(entry, python_files=["*.py"], **keys),
        "main.agent": main,
        "tools.py": tools,
    }


def found(report: LinkReport) -> list[tuple[str, str, int, int]]:
    """A report's diagnostics as code, file, line and column."""
    return [(item.code, item.file, item.line, item.column) for item in report.diagnostics]


def codes(report: LinkReport) -> list[str]:
    return [item.code for item in report.diagnostics]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a project's files into the test's own folder."""
    return lambda files: write_files(tmp_path, files)


@pytest.fixture
def check_files(make: Make) -> Callable[[Mapping[str, object]], LinkReport]:
    """Write a project's files and link them."""
    return lambda files: check_project(make(files))
