from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.runtime.approval import saved_approvals
from tests.cli.cli_processes import Ended, run, run_many

MANIFEST = """
{
  "version": 1,
  "entry": {"agent": "main"},
  "agent_files": ["main.agent"],
  "python_files": ["tools.py"],
  "model": "script:answers.yaml",
  "approvals": {
    "deny": ["send(to=eve)"],
    "allow": [{"rule": "send(to=ann)", "why": "she asked for it"}]
  }
}
"""


@pytest.fixture
def ended(project: Callable[..., Path]) -> Callable[..., dict[str, Ended]]:
    root = project(manifest=MANIFEST)

    def all_of(**calls: str) -> dict[str, Ended]:
        words = {name: (line.split(" ") if isinstance(line, str) else line, root, b"") for name, line in calls.items()}
        return run_many(words)

    all_of.root = root  # type: ignore[attr-defined]
    return all_of


def test_explain_takes_the_words_behind_the_tool_for_the_calls_own(ended: Callable[..., dict[str, Ended]]) -> None:
    said = ended(
        number="approvals explain send -3 -p --to=ann",
        dashes="approvals explain --format json send -- --allow x",
        before="approvals explain --frmat json send x",
        value="approvals explain send x --allow",
    )

    assert said["number"].out.startswith("main calls send\n  to: -3 -p --to=ann\n")
    assert said["dashes"].json["args"] == {"to": "--allow x"}
    assert (said["before"].code, said["value"].code) == (2, 2)
    assert "No such option: --frmat" in said["before"].err
    assert "Option '--allow' requires an argument" in said["value"].err


def test_explain_says_where_the_project_is_named_when_it_is_not(tmp_path: Path) -> None:
    said = run("approvals", "explain", "send", "to=ann", "-p", "elsewhere", cwd=tmp_path)

    assert said.code == 2
    assert "After the tool, -p belongs to the call. Write --project, or -p before the tool." in said.err


def test_explain_names_an_argument_that_is_mistyped(ended: Callable[..., dict[str, Ended]]) -> None:
    said = ended(
        near="approvals explain send too=ann",
        other="approvals explain send to=ann why=so",
        word="approvals explain send to=ann now",
        text="approvals explain send HOME=/x now",
    )

    assert said["near"].err == "error: the tool has no argument 'too'. Did you mean `to`?\n"
    assert said["other"].err == "error: the tool has no argument 'why'. It takes to, text.\n"
    assert said["word"].err == "error: 'now' is not NAME=VALUE, as the words before it are. Quote a value's spaces.\n"
    assert "to: HOME=/x now" in said["text"].out


def test_explain_says_the_verdict_the_rule_and_where_it_stands(ended: Callable[..., dict[str, Ended]]) -> None:
    said = ended(
        ann="approvals explain send to=ann",
        eve='approvals explain main send {"to":"eve"}',
        bob="approvals explain send bob",
        option="approvals explain send to=bob --allow send(to=b*)",
        data="approvals explain send to=ann --format json",
    )

    assert [each.code for each in said.values()] == [0] * 5
    assert said["ann"].out == (
        "main calls send\n"
        "  to: ann\n"
        "allow: send is allowed by the rule send(to=ann) (project.json:10): she asked for it\n"
        "  rule: send(to=ann)\n"
        "  place: project.json:10\n"
    )
    assert "deny: send is denied by the rule send(to=eve) (project.json:9)" in said["eve"].out
    assert said["bob"].out.endswith("a person is asked; where there is none it is denied\n")
    assert "allow: send is allowed by --allow send(to=b*)" in said["option"].out
    assert (said["data"].json["effect"], said["data"].json["place"]) == ("allow", "project.json:10")


def test_explain_proposes_the_nearest_tool(ended: Callable[..., dict[str, Ended]]) -> None:
    said = ended(near="approvals explain sned", other="approvals explain main nothing", no="approvals explain")

    assert [each.code for each in said.values()] == [2, 2, 2]
    assert said["near"].err == "error: no agent of the project has a tool 'sned'. Did you mean `send`?\n"


def test_what_was_allowed_for_good_is_listed_explained_checked_and_taken_back(
    ended: Callable[..., dict[str, Ended]],
) -> None:
    root = ended.root  # type: ignore[attr-defined]
    saved_approvals.add_rule(root, "main:send(to=bob)")
    saved_approvals.add_rule(root, "shout")

    said = ended(
        listed="approvals list",
        data="approvals list --format json",
        explained="approvals explain send to=bob",
        checked="check",
        wrong="approvals revoke 3",
        revoked="approvals revoke 1",
        left="approvals list",
        all="approvals revoke --all",
        empty="approvals list",
    )

    assert said["listed"].out.splitlines() == [
        "1 main:send(to=bob)  (.llm-do/approvals.json:4)",
        "2 shout  (.llm-do/approvals.json:5)",
    ]
    assert [item["allows"] for item in said["data"].json["answers"]] == ["main:send(to=bob)", "shout"]
    assert "allow: send is allowed by the rule main:send(to=bob) (.llm-do/approvals.json:4)" in said["explained"].out
    assert "permanently approved: main:send(to=bob) (.llm-do/approvals.json:4)\n" in said["checked"].err
    assert said["wrong"].code == 2
    assert said["revoked"].err == "revoked: main:send(to=bob)\n"
    assert said["left"].out == "1 shout  (.llm-do/approvals.json:4)\n"
    assert said["empty"].err == "there are no permanent approvals\n"


def test_check_tells_of_answers_that_can_not_be_read(ended: Callable[..., dict[str, Ended]]) -> None:
    root = ended.root  # type: ignore[attr-defined]
    (root / ".llm-do").mkdir()
    (root / saved_approvals.FILE).write_text('{"version": 1, "allow": [\n  "send("\n]}')

    said = ended(text="check", data="check --format json")

    assert said["text"].code == 3
    assert said["text"].out.startswith(".llm-do/approvals.json:2:1: error[LD601]: the rule send( can't be read")
    assert [item["line"] for item in json.loads(said["data"].out)["diagnostics"]] == [2]
