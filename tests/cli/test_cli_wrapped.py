"""Wrapped toolsets in `tools`, `check`, `graph` and `approvals explain`, which run nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import Ended, run_many

MANIFEST = """
{
  "version": 1,
  "entry": {"agent": "main"},
  "agent_files": ["main.agent"],
  "python_files": ["tools.py"],
  "model": "test",
  "approvals": {"default": "allow", "deny": ["post_burn"]}
}
"""

AGENT = """---
name: main
tools: [login]
toolsets: [letters, hidden]
---
Write.
"""

TOOLS = '''
from pydantic_ai import FunctionToolset
from llm_do import Update

def login(name: str) -> Update:
    """Log in."""
    return Update("hello", user=name)

letters = FunctionToolset()

@letters.tool_plain
def send(to: str) -> str:
    """Send a letter."""
    raise AssertionError

@letters.tool_plain
def burn(to: str) -> str:
    """Burn a letter."""
    raise AssertionError

def for_boss(ctx, tool, args):
    return args["to"] == "boss" or ctx.deps.path

TOOLS = [login]
TOOLSETS = {
    "letters": letters.approval_required(for_boss).prefixed("post"),
    "hidden": FunctionToolset([send]).filtered(lambda ctx, tool: False),
}
'''


@pytest.fixture
def ended(project: Callable[..., Path]) -> dict[str, Ended]:
    root = project(manifest=MANIFEST)
    (root / "main.agent").write_text(AGENT)
    (root / "tools.py").write_text(TOOLS)
    lines = {
        "tools": "tools",
        "data": "tools --format json",
        "check": "check --strict",
        "boss": "approvals explain post_send to=boss",
        "ann": "approvals explain post_send to=ann",
        "burn": "approvals explain post_burn to=ann",
        "permissions": "graph --permissions",
    }
    return run_many({name: (line.split(" "), root, b"") for name, line in lines.items()})


@pytest.mark.slow
def test_wrapped_toolsets_are_shown_and_explained_without_a_run(ended: dict[str, Ended]) -> None:
    assert {name: each.code for name, each in ended.items()} == dict.fromkeys(ended, 0)
    assert all("Warning" not in each.err for each in ended.values())

    assert "  post_send(to: string)  [letters]\n" in ended["tools"].out
    assert "  send(to: string)  [hidden, shown if the run allows it]\n" in ended["tools"].out
    assert "only known at run time" not in ended["tools"].out
    [main] = ended["data"].json["agents"]
    assert main["open"] == []
    assert {
        tool["name"]: tool["conditional"] for tool in main["tools"] if tool["toolset"] in ("letters", "hidden")
    } == {
        "post_send": False,
        "post_burn": False,
        "send": True,
    }
    assert "post_send" in ended["permissions"].out

    assert "ask: post_send needs approval: the tool requires it for these arguments" in ended["boss"].out
    assert "ask: post_send needs approval: what its toolset requires shows at run time" in ended["ann"].out
    assert "deny: post_burn is denied by the rule post_burn" in ended["burn"].out
