"""What the `*` of a rule doesn't cover: words that write a file, read one elsewhere, or run a program."""

from __future__ import annotations

from pathlib import Path

from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo
from llm_do.toolsets.shell.command_line import parse_command
from tests.support.tables import each_row

LINES = (Path(__file__).parent / "uncovered_words.txt").read_text(encoding="utf-8").splitlines()
ROWS = [tuple(part.strip() for part in line.split(" || ", 1)) for line in LINES if not line.startswith("#")]


@each_row("rule, command", ROWS)
def test_a_star_does_not_cover_it(rule: str, command: str) -> None:
    call = ToolCallInfo("shell", {}, primary="command", resolved={"command": parse_command(command)})
    assert not matches(parse_pattern(f"shell({rule})"), call)
