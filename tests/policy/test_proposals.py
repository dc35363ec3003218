from __future__ import annotations

import shlex
from typing import Any

from hypothesis import given, strategies as st

from llm_do.policy.arguments import split_command
from llm_do.policy.decision import deny_without_approver
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.proposals import allows_call, narrowest_rule, proposed_rules, wider_rule
from llm_do.policy.values import CommandLine, Decision, ToolCallInfo
from llm_do.text.sanitizer import sanitize
from tests.support.tables import each_row

TEXT = st.text(max_size=20)


def test_a_file_call_proposes_rules_for_its_folder_and_its_tool() -> None:
    call = ToolCallInfo(
        "write_file", {"path": "out/a b.md"}, primary="path", path="main/b", agent="b", resolved={"path": "out/a b.md"}
    )

    assert proposed_rules(call) == [
        "main/b:write_file('out/a b.md')",
        "main/b:write_file(out/**)",
        "main/b:write_file",
    ]


def test_a_command_proposes_its_subcommand_and_never_arbitrary_arguments() -> None:
    def rules(*argv: str) -> list[str]:
        return proposed_rules(ToolCallInfo("shell", {}, primary="command", resolved={"command": (argv,)}))

    assert rules("git", "log", "-3") == ["main:shell(git log -3)", "main:shell(git log *)"]
    assert rules("python", "x.py") == ["main:shell(python x.py)"]
    assert rules("rm", "-rf", "x") == ["main:shell(rm -rf x)"]


def test_a_launched_program_is_proposed_by_name_and_a_runner_never_with_anything() -> None:
    def rules(line: str) -> list[str]:
        resolved = {"command": split_command(line)}
        return proposed_rules(ToolCallInfo("shell", {}, primary="command", resolved=resolved))

    assert rules("uv run pytest -x")[1:] == ["main:shell(uv run pytest *)"]
    assert rules("python -m pytest -x tests")[1:] == ["main:shell(python -m pytest *)"]
    assert rules("npx eslint src")[1:] == ["main:shell(npx eslint *)"]
    assert rules("git stash list -3")[1:] == ["main:shell(git stash list *)"]
    assert rules("kubectl exec web -- ls -l")[1:] == ["main:shell(kubectl exec web -- ls *)"]
    for line in (
        "uv run x.py",
        "poetry run ./x",
        "go run ./cmd/x",
        "npm exec x",
        "kubectl exec web",
        "uv run rm -rf x",
    ):
        assert not [rule for rule in rules(line) if rule.endswith(("run *)", "exec *)"))]
    assert rules("pytest --basetemp=src") == ["main:shell(pytest --basetemp=src)"]


def test_a_line_of_several_commands_is_proposed_as_it_is_joined() -> None:
    for line in ("git add x && git commit -m 'a; b'", "make test || make clean; ls", "ls | wc -l && ls"):
        call = ToolCallInfo("shell", {}, primary="command", resolved={"command": split_command(line)})
        rule = proposed_rules(call)[0]
        assert allows_call(rule, call)
        for operator in ("&&", "||", "|"):
            other = split_command(line.replace("&&", operator).replace("||", operator))
            assert other is not None
            same = CommandLine.joins_of(other) == CommandLine.joins_of(split_command(line) or ())
            info = ToolCallInfo("shell", {}, primary="command", resolved={"command": other})
            assert allows_call(rule, info) is same


def test_an_unresolved_call_proposes_no_rule() -> None:
    assert (
        proposed_rules(ToolCallInfo("shell", {"command": "a; b"}, primary="command", resolved={"command": None})) == []
    )


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), TEXT, max_size=4))
def test_every_proposal_allows_its_own_call(args: dict[str, str]) -> None:
    call = ToolCallInfo("send", args)

    assert all(allows_call(rule, call) for rule in proposed_rules(call))
    assert len(proposed_rules(call)) >= 1


ODD = ["a\nb", "tab\there", "\x1b[31mred", "zero\u200bwidth", "C:\\new", "\\n", "it's\r\n'quoted'", "*?[x]", "x" * 600]


@each_row("text", ODD)
@each_row("primary", ["text", None, ("text", "other")])
def test_a_proposal_is_shown_as_it_matches(text: str, primary: Any) -> None:
    call = ToolCallInfo("send", {"text": text, "other": "y"}, primary=primary)
    rules = [rule for rule in (narrowest_rule(call), wider_rule(call), *proposed_rules(call)) if rule is not None]

    assert rules
    for rule in rules:
        assert sanitize(rule) == rule
        assert matches(parse_pattern(rule), call)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_narrowest_rule_of_any_texts_matches_and_can_be_copied(one: str, other: str) -> None:
    call = ToolCallInfo("send", {"one": one, "other": other})
    rule = narrowest_rule(call)

    assert rule is not None
    [shown] = shlex.split(sanitize(shlex.quote(rule)))
    assert matches(parse_pattern(shown), call)


def test_a_command_with_a_line_break_in_a_word_gets_a_rule_that_matches() -> None:
    resolved = {"command": (("git", "commit", "-m", "one\ntwo"),)}
    call = ToolCallInfo("shell", {"command": "..."}, primary="command", resolved=resolved)
    rule = narrowest_rule(call)

    assert rule is None or (sanitize(rule) == rule and matches(parse_pattern(rule), call))


def test_a_broad_rule_is_never_proposed_for_a_denied_call() -> None:
    resolved = {"command": (("python3", "-c", "print(1)\n"),)}
    call = ToolCallInfo("shell", {"command": "..."}, primary="command", resolved=resolved)
    denied = deny_without_approver(Decision("ask"), call)

    assert "--allow shell " not in denied.reason
    assert "'shell'" not in denied.reason
