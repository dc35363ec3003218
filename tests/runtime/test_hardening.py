"""An agent becomes a function, and back, and no other file changes: neither a caller's lists nor what Python calls."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, LinkError, Project, RunResult, Runtime
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script

ROOT = Path(__file__).parents[2]
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


WITH_CONTEXT = """\
from llm_do import CallContext

async def mood(input: str, ctx: CallContext) -> str:
    "Say what mood a text is in."
    return "good"

TOOLS = [mood]
"""
RUN_CONTEXT = """\
from pydantic_ai import RunContext

async def mood(ctx: RunContext, text: str) -> str:
    "Say what mood a text is in."
    return "good"

TOOLS = [mood]
"""
ENTRIES = {
    "PydanticAI's context": RUN_CONTEXT,
    "text": FUNCTION,
    "text and context": WITH_CONTEXT,
    "another parameter": FUNCTION.replace("input: str", "text: str"),
}


@pytest.mark.parametrize("kind", ["agent", *ENTRIES])
@pytest.mark.parametrize("args", [None, {"input": "x"}])
def test_the_entry_becomes_a_function_too(tmp_path: Path, kind: str, args: Any) -> None:
    folder = tmp_path / "p"
    entry = {"agent": "mood"} | ({"args": args} if args else {})
    project(folder, "agent" if kind == "agent" else "function", "tools: []", entry=entry)
    if kind != "agent":
        (folder / "mood.py").write_text(ENTRIES[kind])
    linked = Project.load(folder)
    for spec in linked.registry.agents():
        spec.model = script("good")

    result = carry_out(Runtime(linked), "x")
    assert (result.status, result.output) == ("completed", "good")


def test_an_entry_that_is_neither_agent_nor_code_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    with pytest.raises(LinkError) as raised:
        project(folder, "function", "tools: []", entry={"agent": "mod"})

    assert [found.code for found in raised.value.diagnostics] == ["LD201"]
    assert raised.value.diagnostics[0].hint == "did you mean `mood`?"


FACTS = "Tools and price hold. The library opens at ten."
LETTER = {"input": "A letter to Ann."}
EXAMPLES: list[tuple[str, str, str, object, object]] = [
    ("calculator", "calculator", "tools.py", None, "888.93 euros"),
    ("calculator", "explainer", "tools.py", None, "done"),
    ("newsroom", "researcher", "desk.py", None, "lends drills, saws and ladders"),
    ("newsroom", "fact_checker", "desk.py", None, FACTS),
    ("newsroom", "stylist", "desk.py", None, "Warm, plain, a little amused."),
    ("newsroom", "writer", "desk.py", None, {"headline": "Drills", "text": "They are there."}),
    ("embedded_service", "clerk", "tools.py", LETTER, "done"),
    ("embedded_service", "writer", "tools.py", LETTER, "done"),
]
"""Examples, an agent of each, the Python file it becomes a function in, the run's input, and what it answers."""


@pytest.mark.parametrize(("example", "name", "file", "value", "answer"), EXAMPLES)
def test_an_agent_of_each_example_becomes_a_function_and_nothing_else_changes(
    tmp_path: Path, example: str, name: str, file: str, value: object, answer: object
) -> None:
    folder = tmp_path / example
    shutil.copytree(ROOT / "examples" / example, folder)
    manifest = json.loads((folder / "project.json").read_text())
    manifest.pop("permissions", None)  # which may be about the agent, and a function has other permissions
    (folder / "project.json").write_text(json.dumps(manifest))
    (folder / f"{name}.agent").unlink()
    exported = f'__all__ += ["{name}"]' if file == "desk.py" else f"TOOLS.append({name})"
    with (folder / file).open("a") as code:
        code.write(f'\n\ndef {name}(input):\n    """Answer."""\n    return {answer!r}\n\n\n{exported}\n')

    linked = Project.load(folder)
    result = carry_out(Runtime(linked, approvals="approve_all"), value)

    assert result.status == "completed", result.error
    assert not result.errors
