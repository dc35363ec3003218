"""What an allowed command prints may go through filters; anything else in a pipe needs a rule of its own."""

from __future__ import annotations

import shlex

import pytest

from llm_do.policy.decision import decide
from llm_do.policy.rules import build_policy
from llm_do.policy.values import CommandLine, Join, ToolCallInfo


def effect(line: list[str], joins: list[Join], **rules: list[str]) -> str:
    commands = CommandLine((tuple(shlex.split(each)) for each in line), joins)
    call = ToolCallInfo("shell", {"command": "..."}, primary="command", resolved={"command": commands})
    return decide(call, build_policy(rules)[0]).effect


@pytest.mark.parametrize(
    "behind",
    [
        ["tail -20"],
        ["tail -n +5"],
        ["head -c 200"],
        ["grep -iE 'error|warning'"],
        ["grep -c ."],
        ["grep -v x", "sort -u", "uniq -c", "sort -rn", "head -5"],
        ["wc -l"],
        ["cut -d: -f1,3"],
        ["sed -n 1,5p"],
        ["sed s/a/b/g"],
        ["tr a-z A-Z"],
        ["jq -r '.items[].name'"],
        ["cat"],
        ["column -t"],
    ],
)
def test_a_filter_behind_an_allowed_command_needs_no_rule(behind: list[str]) -> None:
    joins: list[Join] = ["|"] * len(behind)
    assert effect(["pytest -q", *behind], joins, allow=["shell(pytest *)"]) == "allow"
    assert effect(["make", *behind], joins, allow=["shell(pytest *)"]) == "ask"
    assert effect(["pytest -q", *behind], joins, allow=["shell(pytest *)"], ask=[f"shell({behind[0]})"]) == "ask"
    name = behind[0].split()[0]
    assert effect(["pytest -q", *behind], joins, allow=["shell(pytest *)"], deny=[f"shell({name} *)"]) == "deny"


@pytest.mark.parametrize(
    ("behind", "join"),
    [
        ("tail -20", "&&"),
        ("tail -20", ";"),
        ("cat", "||"),
        ("tail -20 .env", "|"),
        ("tail -f", "|"),
        ("head -", "|"),
        ("grep -r key", "|"),
        ("grep -inR key", "|"),
        ("grep --dereference-recursive key", "|"),
        ("grep --recursive key", "|"),
        ("grep -d recurse key", "|"),
        ("grep -f notes.txt", "|"),
        ("rg key", "|"),
        ("sort -o out.txt", "|"),
        ("sort -T /tmp", "|"),
        ("sort --compress-program=sh", "|"),
        ("wc --files0-from=list", "|"),
        ("uniq - out.txt", "|"),
        ("sed -i s/a/b/", "|"),
        ("sed 's/a/b/e'", "|"),
        ("sed 'w out.txt'", "|"),
        ("sed 'r /etc/passwd'", "|"),
        ("jq -f filter.jq", "|"),
        ("jq -n env", "|"),
        ("jq -n '$ENV.HOME'", "|"),
        ("jq --rawfile a .env .", "|"),
        ("./tail -20", "|"),
        ("tee out.txt", "|"),
        ("xargs rm", "|"),
        ("sh", "|"),
        ("ls", "|"),
    ],
)
def test_whatever_does_more_needs_a_rule(behind: str, join: Join) -> None:
    assert effect(["pytest -q", behind], [join], allow=["shell(pytest *)"]) == "ask"
