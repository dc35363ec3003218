"""The other shell toolsets (file operations, a manifest's patterns, 0.3's rules) and the project's own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do import Project, Runtime
from llm_do.errors import UsageError
from llm_do.policy.rules import build_policy
from llm_do.toolsets.shell import ShellToolset, shell_file_ops, shell_readonly
from llm_do.toolsets.shell.sandbox import memory
from tests.support.runs import Answers, agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.toolsets.shell.support import configured, context, decision, run, traits


def summary(toolset: FunctionToolset[Any], command: str) -> str:
    found = decision(toolset, command)
    return "person" if found.person_only else found.effect


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls -la", "allow"),
        ("ls src | ls", "allow"),
        ("ls ..", "ask"),
        ("mv notes.txt src", "ask"),
        ("mv -n -v notes.txt src/x.txt", "ask"),
        ("mv notes.txt ../out.txt", "ask"),
        ("mv notes.txt leakdir/x", "ask"),
        ("mv ../secret.txt .", "ask"),
        ("mv notes.txt project.json", "person"),
        ("mv notes.txt main.agent", "person"),
        ("mv tools.py old.py", "person"),
        ("mv src/tools.py .", "person"),
        ("mv notes.txt .git/hooks/pre-commit", "deny"),
        ("mv notes.txt .git", "deny"),
        ("mv notes.txt .llm-do/approvals.json", "deny"),
        ("mv .env notes.txt", "deny"),
        ("mv src/main.py notes.txt", "person"),
        ("mv notes.txt tools.py", "person"),
        ("mv notes.txt src/main.py tools.py", "person"),
        ("mv -t src notes.txt", "deny"),
        ("mv --target-directory=.git notes.txt", "deny"),
        ("mv --suffix=x -b a b", "deny"),
        ("cat notes.txt", "deny"),
        ("ls | cat", "deny"),
        ("rm notes.txt", "deny"),
        ("mv a b; rm c", "deny"),
    ],
)
def test_file_operations_list_freely_and_move_after_approval(project: Path, command: str, expected: str) -> None:
    assert summary(shell_file_ops(context(project)), command) == expected


def test_moving_moves(project: Path) -> None:
    run(shell_file_ops(context(project)), "mv notes.txt src/notes.txt")
    assert (project / "src" / "notes.txt").exists()


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git status", "allow"),
        ("git log -3 --oneline", "allow"),
        ("git log -3 | head -n 2", "allow"),
        ("git log -3 | tail notes.txt", "ask"),
        ("git log -3 2>&1 | grep -v 'a b' | sort -u | tail -n 2", "allow"),
        ("git log -3 && tail", "ask"),
        ("git log -3 | grep -r x", "ask"),
        ("git status x", "ask"),
        ("git log --output=x", "ask"),
        ("git -C / log", "ask"),
        ("./git status", "ask"),
        ("env git status", "ask"),
        ("head -n 2 ../secret.txt", "ask"),
        ("head -n 2 leak", "ask"),
        ("head -n 2 leakdir/secret.txt", "ask"),
        ("pytest", "ask"),
        ("rm notes.txt", "ask"),
        ("rm main.agent", "person"),
        ("rm -- -x.agent", "person"),
        ("cp notes.txt project.json", "person"),
        ("cp src/main.py notes.txt", "ask"),
        ("dd if=notes.txt of=tools.py", "person"),
        ("dd if=notes.txt of=.git/config", "deny"),
        ("dd if=notes.txt of=other.txt", "ask"),
        ("cp notes.txt tools.py", "person"),
        ("ln -s src/main.py leak", "ask"),
        ("cp notes.txt .git/config", "deny"),
        ("tee .llm-do/x", "deny"),
        ("git status; rm x", "ask"),
        ("git status && git log -3 2>&1 | head -n 2", "allow"),
        ("git status || git log --output=x", "ask"),
        ("cd src && git log -3", "allow"),
        ("cd src && git log -3 && cd ..", "deny"),
        ("git status & git log", "deny"),
        ("git log > x", "deny"),
    ],
)
def test_listed_patterns_are_allowed_and_everything_else_needs_approval(
    project: Path, command: str, expected: str
) -> None:
    toolset = configured(project, "git", type="shell", allow=["git status", "git log *", "head -n *"])
    assert summary(toolset, command) == expected


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cp notes.txt other.txt", "allow"),
        ("cp notes.txt src/main.py", "person"),
        ("cp notes.txt src", "allow"),
        ("rm notes.txt", "allow"),
        ("cp notes.txt project.json", "person"),
        ("cp notes.txt tools.py", "person"),
        ("rm tools.py", "person"),
        ("rm -r .", "person"),
        ("sed -n 's/.env/.git/p' notes.txt", "allow"),
        ("sed -i s/x/y/ tools.py", "person"),
        ("sed -i -es/x/y/ tools.py", "person"),
        ("sed -i -e s/x/y/ tools.py", "person"),
        ("sed --expression=s/x/y/ -i tools.py", "person"),
        ("sed -n 1,5p tools.py", "allow"),
        ("sed -n 1,5p project.json", "allow"),
        ("sed -n p .env", "deny"),
        ("sed -n 'w tools.py' notes.txt", "person"),
        ("sed 's/x/y/gw tools.py' notes.txt", "person"),
        ("sed '1{p;w main.agent' notes.txt", "person"),
        ("sed --expression='w main.agent' notes.txt", "person"),
        ("sed 's/word/.x/;w other.txt' notes.txt", "ask"),
        ("sed -i.agent s/x/y/ notes", "person"),
        ("sed '--in-place=../.git/*' s/x/y/ src/config", "deny"),
        ("cp notes.txt .git/config", "deny"),
        ("rm .env", "deny"),
        ("cp notes.txt ../other.txt", "ask"),
    ],
)
def test_no_pattern_or_legacy_rule_allows_what_only_a_person_may(project: Path, command: str, expected: str) -> None:
    new = configured(
        project,
        "sh",
        allow=[
            "cp *",
            "rm *",
            "sed **",
            "sed -i* **",
            "sed -i -e **",
            "sed * -i **",
            "sed --in-place=../.git/* **",
        ],
    )
    old = ShellToolset({"rules": [{"pattern": "cp", "approval_required": False}], "base_path": project})
    assert summary(new, command) == expected
    if command.startswith("cp"):
        assert summary(old, command) == expected


def test_a_configured_directory_is_where_commands_run(project: Path) -> None:
    toolset = configured(project, "sh", allow=["ls *", "ls", "cat *"], cwd="src")
    assert run(toolset, "ls")["stdout"] == "main.py\n"
    assert summary(toolset, "cat ../notes.txt") == "ask"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"allow": "git"}, "`allow` should be a valid list"),
        ({"allow": ["git 'log"]}, "can't read"),
        ({"env": ["GITHUB_TOKEN"]}, "looks like a secret"),
        ({"cwd": 3}, "`cwd` should be a valid string"),
        ({"cwd": "../elsewhere"}, "outside the project's folder"),
        ({"cwd": "leakdir"}, "outside the project's folder"),
        ({"shell": True}, "`shell` is not an option"),
    ],
)
def test_an_invalid_shell_option_is_an_error(project: Path, options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        configured(project, "sh", **options)


RULES: Any = {
    "rules": [
        {"pattern": "git log", "approval_required": False, "approval_required_if_args": ["--all"]},
        {"pattern": "git"},
        {"pattern": "ls", "approval_required": False},
        {"pattern": "env", "approval_required": False},
        {"pattern": "find", "approval_required": False},
    ]
}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git log -3", "allow"),
        ("git log", "allow"),
        ("git log --all", "ask"),
        ("git log --output=x", "ask"),
        ("git push", "ask"),
        ("ls src | ls", "allow"),
        ("ls ..", "ask"),
        ("ls leakdir", "ask"),
        ("env touch x", "ask"),
        ("find . -delete", "ask"),
        ("find . -name x", "allow"),
        ("lsof", "deny"),
        ("./ls", "deny"),
        ("rm x", "deny"),
        ("ls | rm x", "deny"),
        ("ls; rm x", "deny"),
        ("ls $(rm x)", "deny"),
    ],
)
def test_rules_of_03_apply_with_the_new_refusals_on_top(project: Path, command: str, expected: str) -> None:
    toolset = ShellToolset({**RULES, "base_path": project})
    assert summary(toolset, command) == expected


@pytest.mark.parametrize(
    ("default", "expected"), [({"approval_required": True}, "ask"), ({"approval_required": False}, "allow")]
)
def test_the_default_of_03_applies_if_no_rule_matches(project: Path, default: dict[str, bool], expected: str) -> None:
    toolset = ShellToolset({**RULES, "default": default, "base_path": project})
    assert summary(toolset, "wc -l notes.txt") == expected
    assert summary(toolset, "rm project.json") == "person"
    assert run(toolset, "wc -l notes.txt")["stdout"] == "3 notes.txt\n"


@each_row(
    "config",
    [
        {"rulez": []},
        {"rules": [{"pattern": "a; b"}]},
        {"rules": [{"patern": "a"}]},
        {"rules": [{}]},
        {"rules": [{"pattern": "a", "approval_required_if_args": "--all"}]},
        {"default": {"approval": False}},
    ],
)
def test_an_invalid_configuration_of_03_is_an_error(config: Any) -> None:
    with pytest.raises(UsageError):
        ShellToolset(config)


def shell_run(
    project: Path, command: str, approvals: Any = "prompt", rules: Any = None, **fields: Any
) -> tuple[Any, Any]:
    """Run an agent that calls `shell` once; return the result and the tool's reply."""
    model = script(call("shell", command=command), "done")
    spec = agent("main", model, toolsets=["shell_readonly"])
    made = project_of([spec], root=project, policy=build_policy(rules or {})[0], **fields)
    result = carry_out(Runtime(made, approvals=approvals))
    reply = next(part for part in model.asked[-1].messages[-1].parts if part.part_kind == "tool-return")
    return result, reply


def test_an_agent_runs_read_only_commands_without_approval(project: Path) -> None:
    result, reply = shell_run(project, "cat notes.txt | sort | head -n 1")
    assert reply.content == {"exit_code": 0, "stdout": "apple\n", "stderr": "", "truncated": False}
    assert (result.status, result.denials) == ("completed", [])


def test_no_mode_and_no_rule_allows_a_write(project: Path) -> None:
    for approvals in ("approve_all", Answers(["once"])):
        result, reply = shell_run(project, "touch marker", approvals, rules={"allow": ["shell(touch *)"]})
        assert reply.outcome == "denied"
        assert "only read" in reply.content
        assert not (project / "marker").exists()
        assert len(result.denials) == 1


def test_reading_elsewhere_needs_a_person_who_sees_the_exact_command(project: Path) -> None:
    person = Answers(["once"])
    result, reply = shell_run(project, "cat ../secret.txt | head -n 1", person)
    assert reply.content["stdout"] == "secret-outside\n"
    assert person.asked[0].description == f"Run ['cat', '../secret.txt'] | ['head', '-n', '1'] in {project}"
    assert "../secret.txt is outside" in person.asked[0].reason
    denied, reply = shell_run(project, "cat ../secret.txt")
    assert (denied.status, reply.outcome) == ("denied", "denied")
    assert result.status == "completed"


def test_a_rule_does_not_allow_a_file_through_a_link(project: Path) -> None:
    rules = {"allow": ["shell(cat *)"]}
    _, reply = shell_run(project, "cat leak", rules=rules)
    assert (reply.outcome, "secret" in reply.content) == ("denied", False)
    _, reply = shell_run(project, "cat ../secret.txt", rules={"allow": ["shell(cat ../secret.txt)"]})
    assert reply.content["stdout"] == "secret-outside\n"


def test_rules_match_the_parsed_words(project: Path) -> None:
    resolve = traits(shell_readonly(context(project))).resolve
    assert resolve is not None
    assert resolve({"command": "git log -3 | head"}) == {"command": (("git", "log", "-3"), ("head",))}
    assert resolve({"command": "git log; rm x"}) == {"command": (("git", "log"), ("rm", "x"))}
    assert resolve({"command": "git log > x"}) == {"command": None}
    assert resolve({"command": "cat leak"}) == {"command": None}
    assert resolve({"command": "cat ../secret.txt"}) == {"command": (("cat", "../secret.txt"),)}
    assert resolve({"command": 3}) == {"command": None}


def test_long_output_is_saved_to_a_file_that_the_model_can_read(project: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(20_000))
    (project / "long.txt").write_text(lines)
    _, reply = shell_run(project, "cat long.txt")
    assert reply.content["truncated"]
    path = reply.content["stdout_file"]
    assert path.startswith(".llm-do/artifacts/")
    assert (project / path).read_text() == lines
    assert (project / ".llm-do/artifacts/.gitignore").read_text() == "*\n"
    assert reply.content["stdout"].startswith("line 0\n")
    assert reply.content["stdout"].endswith("line 19999\n")


def test_a_project_that_keeps_no_records_saves_no_output(project: Path) -> None:
    (project / "long.txt").write_text("x" * 200_000)
    _, reply = shell_run(project, "cat long.txt", record=False)
    assert reply.content["truncated"]
    assert "stdout_file" not in reply.content
    assert not (project / ".llm-do").exists()


def test_a_manifest_configures_a_shell(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text(
        "---\nname: main\nmodel: test\ntoolsets: [git, shell_readonly: {prefix: ro}]\n---\nGo.\n"
    )
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"],'
        ' "toolsets": {"git": {"type": "shell", "allow": ["git log *"], "env": ["PATH", "HOME"]}}}'
    )
    model = script(call("shell", command="touch x"), call("ro_shell", command="touch x"), "done")
    result = carry_out(Runtime(Project.load(tmp_path), approvals="reject_all", model=model))
    assert result.status == "completed"
    assert [record.tool for record in result.denials] == ["shell", "ro_shell"]


def test_a_lower_system_memory_limit_applies_to_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource", reason="only POSIX systems have such limits")
    monkeypatch.setattr(memory, "_prlimit", lambda: "/usr/bin/prlimit")
    for hard, most in ((resource.RLIM_INFINITY, memory.MEMORY), (2**60, memory.MEMORY), (2**30, 2**30)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, hard=hard: (hard, hard))
        assert memory.limit_memory(["ls"]) == ["/usr/bin/prlimit", f"--as={most}", "--", "ls"]
