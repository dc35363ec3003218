"""An MCP server as a toolset of an agent, for tests of servers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from llm_do import RunResult, Runtime
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from tests.support.history import results_of, strict
from tests.support.runs import agent, project_of
from tests.support.scripted import script

SERVERS = Path(__file__).parent / "mcp_servers"


def command(*words: str) -> list[str]:
    return [sys.executable, str(SERVERS / "plain_server.py"), *words]


def large_answers(*words: str) -> list[str]:
    """The command of a server that answers with anything large."""
    return [sys.executable, str(SERVERS / "large_answers.py"), *words]


OF_THE_SDK = [sys.executable, str(SERVERS / "stdio_server.py")]


def toolset(**config: Any) -> BuiltinToolset:
    given = {"command": command()} if "url" not in config and "command" not in config else {}
    return BuiltinToolset("small", {"type": "mcp", "timeout": 60, **given, **config})


def runtime(root: Path, *turns: Any, ref: Any = "small", approvals: Any = "approve_all", **config: Any) -> Runtime:
    spec = agent("main", script(*turns, "done"), toolsets=[ref])
    return Runtime(project_of([spec], root=root, toolsets={"small": toolset(**config)}), approvals=approvals)


def results(result: RunResult) -> list[tuple[str, str]]:
    assert result.status == "completed", result.error
    strict(result.messages)
    return [(outcome, text) for _, outcome, text in results_of(result.messages)]


def is_gone(pid: int) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False
