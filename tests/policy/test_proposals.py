from __future__ import annotations

from hypothesis import given, strategies as st

from llm_do.policy.arguments import split_command
from llm_do.policy.proposals import allows_call, proposed_rules
from llm_do.policy.values import CommandLine, ToolCallInfo

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
