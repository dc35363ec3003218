"""`check` warns about allowed commands on a machine without a sandbox, unless the project says what it wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_do.linker.sources.project_files import read_project
from llm_do.linker.sources.project_root import locate_project
from llm_do.toolsets.shell.sandbox import SandboxStatus
from llm_do.ui.reports.sandbox_warning import sandbox_warnings

SHELL = {"sh": {"type": "shell", "allow": ["git log *"]}}


def warned(root: Path, **keys: Any) -> list[str]:
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], **keys}
    (root / "project.json").write_text(json.dumps(manifest))
    (root / "main.agent").write_text("---\nname: main\n---\nHelp.\n")
    files = read_project(locate_project(root))
    return [f"{item.code} {item.message}" for item in sandbox_warnings(files)]


@pytest.mark.parametrize(
    ("keys", "warns"),
    [
        ({"toolsets": SHELL}, True),
        ({"toolsets": SHELL, "sandbox": {"writable": [".git"]}}, True),
        ({"approvals": {"allow": ["shell(ls *)"]}}, True),
        ({"approvals": {"allow": [{"rule": "main:git_shell(log)"}]}}, True),
        ({"toolsets": SHELL, "sandbox": "required"}, False),
        ({"toolsets": SHELL, "sandbox": {"mode": "off"}}, False),
        ({"toolsets": {"sh": {"type": "shell"}}, "approvals": {"allow": ["write_file(shell)"]}}, False),
    ],
)
def test_allowed_commands_are_warned_about_where_there_is_no_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], warns: bool
) -> None:
    none = SandboxStatus(active=False, backend=None, reason="there is none in this test")
    monkeypatch.setattr("llm_do.toolsets.shell.sandbox.status", lambda: none)
    sentence = "LD603 commands that the project allows run without a sandbox: there is none in this test"
    assert warned(tmp_path, **keys) == ([sentence] if warns else [])


def test_nothing_is_said_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = SandboxStatus(active=True, backend="landlock", reason="")
    monkeypatch.setattr("llm_do.toolsets.shell.sandbox.status", lambda: one)
    assert warned(tmp_path, toolsets=SHELL) == []
