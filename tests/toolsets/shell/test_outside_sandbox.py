"""Who lets a command run outside the sandbox: a person who sees the call, and nothing that was allowed before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do import Runtime
from llm_do.policy.rules import build_policy
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from tests.support.runs import Answers, agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.shell.support import configured, decision, run


def asked_and_run(root: Path, approvals: Any, *, allow: Any = (), rules: Any = None, **args: Any) -> tuple[Any, str]:
    """Have an agent change the project's code by a command; returns the run's result and the code then."""
    (root / "data.txt").write_text("evil:\n\techo evil > tools.py\n")
    command = {"command": "make -f data.txt evil", **args}
    spec = agent("main", script(call("shell", **command), "done"), toolsets=["sh"])
    toolsets = {"sh": BuiltinToolset("sh", {"type": "shell", "allow": ["ls *"]})}
    policy = build_policy(rules or {})[0]
    project = project_of([spec], root=root, toolsets=toolsets, policy=policy)
    result = carry_out(Runtime(project, approvals=approvals, allow=list(allow)))
    return result, (root / "tools.py").read_text()


def test_what_a_person_allows_at_that_moment_runs_outside_and_the_question_says_so(backend: str, root: Path) -> None:
    person = Answers(["once"])
    spec = agent("main", script(call("shell", command="make -f data.txt evil"), "done"), toolsets=["sh"])
    (root / "data.txt").write_text("evil:\n\techo evil > tools.py\n")
    toolsets = {"sh": BuiltinToolset("sh", {"type": "shell"})}
    carry_out(Runtime(project_of([spec], root=root, toolsets=toolsets), approvals=person))
    assert (
        person.asked[0].description
        == f"Run ['make', '-f', 'data.txt', 'evil'] in {root} (once approved, outside the sandbox)"
    )
    assert (root / "tools.py").read_text() == "evil\n"


@pytest.mark.parametrize("how", ["approve_all", "option", "rule", "session"])
def test_what_is_allowed_in_advance_runs_inside(backend: str, root: Path, how: str) -> None:
    (root / "data.txt").write_text("evil:\n\techo evil > tools.py\n")
    turns = [call("shell", f"c{number}", command="make -f data.txt evil") for number in range(2)]
    spec = agent("main", script(*turns, "done"), toolsets=["sh"])
    toolsets = {"sh": BuiltinToolset("sh", {"type": "shell"})}
    rules = {"allow": ["shell(make -f data.txt evil)"]}
    project = project_of([spec], root=root, toolsets=toolsets, policy=build_policy(rules if how == "rule" else {})[0])
    approvals: Any = {"approve_all": "approve_all", "session": Answers(["session"])}.get(how, "prompt")
    runtime = Runtime(project, approvals=approvals, allow=rules["allow"] if how == "option" else [])
    if how == "session":  # only the call that the person saw runs outside
        runtime.on("tool_result", lambda _: (root / "tools.py").write_text("x = 1\n"))
    result = carry_out(runtime)
    assert result.status == "completed"
    assert (root / "tools.py").read_text() == "x = 1\n"


def test_a_call_can_ask_a_person_to_run_outside_and_nobody_else_answers(backend: str, root: Path) -> None:
    rules = {"allow": ["shell(make *)", "shell"]}
    for approvals in ("approve_all", "prompt"):
        result, code = asked_and_run(root, approvals, rules=rules, allow=["shell"], outside_sandbox=True)
        assert (code, len(result.denials)) == ("x = 1\n", 1)
        assert "it asks to run outside the sandbox" in result.denials[0].reason


def test_a_person_who_is_asked_can_let_it_run_outside(backend: str, root: Path) -> None:
    person = Answers(["once"])
    spec = agent("main", script(call("shell", command="ls -a", outside_sandbox=True), "done"), toolsets=["sh"])
    toolsets = {"sh": BuiltinToolset("sh", {"type": "shell", "allow": ["ls *"]})}
    result = carry_out(Runtime(project_of([spec], root=root, toolsets=toolsets), approvals=person))
    assert (len(person.asked), person.asked[0].person_only, result.denials) == (1, True, [])


@pytest.mark.usefixtures("none")
def test_without_a_sandbox_a_project_that_requires_one_asks_a_person(root: Path) -> None:
    required = configured(root, allow=["ls *"], sandbox=SandboxSpec("required"))
    found = decision(required, "ls -a")
    assert (found.effect, found.person_only) == ("ask", True)
    assert "requires a sandbox" in found.reason
    assert decision(configured(root, allow=["ls *"]), "ls -a").effect == "allow"
    assert run(configured(root, allow=["ls *"]), "ls build")["stdout"] == "old.o\n"
