"""An agent becomes a function, and back, and no other file changes: neither a caller's lists nor what Python calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, Project, RunResult, Runtime
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script

AGENT = "---\nname: mood\ndescription: Says what mood a text is in.\n---\nSay the mood.\n"
FUNCTION = 'def mood(input: str) -> str:\n    """Say what mood a text is in."""\n    return "good"\nTOOLS = [mood]\n'
MAIN = """\
from pydantic_ai import RunContext
from llm_do import CallContext

async def ask(ctx: RunContext[CallContext]) -> str:
    "Ask for the mood."
    return "by code: " + await ctx.deps.call("mood", {"input": "x"})

TOOLS = [ask]
"""


def project(folder: Path, kind: str, line: str, **manifest: Any) -> Project:
    """A project whose `mood` is an agent or a function; everything else is the same."""
    folder.mkdir()
    (folder / "main.agent").write_text(f"---\nname: main\n{line}\n---\nHelp.\n")
    (folder / "main.py").write_text(MAIN)
    if kind == "agent":
        (folder / "mood.agent").write_text(AGENT)
    else:
        (folder / "mood.py").write_text(FUNCTION)
    data = {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent"],
        "python_files": ["*.py"],
        **manifest,
    }
    (folder / "project.json").write_text(json.dumps(data))
    return Project.load(folder)


def carried_out(linked: Project) -> RunResult:
    """Run it without a person."""
    turns = [call("mood", input="x"), call("ask")]
    model = script(*turns, "done")
    mood = script("good")
    for spec in linked.registry.agents():
        spec.model = model if spec.name == "main" else mood
    return carry_out(Runtime(linked))


LISTS = ["tools: [mood, ask]", "tools: [ask]\ntoolsets: [mood]", "tools: [ask]\ntoolsets: {mood: {}}"]
ALLOW = {"approvals": {"allow": ["mood", "ask"]}}


@pytest.mark.parametrize("line", LISTS)
@pytest.mark.parametrize("kind", ["agent", "function"])
def test_either_list_takes_either_kind(tmp_path: Path, kind: str, line: str) -> None:
    linked = project(tmp_path / "p", kind, line, **ALLOW)
    result = carried_out(linked)

    assert linked.warnings == ()
    assert [text for _, _, text in results_of(result.messages)] == ["good", "by code: good"]
    assert result.status == "completed"


@pytest.mark.parametrize(
    ("kind", "line", "codes"),
    [
        ("agent", LISTS[1], []),
        ("function", LISTS[0], []),
        ("function", LISTS[1], ["LD608"]),
        ("agent", LISTS[0], ["LD608"]),
    ],
)
def test_check_says_what_becomes_of_the_approval(tmp_path: Path, kind: str, line: str, codes: list[str]) -> None:
    linked = project(tmp_path / "p", kind, line, approvals={"allow": ["ask"]})

    assert [found.code for found in linked.warnings] == codes
    if codes:
        (found,) = linked.warnings
        word = "need approval, unlike those of an agent" if kind == "function" else "need no approval, unlike those"
        assert found.message.startswith(f"calls of `mood` {word}")
        assert '"allow": ["mood"]' in str(found.hint)


@pytest.mark.parametrize("kind", ["agent", "function"])
@pytest.mark.parametrize("asks", [True, False])
def test_a_setting_for_the_agent_holds_for_the_function(tmp_path: Path, kind: str, asks: bool) -> None:
    settings = {"agent_approval_overrides": {"mood": {"calls_require_approval": asks}}}
    linked = project(tmp_path / "p", kind, LISTS[1], runtime=settings, approvals={"allow": ["ask"]})
    result = carried_out(linked)

    assert linked.warnings == ()
    assert [denial.tool for denial in result.denials] == (["mood"] if asks else [])


def test_a_functions_own_approval_comes_before_the_setting(tmp_path: Path) -> None:
    settings = {"agent_approval_overrides": {"mood": {"calls_require_approval": False}}}
    folder = tmp_path / "p"
    project(folder, "function", LISTS[1], runtime=settings)
    denied = FUNCTION.replace("def mood", 'from llm_do import tool\n@tool(approval="deny")\ndef mood')
    (folder / "mood.py").write_text(denied)

    assert [denial.tool for denial in carried_out(Project.load(folder)).denials][:1] == ["mood"]


def test_an_agent_is_a_tool_in_code_too() -> None:
    helper = AgentSpec("helper", model=script("helped"))
    result = carry_out(runtime_of([agent("main", script(call("helper", input="x"), "done"), tools=[helper])]))

    assert results_of(result.messages)[0][2] == "helped"
    assert [record.path for record in result.calls] == ["main/helper"]
