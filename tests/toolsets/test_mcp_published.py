"""A published MCP server as users configure it: declared in the manifest, started by its command, with approvals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from llm_do import Project, Runtime
from tests.support.history import results_of, strict


@pytest.mark.slow
def test_a_published_server_is_configured_in_the_manifest_and_answers(tmp_path: Path) -> None:
    server = {
        "type": "mcp",
        "command": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        "include": ["convert_time"],
        "timeout": 60,
    }
    (tmp_path / "project.json").write_text(
        json.dumps(
            {
                "version": 1,
                "entry": {"agent": "main"},
                "agent_files": ["main.agent"],
                "toolsets": {"clock": server},
                "approvals": {"allow": ["clock_convert_time"]},
            }
        )
    )
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: script:answers.yaml\ntoolsets: [clock]\n---\nTell.\n")
    (tmp_path / "answers.yaml").write_text(
        "- tools:\n"
        "    - name: clock_convert_time\n"
        "      args: {source_timezone: Asia/Tokyo, time: '09:30', target_timezone: UTC}\n"
        "    - {name: clock_get_current_time, args: {timezone: UTC}}\n"
        "- text: done\n"
    )
    result = Runtime(Project.load(tmp_path)).run_sync("When is half past nine in Tokyo here?")

    strict(result.messages)
    (_, converted, text), (_, hidden, why) = results_of(result.messages)
    assert (converted, hidden) == ("success", "failed")
    assert "T00:30:00+00:00" in text
    assert "unknown tool 'clock_get_current_time'" in why
    assert not result.denials
