"""Toolkits compose: prefixes, equal names, agents inside and outside of them, factories, streaming, live toolsets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from llm_do import Project, RunError, Toolkit, Update, run
from llm_do.toolkits import current_state
from tests.support.history import strict
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import Script, call, script
from tests.toolkits.kits import play


def door(name: str | None = "door") -> Toolkit:
    kit = Toolkit(name, context={"opened": 0})

    @kit.tool(enables_states=["open"], forbidden_states=["open"])
    def unlock(ctx) -> Any:
        """Unlock."""
        return Update("open", opened=ctx.state["opened"] + 1)

    @kit.tool(required_states=["open"], disables_states=["open"])
    def lock() -> str:
        """Lock."""
        return "locked"

    return kit


def test_one_toolkit_under_two_prefixes_is_two_machines() -> None:
    kit = door()
    spec = agent("main", script([call("front_unlock"), call("back_lock")], call("front_lock"), "done"))
    spec.add_toolkit("front", kit)
    spec.add_toolkit("back", kit)
    runtime = runtime_of([spec])
    ear = heard(runtime)
    result = carry_out(runtime)
    ends = {event.tool_name: event.result for event in ear.of("tool_result")}
    assert ends["back_lock"] == "back_lock is not available now: it needs the state 'open', which back_unlock unlocks"
    assert ends["front_lock"] == "locked"
    assert {name: state.context["opened"] for name, state in result.toolkits.items()} == {"front": 1, "back": 0}


def test_two_toolkits_with_the_same_tool_names_need_a_prefix() -> None:
    assert "two tools named 'unlock'" in str(play_result([door("a"), door("b")]).error)
    spec = agent("main", script([call("unlock"), call("b_unlock")], "done"), toolsets=[door("a")])
    spec.add_toolkit("b", door("b"))
    result = carry_out(runtime_of([spec]))
    assert [state.unlocked_states for state in result.toolkits.values()] == [{"open"}, {"open"}]


def test_two_machines_of_one_name_are_refused() -> None:
    first, second = Toolkit("same"), Toolkit("same")
    first.add_tool("one", lambda: 1)
    second.add_tool("two", lambda: 2)
    assert "two state machines called 'same'" in str(play_result([first, second]).error)


def play_result(kits: list[Toolkit]) -> Any:
    return carry_out(runtime_of([agent("main", script("done"), toolsets=kits)]))


def test_a_toolkit_in_a_project_is_listed_by_name_with_prefix_and_choice(tmp_path: Any) -> None:
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["kit.py"],'
        ' "model": "script:answers.yaml", "approvals": {"deny": ["d::lock"], "allow": ["d::*"]}}'
    )
    (tmp_path / "kit.py").write_text(
        "from llm_do import Toolkit\n"
        "door = Toolkit(context={'opened': 0})\n"
        "@door.tool(enables_states=['open'])\n"
        "def unlock(ctx):\n    'Unlock.'\n    return 'open', {'opened': ctx.state['opened'] + 1}\n"
        "@door.tool(required_states=['open'])\n"
        "def lock():\n    'Lock.'\n    return 'locked'\n"
        "@door.tool\n"
        "def paint():\n    'Paint.'\n    return 'red'\n"
    )
    (tmp_path / "main.agent").write_text(
        "---\nname: main\ntoolsets: {door: {prefix: d, exclude: [paint]}}\n---\nOpen the door.\n"
    )
    (tmp_path / "answers.yaml").write_text(
        "agents:\n  main:\n    - tools: [{name: d_unlock}, {name: d_lock}]\n    - text: done\n"
    )
    result = run.sync(Project.load(tmp_path), "go")
    assert result.toolkits["d"].context["opened"] == 1
    assert result.output == "done"
    assert [(denial.tool, denial.rule) for denial in result.denials] == [("d_lock", "d::lock")]


def test_a_toolkits_tool_calls_an_agent_with_the_same_toolkit_of_its_own() -> None:
    kit, seen = door(), []

    @kit.tool
    async def ask(ctx) -> Any:
        """Ask the other agent, while this toolkit's call is running."""
        answer = await ctx.call("child", "go")
        seen.append(("after", ctx.state["opened"], kit.context["opened"], current_state() is ctx.state))
        return Update(answer, opened=ctx.state["opened"] + 10)

    def peek() -> str:
        """A plain tool of the child."""
        seen.append(("child", kit.context["opened"]))
        return "peeked"

    child = agent("child", script(call("unlock"), call("peek"), "child done"), toolsets=[kit], tools=[peek])
    parent = agent("main", script([call("unlock"), call("ask")], call("lock"), "done"), toolsets=[kit])
    runtime = runtime_of([parent, child])
    ear = heard(runtime)
    result = carry_out(runtime)
    assert seen == [("child", 1), ("after", 1, 1, True)]
    assert result.toolkits["door"].context["opened"] == 11
    changes = [(event.path, event.updates) for event in ear.of("state_changed")]
    assert changes == [
        ("main", {"opened": 1}),
        ("main/child", {"opened": 1}),
        ("main", {"opened": 11}),
        ("main", {}),
    ]


def test_a_child_without_the_toolkit_reads_its_callers_and_has_no_current_state() -> None:
    kit, seen = door(), []

    @kit.tool
    async def ask(ctx) -> Any:
        """Ask."""
        return await ctx.call("child", "go")

    def peek() -> str:
        """A plain tool of the child."""
        seen.append(kit.context["opened"])
        with pytest.raises(Exception, match="no current state"):
            current_state()
        return "peeked"

    child = agent("child", script(call("peek"), "child done"), tools=[peek])
    parent = agent("main", script([call("unlock"), call("ask")], "done"), toolsets=[kit])
    assert carry_out(runtime_of([parent, child])).status == "completed"
    assert seen == [1]


def test_an_agent_with_a_toolkit_is_a_tool_of_another_and_begins_anew_each_time() -> None:
    kit = door()
    child = agent("child", script(call("unlock"), "open"), toolsets=[kit])
    parent = agent("main", script(call("child", input="a"), call("child", input="b"), "done"), toolsets=["child"])
    runtime = runtime_of([parent, child])
    ear = heard(runtime)
    result = carry_out(runtime)
    assert [event.updates for event in ear.of("state_changed")] == [{"opened": 1}, {"opened": 1}]
    assert "door" not in result.toolkits


def test_control_that_is_handed_over_takes_the_toolkit_along() -> None:
    kit = door()
    first = agent("main", script(call("unlock"), call("transfer_to_second", reason="go on"), "done"), toolsets=[kit])
    first.handoffs = ["second"]
    second = agent("second", script("", "", call("lock"), "done"), toolsets=[kit])
    result = carry_out(runtime_of([first, second]))
    assert result.status == "completed"
    assert (result.toolkits["door"].unlocked_states, result.toolkits["door"].context["opened"]) == (frozenset(), 1)


def test_streaming_is_the_same_run() -> None:
    spec = agent("main", script([call("unlock"), call("lock")], "all done"), toolsets=[door()])

    async def main() -> Any:
        stream = runtime_of([spec]).stream("go")
        return [event async for event in stream], stream.result

    events, result = asyncio.run(main())
    assert [event.status for event in events if event.type == "tool_result"] == ["success", "success"]
    assert [event.states for event in events if event.type == "state_changed"] == [["open"], []]
    assert "".join(event.text for event in events if event.type == "text") == "all done"
    assert result.toolkits["door"].context["opened"] == 1


def test_a_factory_makes_a_toolkit_for_each_call() -> None:
    made: list[Toolkit] = []

    def door_for(ctx: RunContext[Any]) -> Toolkit:
        made.append(door())
        return made[-1]

    project = project_of(
        [agent("main", script([call("unlock"), call("lock")], call("lock"), "done"), toolsets=["doors"])],
        toolsets={"doors": door_for},
    )
    from llm_do import Runtime

    runtime = Runtime(project, approvals="approve_all")
    ear = heard(runtime)
    result = carry_out(runtime)
    assert [event.status for event in ear.of("tool_result")] == ["success", "success", "refused"]
    assert result.toolkits["door"].context["opened"] == 1
    assert len(made) == 1
    carry_out(runtime)
    assert len(made) == 2


def test_a_toolkit_runs_in_a_bare_pydantic_agent_too() -> None:
    kit, other = door(), door()
    turns = [
        call("lock"),
        call("unlock"),
        call("lock"),
        [call("unlock"), call("unlock"), call("unlock")],
        "done",
    ]
    bare = Agent(FunctionModel(Script(turns, {}).answer), toolsets=[kit, other.prefixed("other")], retries={"tools": 9})
    result = asyncio.run(bare.run("go"))
    strict(result.all_messages(), reused_ids=True)
    parts = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    outputs = [str(part.content) for part in parts]
    assert "Unknown tool" in outputs[0]
    assert outputs[1:4] == ["open", "locked", "open"]
    assert outputs[4] == "unlock is not available now: it is not possible in the state 'open'"
    assert outputs[5] == "not run: unlock, called before it in the same response, did not succeed"
    assert kit.context["opened"] == 0


def test_an_agent_that_somebody_else_built_has_its_toolkits_gated_by_the_run() -> None:
    kit = door()
    built = Agent(script([call("unlock"), call("lock")], "done"), name="built", toolsets=[kit])
    result = run.sync(built, "go", approvals="approve_all")
    assert result.toolkits["door"].context["opened"] == 1
    assert kit.context["opened"] == 0


def test_other_toolsets_of_the_agent_are_left_alone() -> None:
    plain: FunctionToolset[Any] = FunctionToolset(id="plain")

    @plain.tool_plain
    def hello() -> str:
        """Hello."""
        return "hello"

    played = play([call("hello"), call("unlock"), call("hello")], "done", kits=[plain, door()])
    assert played.outputs == ["hello", "open", "hello"]


def test_an_agent_says_what_it_is_and_what_its_model_would_see() -> None:
    spec = agent("main", "test", handoffs=["other"], max_steps=3)
    spec.add_toolkit("front", door())

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    spec.add_tool("plus", add, "Add two numbers.")
    spec.add_tool("sum", add)
    assert spec.describe() == {
        "name": "main",
        "model": "test",
        "tools": ["plus", "sum", "door"],
        "handoffs": ["other"],
        "max_steps": 3,
        "output_type": "str",
    }
    spec.handoffs = ()
    shown = {each["function"]["name"]: each["function"] for each in spec.get_tool_schemas()}
    assert list(shown) == ["plus", "sum", "front_unlock"]
    assert shown["plus"]["description"] == "Add two numbers."
    assert shown["sum"]["description"] == "Add."
    assert shown["plus"]["parameters"]["required"] == ["a", "b"]
    spec.toolsets = (*spec.toolsets, "nowhere")
    with pytest.raises(RunError, match="nowhere"):
        spec.get_tool_schemas()


def test_a_tool_added_under_a_name_runs_under_it() -> None:
    spec = agent("main", script(call("plus", a=1, b=2), "done"))
    spec.add_tool("plus", lambda a, b: a + b, "Add.")
    result = carry_out(runtime_of([spec]))
    assert result.messages[2].parts[0].content == 3
