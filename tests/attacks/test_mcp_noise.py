"""An MCP server that prints other things to its protocol stream: reported once, and the tools work."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from llm_do import Runtime
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script

SERVER = Path(__file__).parent.parent / "toolsets" / "mcp_servers" / "plain_server.py"
NOISY = f"""
import runpy, sys
for number in range(300):
    print("starting step", number, flush=True)
sys.argv = [{str(SERVER)!r}]
runpy.run_path({str(SERVER)!r}, run_name="__main__")
"""


@pytest.mark.slow
def test_a_server_that_logs_to_its_standard_output_floods_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"type": "mcp", "timeout": 60, "command": [sys.executable, "-c", NOISY]}
    noisy = BuiltinToolset("noisy", given)
    main = agent("main", script(call("noisy_add", a=1, b=2), "done"), toolsets=["noisy"])
    with caplog.at_level(logging.WARNING):
        result = carry_out(
            Runtime(project_of([main], root=tmp_path, toolsets={"noisy": noisy}), approvals="approve_all")
        )
    assert result.status == "completed", result.error
    assert [(outcome, text) for _, outcome, text in results_of(result.messages)] == [("success", "3")]
    assert len([record for record in caplog.records if record.name.startswith("mcp")]) <= 1
