"""`states:` of an agent gates tools that know nothing of states, over one machine per call of the agent."""

# The short spelling of dynamic types is one that checkers of names take for a forward reference.
# ruff: noqa: F821, UP037

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do import DynamicStr, LinkError, Project, Toolkit, Update, run, tool
from llm_do.project.gates import Gate
from llm_do.toolkits import current_state
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.toolkits.kits import play

STATES = {
    "inspect": Gate(enables=("inspected",)),
    "change": Gate(requires=("inspected",), forbids=("frozen",)),
    "freeze": Gate(requires=("inspected",), enables=("frozen",), disables=("inspected",)),
}


def inspect() -> str:
    """Inspect."""
    return "inspected"


def change() -> str:
    """Change."""
    return "changed"


def freeze() -> str:
    """Freeze."""
    return "frozen"


FUNCTIONS = [inspect, change, freeze]


def test_plain_functions_are_hidden_shown_and_refused_like_a_toolkits() -> None:
    turns = [call("change"), [call("inspect"), call("change")], [call("freeze"), call("change")], "done"]
    played = play(*turns, tools=FUNCTIONS, states=STATES)
    assert played.shown == [["inspect"], ["inspect"], ["inspect", "change", "freeze"], ["inspect"]]
    assert played.statuses == ["refused", "success", "success", "success", "refused"]
    assert played.outputs[0] == "change is not available now: it needs the state 'inspected', which inspect unlocks"
    assert played.result.toolkits["main"].unlocked_states == {"frozen"}
    assert [event.toolkit for event in played.ear.of("state_changed")] == ["main", "main"]


def test_they_run_in_order_and_stop_at_a_failure_while_other_tools_go_on() -> None:
    def broken() -> str:
        """Fails."""
        raise RuntimeError("boom")

    def free() -> str:
        """Free."""
        return "free"

    states = {**STATES, "broken": Gate()}
    played = play(
        [call("broken"), call("inspect"), call("free")], "done", tools=[*FUNCTIONS, broken, free], states=states
    )
    assert played.outputs[1] == "not run: broken, called before it in the same response, did not succeed"
    assert played.outputs[2] == "free"


def test_refusing_shows_them_all() -> None:
    played = play(call("change"), "done", tools=FUNCTIONS, states=STATES, gate="refuse")
    assert played.shown == [["inspect", "change", "freeze"]] * 2
    assert played.statuses == ["refused"]


def test_a_pair_is_just_a_result_and_an_update_updates_the_agents_context() -> None:
    def pair() -> Any:
        """A pair."""
        return "r", {"a": 1}

    def update() -> Any:
        """An update."""
        current_state().set("b", 2)
        return Update("u", c=3)

    def late() -> str:
        """Needs the context."""
        return str(current_state().to_dict())

    states = {"pair": Gate(), "update": Gate(), "late": Gate(needs=("c",))}
    played = play(
        [call("pair"), call("late")], [call("update"), call("late")], "done", tools=[pair, update, late], states=states
    )
    assert played.statuses == ["success", "refused", "success", "success"]
    assert played.outputs[3] == "{'b': 2, 'c': 3}"
    assert played.result.toolkits["main"].context.to_dict() == {"b": 2, "c": 3}


def test_marks_of_plain_functions_make_the_same_machine_and_the_file_comes_first() -> None:
    @tool(enables_states=["ready"])
    def prepare() -> str:
        """Prepare."""
        return "prepared"

    @tool(required_states=["ready"])
    def act() -> str:
        """Act."""
        return "acted"

    played = play([call("act")], [call("prepare"), call("act")], "done", tools=[prepare, act])
    assert played.shown == [["prepare"], ["prepare"], ["prepare", "act"]]
    assert played.statuses == ["refused", "success", "success"]
    played = play(call("act"), "done", tools=[prepare, act], states={"act": Gate()})
    assert played.statuses == ["success"]


def test_a_dynamic_type_of_a_plain_function_is_of_the_agents_context() -> None:
    def load() -> Any:
        """Load."""
        return Update("loaded", names=["a", "b"])

    def pick(name: DynamicStr["names"]) -> str:
        """Pick."""
        return f"picked {name}"

    played = play(
        [call("load"), call("pick", name="c")],
        call("pick", name="a"),
        "done",
        tools=[load, pick],
        states={"load": Gate()},
    )
    assert played.shown == [["load"], ["load", "pick"], ["load", "pick"]]
    assert played.statuses == ["success", "refused", "success"]
    assert played.schema("pick")["properties"]["name"] == {"type": "string", "enum": ["a", "b"]}


def test_toolkits_are_gated_twice_and_agents_and_live_toolsets_once() -> None:
    kit = Toolkit("kit", context={"n": 0})

    @kit.tool
    def bump(ctx) -> Any:
        """Bump."""
        return "bumped", {"n": ctx.state["n"] + 1}

    def live(ctx: RunContext[Any]) -> FunctionToolset[Any]:
        made: FunctionToolset[Any] = FunctionToolset(id="live")
        made.add_function(lambda: "dug", name="dig", description="Dig.")
        return made

    child = agent("child", script("child said"))
    states = {
        "kit::bump": Gate(requires=("dug",), enables=("bumped",)),
        "l::dig": Gate(enables=("dug",)),
        "child": Gate(requires=("bumped",), disables=("bumped",)),
    }
    from llm_do.project.agent_spec import ToolsetRef

    turns = [call("bump"), [call("l_dig"), call("bump"), call("child", input="x"), call("child", input="y")], "done"]
    main = agent("main", script(*turns), toolsets=[kit, ToolsetRef("live", "l", value=live), "child"], states=states)
    runtime = runtime_of([main, child])
    ear = heard(runtime)
    result = carry_out(runtime)
    ends = [(event.tool_name, event.status) for event in ear.of("tool_result") if event.path == "main"]
    assert ends == [
        ("bump", "refused"),
        ("l_dig", "success"),
        ("bump", "success"),
        ("child", "success"),
        ("child", "refused"),
    ]
    assert result.toolkits["kit"].context["n"] == 1
    assert result.toolkits["main"].unlocked_states == {"dug"}


def test_if_one_of_two_machines_refuses_the_updates_neither_moves() -> None:
    kit = Toolkit("kit", validation_enabled=True)
    kit.context.schema.define("n", {"type": "integer"})

    @kit.tool(enables_states=["kit"])
    def put(n: Any) -> Any:
        """Put."""
        return "put", {"n": n}

    states = {"put": Gate(enables=("main",))}
    played = play(call("put", n="x"), "done", kits=[kit], states=states)
    assert {state.unlocked_states for state in played.result.toolkits.values()} == {frozenset()}
    played = play(call("put", n=1), "done", kits=[kit], states=states)
    assert sorted(str(set(state.unlocked_states)) for state in played.result.toolkits.values()) == [
        "{'kit'}",
        "{'main'}",
    ]


def test_a_gate_of_a_tool_that_is_not_there_keeps_the_agent_from_running() -> None:
    result = play_result({"chang": Gate(requires=("inspected",))})
    assert "gates the tool 'chang', which it doesn't have" in str(result.error)
    assert result.steps == 0


def play_result(states: dict[str, Gate]) -> Any:
    return carry_out(runtime_of([agent("main", script("done"), tools=FUNCTIONS, states=states)]))


def test_each_call_of_an_agent_begins_anew_and_the_entry_goes_on() -> None:
    runtime = runtime_of([agent("main", script(call("inspect"), "done"), tools=FUNCTIONS, states=STATES)])
    first = carry_out(runtime)
    second = carry_out(runtime, execution_context=first.execution_context)
    assert second.status == "completed"
    later = runtime_of([agent("main", script("", "", call("change"), "done"), tools=FUNCTIONS, states=STATES)])
    third = carry_out(later, execution_context=first.execution_context)
    assert third.toolkits["main"].unlocked_states == {"inspected"}


PROJECT = {
    "project.json": '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"],'
    ' "python_files": ["tools.py"], "model": "script:answers.yaml", "approvals": {"allow": ["inspect", "change"]}}',
    "tools.py": "def inspect():\n    'Inspect.'\n    return 'seen'\n\n"
    "def change():\n    'Change.'\n    return 'changed'\n\nTOOLS = [inspect, change]\n",
    "main.agent": "---\nname: main\ntools: [inspect, change]\nstates:\n  inspect: {enables: [seen]}\n"
    "  change: {requires: [seen]}\n---\nGo.\n",
    "answers.yaml": "agents:\n  main:\n    - tools: [{name: change}]\n    - tools: [{name: inspect}, {name: change}]\n"
    "    - text: done\n",
}


def project(folder: Path, **files: str) -> Path:
    for name, text in {**PROJECT, **{key.replace("__", "."): text for key, text in files.items()}}.items():
        (folder / name).write_text(text)
    return folder


def test_an_agent_file_declares_them(tmp_path: Path) -> None:
    result = run.sync(Project.load(project(tmp_path)), "go")
    assert result.toolkits["main"].unlocked_states == {"seen"}
    outputs = [
        str(part.content) for message in result.messages for part in message.parts if part.part_kind == "tool-return"
    ]
    assert outputs == [
        "change is not available now: it needs the state 'seen', which inspect unlocks",
        "seen",
        "changed",
    ]


def main_agent(states: str) -> str:
    return f"---\nname: main\ntools: [inspect, change]\nstates: {states}\n---\nGo.\n"


def codes(folder: Path) -> list[tuple[str, int]]:
    from llm_do.linker.linker import check_project

    return [(item.code, item.place.line) for item in check_project(folder).diagnostics]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("{inspect: {enables: [a]}, change: {requires: [a]}}", []),
        ("{inspect: {enables: [aa]}, change: {requires: [a]}}", [("LD410", 4)]),
        ("{inspect: {enables: [a, b]}, change: {requires: [a], forbids: [b]}}", [("LD411", 4)]),
        ("{inspect: {enables: [a], forbids: [a]}, change: {enables: [b], forbids: [b]}}", [("LD412", 3)]),
        ("{inspect: {enables: [a], forbids: [a]}}", []),
        ("{inspct: {enables: [a]}, change: {requires: [a]}}", [("LD413", 4)]),
        ("{kit::inspect: {enables: [a]}, change: {requires: [a]}}", [("LD413", 4)]),
    ],
)
def test_the_linker_finds_what_cannot_work(tmp_path: Path, states: str, expected: list[tuple[str, int]]) -> None:
    found = codes(project(tmp_path, main__agent=main_agent(states)))
    assert [code for code, _ in found] == [code for code, _ in expected]
    assert [line for code, line in found if code != "LD412"] == [line for code, line in expected if code != "LD412"]


def test_a_misspelled_tool_names_the_nearest_and_does_not_link(tmp_path: Path) -> None:
    folder = project(tmp_path, main__agent=main_agent("{inspct: {enables: [a]}}"))
    with pytest.raises(LinkError) as caught:
        Project.load(folder)
    (found,) = caught.value.diagnostics
    assert "`inspct`" in found.message
    assert "inspect" in (found.hint or "")


TOOLKIT = (
    "from llm_do.toolkits import DynamicFiltered, Toolkit\n\nkit = Toolkit('kit')\n\n"
    "@kit.tool(required_states=['connectd'])\ndef use(x: int):\n    'Use.'\n\n"
    "@kit.tool(enables_states=['connected'])\ndef connect():\n    'Connect.'\n\nTOOLSETS = [kit]\n"
)


def test_toolkits_are_judged_too(tmp_path: Path) -> None:
    agent_file = "---\nname: main\ntoolsets: [kit]\n---\nGo.\n"
    folder = project(tmp_path, tools__py=TOOLKIT, main__agent=agent_file)
    (folder / "project.json").write_text(PROJECT["project.json"].replace('"inspect", "change"', '"use"'))
    assert [code for code, _ in codes(folder)] == ["LD410"]
    wrong = TOOLKIT.replace("x: int", "x: DynamicFiltered[('a', 'nope')]").replace("connectd", "connected")
    (folder / "tools.py").write_text(wrong)
    assert [code for code, _ in codes(folder)] == ["LD414"]


def test_async_tools_find_their_agents_context_too() -> None:
    async def count() -> str:
        """Count."""
        await asyncio.sleep(0)
        state = current_state()
        state["n"] = state.get("n", 0) + 1
        return str(state["n"])

    played = play([call("count"), call("count")], "done", tools=[count], states={"count": Gate()})
    assert played.outputs == ["1", "2"]


def test_a_state_that_only_a_toolkit_has_is_told_apart_from_the_agents_own(tmp_path: Path) -> None:
    from llm_do.linker.linker import check_project

    agent_file = (
        "---\nname: main\ntools: [inspect]\ntoolsets: [kit]\nstates:\n  inspect: {requires: [connected]}\n---\nGo.\n"
    )
    tools = f"def inspect() -> str:\n    'Look.'\n    return 'seen'\n\nTOOLS = [inspect]\n{TOOLKIT}"
    folder = project(tmp_path, tools__py=tools.replace("connectd", "connected"), main__agent=agent_file)
    (folder / "project.json").write_text(PROJECT["project.json"].replace('"inspect", "change"', '"inspect"'))

    (found,) = check_project(folder).diagnostics

    assert found.code == "LD410"
    assert found.hint == "the toolkit `kit` has a state of its own: write `connect: {enables: [connected]}` here too"
