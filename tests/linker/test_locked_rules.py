"""Rules in `llm-do.lock` are checked as those of the manifest are, with their lines in the lock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_do.linker.linker import check_project

AGENT = """\
---
name: main
model: test
tools: [send]
toolsets: [filesystem_project, shell_readonly]
---
Help.
"""
TOOLS = '''\
def send(to: str) -> str:
    """Send a text."""
    return to


TOOLS = [send]
'''


def found_in(root: Path, *approvals: dict[str, Any]) -> list[tuple[str, int, str]]:
    """What is wrong with the lock's approvals: code, line, severity."""
    (root / "main.agent").write_text(AGENT)
    (root / "tools.py").write_text(TOOLS)
    (root / "llm-do.lock").write_text(
        json.dumps({"approvals": list(approvals), "servers": {}, "version": 1}, indent=2) + "\n"
    )
    found = check_project(root).diagnostics
    assert all(item.place.file == "llm-do.lock" for item in found), found
    return [(item.code, item.place.line, item.severity) for item in found]


@pytest.mark.parametrize(
    ("entry", "code", "severity"),
    [
        ({"rule": "*"}, "LD603", "warning"),
        ({"agent": "main", "rule": "*"}, "LD603", "warning"),
        ({"rule": "shell"}, "LD603", "warning"),
        ({"agent": "main", "rule": "shell(*)"}, "LD603", "warning"),
        ({"rule": "files.write"}, "LD603", "warning"),
        ({"rule": "write_file(/etc/passwd)"}, "LD604", "warning"),
        ({"rule": "files.read(~/notes)"}, "LD604", "warning"),
        ({"rule": "net(me@example.org/*)"}, "LD604", "warning"),
        ({"rule": "sent(to=ann)"}, "LD604", "warning"),
        ({"agent": "mian", "rule": "send"}, "LD604", "warning"),
        ({"rule": "send(ann)"}, "LD605", "error"),
        ({"rule": "send(too=ann)"}, "LD606", "error"),
    ],
)
def test_a_rule_of_the_lock_is_checked_as_one_of_the_manifest(
    tmp_path: Path, entry: dict[str, Any], code: str, severity: str
) -> None:
    line = 4 + [*sorted(entry)].index("rule")
    entry = {key: entry[key] for key in sorted(entry)}
    assert found_in(tmp_path, entry) == [(code, line, severity)]


def test_narrow_rules_and_single_calls_are_no_findings(tmp_path: Path) -> None:
    rules = ("send", "send(to=ann)", "main:write_file(out/**)", "shell(git log *)")
    assert found_in(tmp_path, *({"rule": rule} for rule in rules)) == []


def test_a_rule_that_has_expired_is_only_said_to_have_expired(tmp_path: Path) -> None:
    assert found_in(tmp_path, {"rule": "*", "until": "2020-01-31"}) == [("LD653", 5, "warning")]
