from __future__ import annotations

from hypothesis import given, strategies as st

from llm_do.policy.proposals import allows_call, proposed_rules
from llm_do.policy.values import ToolCallInfo

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


def test_an_unresolved_call_proposes_no_rule() -> None:
    assert (
        proposed_rules(ToolCallInfo("shell", {"command": "a; b"}, primary="command", resolved={"command": None})) == []
    )


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), TEXT, max_size=4))
def test_every_proposal_allows_its_own_call(args: dict[str, str]) -> None:
    call = ToolCallInfo("send", args)

    assert all(allows_call(rule, call) for rule in proposed_rules(call))
    assert len(proposed_rules(call)) >= 1
