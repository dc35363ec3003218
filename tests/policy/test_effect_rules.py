"""`files.read`, `files.write` and `net` are rules about effects, whichever tool has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do import tool
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.proofs import check_examples, is_overly_broad
from llm_do.policy.rules import Rule, build_policy
from llm_do.policy.values import ToolCallInfo
from llm_do.toolsets.shell.command_line import parse_command
from tests.runtime.approval.letters import RAN
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "open").mkdir()
    for path in ("secret/b.txt", "open/a.txt", "open/c.txt"):
        (tmp_path / path).write_text("x\n")
    (tmp_path / "alias").symlink_to("secret")
    RAN.clear()
    return tmp_path


@tool(paths=["source", "target"], reads=["source"], writes=["target"])
def convert(source: str, target: str) -> str:
    """Convert a file."""
    return "converted"


@tool(hosts=["url"], reads=["url"])
def fetch(url: str) -> str:
    """Fetch a page."""
    return "fetched"


@tool(writes=["subject"])
def publish(subject: str) -> str:
    """Publish something that is neither a file nor a host."""
    return "published"


def outcome(root: Path, rules: dict[str, Any], name: str, args: dict[str, Any], approvals: Any) -> str:
    policy, faults = build_policy(rules)
    assert faults == ()
    spec = agent(
        "main",
        script([call(name, args)], "fin"),
        tools=[convert, fetch, publish],
        toolsets=["filesystem_project", "shell_readonly"],
    )
    result = carry_out(runtime_of([spec], root=root, policy=policy, approvals=approvals))
    [(_, status, _)] = results_of(result.messages)
    return status


DENIED = [
    ("files.write(secret/**)", "write_file", {"path": "secret/n.txt", "content": ""}),
    ("files.write(secret/**)", "write_file", {"path": "open/../secret/n.txt", "content": ""}),
    ("files.write(secret/**)", "write_file", {"path": "alias/n.txt", "content": ""}),
    ("files.write(secret/**)", "move_file", {"source": "open/a.txt", "target": "secret/n.txt"}),
    ("files.write(secret/**)", "move_file", {"source": "secret/b.txt", "target": "open/b.txt"}),
    ("files.write(secret/**)", "delete_file", {"path": "secret/b.txt"}),
    ("files.write(secret/**)", "convert", {"source": "open/a.txt", "target": "secret/n.txt"}),
    ("files.write", "delete_file", {"path": "open/a.txt"}),
    ("main:files.write(open/*)", "delete_file", {"path": "open/a.txt"}),
    ("files.read(secret/**)", "read_file", {"path": "secret/b.txt"}),
    ("files.read(secret/**)", "search_files", {"pattern": "x"}),
    ("files.read(secret/**)", "convert", {"source": "secret/b.txt", "target": "open/n.txt"}),
    ("files.read(secret/**)", "shell", {"command": "cat secret/b.txt"}),
    ("files.read(secret/**)", "shell", {"command": "grep -rn x ."}),
    ("files.read(secret/**)", "shell", {"command": "cat b.txt", "cwd": "secret"}),
    ("files.read(secret/**)", "shell", {"command": "cat alias/b.txt"}),
    ("files.read(secret/**)", "shell", {"command": "cat open/../alias/b.txt"}),
    ("files.read(**/b.txt)", "shell", {"command": "grep -r x secret"}),
    ("files.read(**/b.txt)", "search_files", {"pattern": "x", "path": "secret"}),
    ("files.read(secret/**)", "shell", {"command": "grep -rn x"}),
    ("files.read(secret/**)", "shell", {"command": "git grep x"}),
    ("files.read(secret/**)", "shell", {"command": "git show HEAD:secret/b.txt"}),
    ("files.read(secret/**)", "shell", {"command": "git log -p -- secret"}),
    ("net(*.evil.org)", "fetch", {"url": "https://x.evil.org/"}),
    ("net", "fetch", {"url": "https://example.org/"}),
]
LEFT = [
    ("files.read(**/*.key)", "read_file", {"path": "open/a.txt"}),
    ("files.read(**/*.key)", "shell", {"command": "cat open/a.txt"}),
    ("files.write(**/*.key)", "delete_file", {"path": "open/a.txt"}),
    ("files.read(secret/**)", "shell", {"command": "grep -n x open/a.txt"}),
    ("net", "shell", {"command": "cat open/a.txt"}),
    ("net(*)", "shell", {"command": "head -n 1 open/a.txt"}),
    ("files.write(secret/**)", "write_file", {"path": "open/n.txt", "content": ""}),
    ("files.write(secret/**)", "read_file", {"path": "secret/b.txt"}),
    ("files.write(secret/**)", "convert", {"source": "secret/b.txt", "target": "open/n.txt"}),
    ("files.write(secret/**)", "shell", {"command": "cat secret/b.txt"}),
    ("files.read(secret/**)", "shell", {"command": "cat open/a.txt"}),
    ("files.read(secret/**)", "write_file", {"path": "secret/n.txt", "content": ""}),
    ("other:files.write(open/*)", "delete_file", {"path": "open/a.txt"}),
    ("net(*.evil.org)", "fetch", {"url": "https://example.org/"}),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("rule", "name", "args"), DENIED)
def test_a_denied_effect_is_denied_whatever_tool_has_it(root: Path, rule: str, name: str, args: dict[str, Any]) -> None:
    assert outcome(root, {"deny": [rule]}, name, args, "approve_all") == "denied"
    assert outcome(root, {"ask": [rule]}, name, args, "reject_all") == "denied"


@pytest.mark.sample(5)
@pytest.mark.parametrize(("rule", "name", "args"), LEFT)
def test_other_effects_are_left_alone(root: Path, rule: str, name: str, args: dict[str, Any]) -> None:
    assert outcome(root, {"deny": [rule]}, name, args, "approve_all") == "success"


@pytest.mark.parametrize(
    ("rule", "name", "args", "expected"),
    [
        ("files.write(open/**)", "write_file", {"path": "open/n.txt", "content": ""}, "success"),
        ("files.write(open/**)", "move_file", {"source": "open/a.txt", "target": "open/n.txt"}, "success"),
        ("files.write(open/**)", "move_file", {"source": "open/a.txt", "target": "secret/n.txt"}, "denied"),
        ("files.write(open/**)", "write_file", {"path": "secret/n.txt", "content": ""}, "denied"),
        ("files.write(open/**)", "convert", {"source": "secret/b.txt", "target": "open/n.txt"}, "denied"),
        ("files.write", "publish", {"subject": "open/a.txt"}, "denied"),
        ("net(example.org)", "fetch", {"url": "https://example.org/x"}, "success"),
        ("net(example.org)", "fetch", {"url": "https://example.com/x"}, "denied"),
    ],
)
def test_an_allowed_effect_allows_calls_that_have_no_other(
    root: Path, rule: str, name: str, args: dict[str, Any], expected: str
) -> None:
    assert outcome(root, {"allow": [rule]}, name, args, "reject_all") == expected


@pytest.mark.parametrize(
    ("rule", "line", "expected"),
    [
        ("files.read(secret/**)", "sh -c 'cat secret/b.txt'", True),
        ("files.read(secret/**)", "bash -lc 'cd open; head secret/b.txt'", True),
        ("files.read(secret/**)", "env -S'cat secret/b.txt'", True),
        ("files.read(secret/**)", "find open -exec cat secret/b.txt ;", True),
        ("files.read(secret/**)", "git commit -m 'see secret/b.txt'", False),
        ("files.write(secret/**)", "python -c 'open(\"secret/b.txt\")'", True),
        ("net(evil.org)", "sh -c 'curl -s https://evil.org/x'", True),
        ("net(evil.org)", "curl -s https://example.org/x", False),
        ("net(evil.org)", "curl -s https://evil.org/x", True),
        ("net", "curl -s https://example.org/x", True),
        ("net", "pytest tests/test_a.py", False),
    ],
)
def test_what_a_command_names_counts_in_its_scripts_too(rule: str, line: str, expected: bool) -> None:
    named = ToolCallInfo("shell", {}, primary="command", resolved={"command": parse_command(line)})
    assert matches(parse_pattern(rule), named, restrictive=True) is expected


def test_examples_of_such_rules_are_paths_and_hosts() -> None:
    rules = [
        Rule("allow", parse_pattern("files.write(out/**)"), "", allows=("out/a",), refuses=("in/a", "../a")),
        Rule("deny", parse_pattern("net(*.evil.org)"), "", refuses=("https://x.evil.org",), allows=("example.org",)),
    ]
    assert [check_examples(rule, []) for rule in rules] == [(), ()]
    wrong = Rule("deny", parse_pattern("files.read(secret/**)"), "", refuses=("open/a",))
    assert len(check_examples(wrong, [])) == 1


@each_row("text", ["files.write", "files.write(**)", "net(*)", "net"])
def test_a_rule_that_allows_every_effect_is_broad(text: str) -> None:
    assert is_overly_broad(Rule("allow", parse_pattern(text), text), [])


def test_an_effect_has_no_named_arguments() -> None:
    with pytest.raises(PatternError, match="no arguments with names"):
        parse_pattern("files.write(path=x)")
