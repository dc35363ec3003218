from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.runtime.approval import saved_approvals
from tests.cli.cli_processes import Ended, run, run_forked, run_many, write_project

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
def run_lines(project: Callable[..., Path]) -> Callable[..., dict[str, Ended]]:
    root = project(manifest=MANIFEST)

    def run_all(**calls: str) -> dict[str, Ended]:
        words = {name: (line.split(" ") if isinstance(line, str) else line, root, b"") for name, line in calls.items()}
        return run_many(words)

    run_all.root = root  # type: ignore[attr-defined]
    return run_all


def test_explain_passes_words_after_the_tool_to_the_call(run_lines: Callable[..., dict[str, Ended]]) -> None:
    ended = run_lines(
        number="approvals explain send -3 -p --to=ann",
        dashes="approvals explain --format json send -- --allow x",
        before="approvals explain --frmat json send x",
        value="approvals explain send x --allow",
    )

    assert ended["number"].out.startswith("main calls send\n  to: -3 -p --to=ann\n")
    assert ended["dashes"].json["args"] == {"to": "--allow x"}
    assert (ended["before"].code, ended["value"].code) == (2, 2)
    assert "there is no option --frmat. Did you mean `--format`?" in ended["before"].err
    assert "Option '--allow' requires an argument" in ended["value"].err


def test_a_question_is_shown_as_json_and_answered_where_its_run_is(tmp_path: Path) -> None:
    write_project(tmp_path / "desk", "- tools: [{name: send, args: {to: Ada}}]\n- text: done")
    at = ("-p", "desk", "--store", "runs.db")
    began = run_forked("run", "go", *at, "--durable", "--run-id", "r", cwd=tmp_path)
    assert began.code == 5, began.err
    assert "`llm-do resume -p desk --store runs.db r` continues it" in began.err.replace("\n", " ")

    open_question = run_forked("approvals", "show", *at, "r.1", "--format", "json", cwd=tmp_path).json
    assert (open_question["id"], open_question["kind"]) == ("r.1", "approval")
    (listed,) = run_forked("approvals", "pending", *at, "--format", "json", cwd=tmp_path).json
    assert open_question == {**listed, "answered": None}
    twice = run_forked("approvals", "answer", "desk", "r.1", "allow", "-p", "desk", cwd=tmp_path)
    assert twice.code == 2, twice

    answered = run_forked("approvals", "answer", *at, "r.1", "deny", "--note", "later", cwd=tmp_path)
    assert answered.out.endswith("continue the run with: llm-do resume -p desk --store runs.db r\n")
    shown = run_forked("approvals", "show", *at, "r.1", "--json", cwd=tmp_path).json["answered"]
    assert (shown["answer"], shown["note"]) == ("deny", "later")
    assert run_forked("resume", *at, "r", cwd=tmp_path).out == "done\n"


def test_explain_points_out_a_project_option_after_the_tool(tmp_path: Path) -> None:
    ended = run("approvals", "explain", "send", "to=ann", "-p", "elsewhere", cwd=tmp_path)

    assert ended.code == 2
    assert "After the tool, -p belongs to the call. Write --project, or -p before the tool." in ended.err


@pytest.mark.slow
def test_explain_suggests_the_right_name_of_a_mistyped_argument(run_lines: Callable[..., dict[str, Ended]]) -> None:
    ended = run_lines(
        near="approvals explain send too=ann",
        other="approvals explain send to=ann why=so",
        word="approvals explain send to=ann now",
        text="approvals explain send HOME=/x now",
    )

    assert ended["near"].err == "error: the tool has no argument 'too'. Did you mean `to`?\n"
    assert ended["other"].err == "error: the tool has no argument 'why'. It takes to, text.\n"
    assert ended["word"].err == "error: 'now' is not NAME=VALUE, as the words before it are. Quote a value's spaces.\n"
    assert "to: HOME=/x now" in ended["text"].out


@pytest.mark.slow
def test_explain_shows_the_decision_the_rule_and_its_location(run_lines: Callable[..., dict[str, Ended]]) -> None:
    ended = run_lines(
        ann="approvals explain send to=ann",
        eve='approvals explain main send {"to":"eve"}',
        bob="approvals explain send bob",
        option="approvals explain send to=bob --allow send(to=b*)",
        data="approvals explain send to=ann --format json",
        wrong='approvals explain send {"to":["ann"]}',
        part="approvals explain send text=hello",
    )

    assert [each.code for each in ended.values()] == [0] * 7
    refused = "warning: the arguments don't fit the tool's schema, so a run may refuse the call before it decides: to: "
    assert f"{refused}['ann'] is not of type 'string'\n" in ended["wrong"].out
    assert "warning" not in ended["part"].out  # an argument that is left out may be any
    assert ended["ann"].out == (
        "main calls send\n"
        "  to: ann\n"
        "allow: send is allowed by the rule send(to=ann) (project.json:10): she asked for it\n"
        "  rule: send(to=ann)\n"
        "  place: project.json:10\n"
    )
    assert "deny: send is denied by the rule send(to=eve) (project.json:9)" in ended["eve"].out
    assert ended["bob"].out.endswith("a person is asked; without one, the call is denied\n")
    assert "allow: send is allowed by --allow send(to=b*)" in ended["option"].out
    assert (ended["data"].json["effect"], ended["data"].json["place"]) == ("allow", "project.json:10")


def test_explain_suggests_the_closest_tool(run_lines: Callable[..., dict[str, Ended]]) -> None:
    ended = run_lines(near="approvals explain sned", other="approvals explain main nothing", no="approvals explain")

    assert [each.code for each in ended.values()] == [2, 2, 2]
    assert ended["near"].err == "error: no agent of the project has a tool 'sned'. Did you mean `send`?\n"


def test_explain_says_which_toolsets_are_only_known_in_a_run(project: Callable[..., Path]) -> None:
    factory = (
        "from pydantic_ai import FunctionToolset\ndef shelf(ctx):\n    return FunctionToolset()\nTOOLSETS = [shelf]\n"
    )
    root = project(agent="---\nname: main\ntoolsets: [shelf]\n---\nx", **{"tools.py": factory})
    ended = run_forked("approvals", "explain", ".", "find", cwd=root)

    assert ended.code == 2
    assert "has a tool 'find' that is known before a run; the tools of shelf aren't. `llm-do tools`" in ended.err


def test_permanent_approvals_are_listed_explained_checked_and_revoked(
    run_lines: Callable[..., dict[str, Ended]],
) -> None:
    root = run_lines.root  # type: ignore[attr-defined]
    saved_approvals.add_rule(root, "main:send(to=bob)")
    saved_approvals.add_rule(root, "shout")
    file = saved_approvals.answers_file(root).path

    ended = run_lines(
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

    assert ended["listed"].out.splitlines() == [
        f"1 main:send(to=bob)  ({file}:5)",
        f"2 shout  ({file}:6)",
    ]
    assert [item["allows"] for item in ended["data"].json["answers"]] == ["main:send(to=bob)", "shout"]
    assert f"allow: send is allowed by the rule main:send(to=bob) ({file}:5)" in ended["explained"].out
    assert f"permanently approved: main:send(to=bob) ({file}:5)\n" in ended["checked"].err
    assert ended["wrong"].code == 2
    assert ended["revoked"].err == "revoked: main:send(to=bob)\n"
    assert ended["left"].out == f"1 shout  ({file}:5)\n"
    assert ended["empty"].err == "there are no permanent approvals\n"


def test_check_reports_saved_approvals_that_cannot_be_parsed(run_lines: Callable[..., dict[str, Ended]]) -> None:
    root = run_lines.root  # type: ignore[attr-defined]
    saved_approvals.start(root, ["send("])
    file = saved_approvals.answers_file(root).path

    ended = run_lines(text="check", data="check --format json")

    assert ended["text"].code == 3
    assert ended["text"].out.startswith(f"{file}:5:1: error[LD601]: the rule send( can't be read")
    assert [item["line"] for item in json.loads(ended["data"].out)["diagnostics"]] == [5]


def test_approvals_that_came_with_the_folder_are_shown_but_not_used(run_lines: Callable[..., dict[str, Ended]]) -> None:
    root = run_lines.root  # type: ignore[attr-defined]
    (root / ".llm-do").mkdir()
    (root / ".llm-do" / "approvals.json").write_text('{"version": 1, "allow": [\n"send",\n"send("]}')

    ended = run_lines(
        listed="approvals list",
        data="approvals list --json",
        explained="approvals explain send to=bob",
        checked="check",
        doctor="doctor",
        ran="run hi",
        trusted="trust .",
        again="approvals list",
    )

    shown = "not used, since it came with the folder: send"
    assert ended["listed"].err.splitlines() == [
        "there are no permanent approvals",
        f"{shown}  (.llm-do/approvals.json:2)",
        "warning: .llm-do/approvals.json:3: the rule send( can't be read: the parenthesis is not closed; it"
        " allows nothing",
    ]
    assert [item["allows"] for item in ended["data"].json["unused"]] == ["send"]
    assert "a person is asked" in ended["explained"].out
    assert f"{shown} (.llm-do/approvals.json:2)" in ended["checked"].err
    assert ended["checked"].code == 0
    assert "1 in .llm-do/approvals.json aren't used" in ended["doctor"].out
    assert "note: 1 permanent approval in .llm-do/approvals.json came with the folder" in ended["ran"].err
    assert "note: 1 permanent approval moved from .llm-do/approvals.json to your own" in ended["trusted"].err
    assert ended["again"].out.startswith("1 send  (")
