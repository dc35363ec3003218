"""Results of tools in a cassette: recorded after policy, and replayed without running the tool or asking its server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import BinaryContent, ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired

from llm_do import Project, RunResult, Runtime, RuntimeConfig, ToolError, Update, UsageError
from llm_do.errors import LinkError
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.testing import play
from llm_do.testing.cassettes.cassette_reader import parse_cassette
from llm_do.testing.cassettes.files import player_of, recorder_for
from llm_do.testing.cassettes.recorder import write_cassette
from tests.support.no_network import no_network
from tests.support.runs import Answers, agent, carry_out, project_of
from tests.support.scripted import call, script

SERVER = Path(__file__).parents[1] / "toolsets" / "mcp_servers" / "plain_server.py"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Forecast(BaseModel):
    place: str
    degrees: float


@dataclass
class World:
    """What a tool asks; it can be switched off, and counts."""

    asked: list[str] = field(default_factory=list)
    online: bool = True

    def ask(self, place: str) -> None:
        if not self.online:
            raise AssertionError("a replayed tool ran")
        self.asked.append(place)


def tools(world: World) -> dict[str, Callable[..., Any]]:  # noqa: C901 (one function a tool)
    def text(place: str) -> str:
        world.ask(place)
        return f"It rains\nin {place}."

    def data(place: str) -> dict[str, Any]:
        world.ask(place)
        return {"place": place, "degrees": [1, 2.5, None]}

    def model(place: str) -> Forecast:
        world.ask(place)
        return Forecast(place=place, degrees=1.5)

    def picture(place: str) -> BinaryContent:
        world.ask(place)
        return BinaryContent(PNG, media_type="image/png")

    def with_content(place: str) -> ToolReturn:
        world.ask(place)
        return ToolReturn("see below", content=["A map:", BinaryContent(PNG, media_type="image/png")])

    def items(place: str) -> Any:
        world.ask(place)
        yield from ("one", "two")

    def nothing(place: str) -> None:
        world.ask(place)

    def retry(place: str) -> str:
        world.ask(place)
        raise ModelRetry(f"there is no {place}")

    def tool_error(place: str) -> str:
        world.ask(place)
        raise ToolError("the service is closed", hint="Try tomorrow")

    def crash(place: str) -> str:
        world.ask(place)
        raise ZeroDivisionError("division by zero")

    async def slow(place: str) -> str:
        world.ask(place)
        await asyncio.sleep(60)
        return "late"

    def asks(ctx: RunContext[Any], place: str) -> str:
        world.ask(place)
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "costs a cent"})
        return "paid"

    return {each.__name__: each for each in locals().values() if callable(each)}


def run(world: World, root: Path, transport: Any, *names: str, answers: Any = None, **fields: Any) -> RunResult:
    """Run an agent that calls the named tools, one after the other."""
    return carry_out(runtime(world, root, transport, *names, answers=answers, **fields))


def runtime(world: World, root: Path, transport: Any, *names: str, answers: Any, **fields: Any) -> Runtime:
    linked = project(world, root, *names, **fields)
    approvals = answers or Answers(["once"])
    return Runtime(linked, config=RuntimeConfig.of(linked, approvals=approvals, transport=transport))


def project(world: World, root: Path, *names: str, **fields: Any) -> Project:
    known = tools(world)
    turns = [call(name, {"place": "Rome"}, f"t{number}") for number, name in enumerate(names)]
    spec = agent("main", script(*turns, "done"), tools=[known[name] for name in dict.fromkeys(names)])
    return project_of([spec], root=root, **fields)


def settled(result: RunResult) -> Any:
    """What is equal whenever the same happens: the results that models got, the errors, how it ended."""
    data = json.loads(json.dumps(result.to_dict()))
    parts = [part for message in data["messages"] for part in message["parts"]]
    returned = [(part["part_kind"], part.get("content"), part.get("outcome")) for part in parts]
    errors = [(each["type"], each["message"], each.get("hint")) for each in data["errors"]]
    return data["status"], data["output"], returned, errors, [each["reason"] for each in data["approvals"]]


ENDINGS = [
    "text",
    "data",
    "model",
    "picture",
    "with_content",
    "items",
    "nothing",
    "retry",
    "tool_error",
    "crash",
    "slow",
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ENDINGS)
def test_a_result_is_replayed_as_it_was(tmp_path: Path, name: str) -> None:
    world, limit = World(), {"tool_timeout": 0.05} if name == "slow" else {}
    recorder = recorder_for(project(world, tmp_path, name), tools=["*"])
    was = run(world, tmp_path, recorder, name, name, **limit)
    write_cassette(tmp_path / "c.json", recorder.cassette())

    world.online = False
    player = player_of(tmp_path / "c.json", project(world, tmp_path, name), again="again", tools=["*"])
    now = run(world, tmp_path, player, name, name, **limit)

    assert settled(now) == settled(was)
    assert world.asked == ["Rome", "Rome"]
    assert player.unused == []
    text = (tmp_path / "c.json").read_text()
    assert parse_cassette(text, "c.json").to_text() == text


def test_approval_is_asked_for_again_and_a_denied_call_is_not_answered(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_for(project(world, tmp_path, "asks"), tools=["*"])
    was = run(world, tmp_path, recorder, "asks")
    write_cassette(tmp_path / "c.json", recorder.cassette())
    assert len(was.approvals) == 1

    world.online = False
    again = player_of(tmp_path / "c.json", project(world, tmp_path, "asks"), again="again", tools=["*"])
    answers = Answers(["once"])
    assert settled(run(world, tmp_path, again, "asks", answers=answers)) == settled(was)
    assert len(answers.asked) == 1

    denied = player_of(tmp_path / "c.json", project(world, tmp_path, "asks"), again="again", tools=["*"])
    result = run(world, tmp_path, denied, "asks", answers=Answers(["deny"]))
    assert [record.tool for record in result.denials] == ["asks"]
    assert "paid" not in str(result.messages)


def test_parallel_calls_are_answered_whatever_order_they_end_in(tmp_path: Path) -> None:
    async def wait(place: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return f"waited in {place}"

    def linked() -> Project:
        calls = [call("wait", {"place": p, "seconds": s}, p) for p, s in (("Rome", 0.02), ("Oslo", 0), ("Rome", 0.02))]
        calls[2].tool_call_id = "third"
        return project_of([agent("main", script(calls, "done"), tools=[wait])], root=tmp_path)

    recorder = recorder_for(linked(), tools=["wait"])
    was = carry_out(Runtime(linked(), approvals="approve_all", transport=recorder))
    write_cassette(tmp_path / "c.json", recorder.cassette())
    numbers = [each["tool_call"] for each in json.loads((tmp_path / "c.json").read_text())["tools"]]

    player = player_of(tmp_path / "c.json", linked(), again="again", tools=["wait"])
    now = carry_out(Runtime(linked(), approvals="approve_all", transport=player))

    assert numbers == ["call_1", "call_2", "call_3"]
    assert settled(now) == settled(was)


def test_other_tools_and_agents_run_for_real(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_for(project(world, tmp_path, "text", "data"), tools=["te*"])
    run(world, tmp_path, recorder, "text", "data")
    write_cassette(tmp_path / "c.json", recorder.cassette())

    player = player_of(tmp_path / "c.json", project(world, tmp_path, "text"), again="again", tools=["te*"])
    run(world, tmp_path, player, "text", "data")

    assert len(world.asked) == 3


def test_a_call_without_a_recording_ends_the_run_and_says_where_the_tool_is(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_for(project(world, tmp_path, "text"))
    run(world, tmp_path, recorder, "text")
    write_cassette(tmp_path / "c.json", recorder.cassette())

    player = player_of(tmp_path / "c.json", project(world, tmp_path, "text"), again="llm-do again", tools=["text"])
    result = run(world, tmp_path, player, "text")

    (miss,) = [each for each in result.errors if each.type == "CassetteMissError"]
    assert result.status == "provider_failed"
    assert "the cassette has no result of text" in miss.message
    assert "`cassette.tools` has named text only since the recording" in str(miss.hint)
    assert "llm-do again" in str(miss.hint)


def test_edited_arguments_are_a_miss_with_a_diff(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_for(project(world, tmp_path, "text"), tools=["text"])
    run(world, tmp_path, recorder, "text")
    write_cassette(tmp_path / "c.json", recorder.cassette())
    data = json.loads((tmp_path / "c.json").read_text())
    data["tools"][0]["args"] = {"place": "Oslo"}
    (tmp_path / "c.json").write_text(json.dumps(data))

    player = player_of(tmp_path / "c.json", project(world, tmp_path, "text"), again="again", tools=["text"])
    result = run(world, tmp_path, player, "text")

    assert "its arguments have changed since the recording" in str(result.error)
    assert '+ "place": "Rome"' in str(getattr(result.error, "block", ""))


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"result": "x"}, "`result` isn't known here"),
    ({"failed": {"type": "X", "message": "y"}}, "a tool's result has one of"),
    ({"returned": None, "args": ["x"]}, "`args` has to be an object"),
    ({"content": [{"kind": "binary"}]}, "`content` is nothing that a tool returns"),
    ({"content": 5}, "`content` is nothing that a tool returns"),
    ({"tool": 7}, "`tool` has to be a text, not 7"),
    ({"returned": ..., "timed_out": False}, "`timed_out` can only be true"),
    ({"returned": ..., "failed": {"type": "X"}}, "`message` is missing in the failure"),
    ({"returned": ...}, "a tool's result has one of"),
    ({"path": ...}, "`path` is missing in the tool's result"),
]


@pytest.mark.parametrize(("change", "message"), FAULTS, ids=str)
def test_a_result_that_was_edited_wrongly_is_named_with_its_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    row = {"call": "1", "path": "main", "tool": "text", "tool_call": "call_1", "args": {}, "returned": "x"} | change
    row = {name: value for name, value in row.items() if value is not ...}
    data = {"cassette": 1, "made": "", "models": {}, "agents": {}, "exchanges": [], "tools": [row]}

    with pytest.raises(UsageError) as raised:
        parse_cassette(json.dumps(data, indent=1), "c.json")

    assert message in raised.value.message
    assert raised.value.line is not None
    assert raised.value.line >= 7


def test_a_result_that_changes_a_context_can_not_be_recorded(tmp_path: Path) -> None:
    def learn(place: str) -> Update:
        """Learn."""
        return Update("learnt", place=place)

    linked = project_of([agent("main", script(call("learn", place="Rome"), "done"), tools=[learn])], root=tmp_path)
    result = carry_out(Runtime(linked, approvals="approve_all", transport=recorder_for(linked, tools=["learn"])))

    assert isinstance(result.error, UsageError)
    assert "the result of learn can't be recorded" in result.error.message


@pytest.mark.slow
def test_a_server_of_which_tools_are_recorded_is_neither_started_nor_asked(tmp_path: Path) -> None:
    def linked(command: list[str]) -> Project:
        spec = agent("main", script(call("small_add", {"a": 1, "b": 2}), call("small_fail", {"why": "rain"}), "done"))
        server = BuiltinToolset("small", {"type": "mcp", "timeout": 60, "command": command})
        return project_of([agent("main", spec.model, toolsets=["small"])], root=tmp_path, toolsets={"small": server})

    here = linked([sys.executable, str(SERVER)])
    recorder = recorder_for(here, tools=["small_*"])
    was = carry_out(Runtime(here, approvals="approve_all", transport=recorder))
    write_cassette(tmp_path / "c.json", recorder.cassette())

    gone = linked(["/nowhere/at/all"])
    player = player_of(tmp_path / "c.json", gone, again="again", tools=["small_*"])
    with no_network():
        now = carry_out(Runtime(gone, approvals="approve_all", transport=player))

    assert was.status == "completed", was.error
    assert settled(now) == settled(was)


TOOLS = '''
def clock() -> str:
    """The time."""
    import pathlib
    return pathlib.Path(__file__).with_name("time.txt").read_text()
TOOLS = [clock]
'''


def desk(root: Path, cassette: Any) -> Path:
    (root / "main.agent").write_text("---\nname: main\nmodel: script:a.yaml\ntools: [clock]\n---\nHi.\n")
    (root / "a.yaml").write_text("- tools: [{name: clock, args: {}}]\n- text: 'It is {tool}'\n")
    (root / "tools.py").write_text(TOOLS)
    (root / "time.txt").write_text("noon")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}
    (root / "project.json").write_text(json.dumps({**manifest, "cassette": cassette}))
    return root


def test_the_manifest_names_tools_and_a_test_may_name_others(tmp_path: Path) -> None:
    root = desk(tmp_path, {"tools": ["clo*"]})
    play(root, "Go", cassette=root / "c.json", record_cassette=True)
    (root / "time.txt").write_text("midnight")

    assert play(root, "Go", cassette=root / "c.json").output == "It is noon"
    assert play(root, "Go", cassette=root / "c.json", recorded_tools=[]).status == "provider_failed"


@pytest.mark.parametrize(
    ("cassette", "code", "message"),
    [
        ({"tool": ["x"]}, "LD120", "unknown key `tool`"),
        ({"tools": "weather"}, "LD", "list"),
        ({"tools": [1]}, "LD", "text"),
        ({"ignore": ["(["]}, "LD", "(["),
        (["weather"], "LD", "object"),
    ],
)
def test_the_manifests_setting_is_read_strictly(tmp_path: Path, cassette: Any, code: str, message: str) -> None:
    with pytest.raises(LinkError) as raised:
        Project.load(desk(tmp_path, cassette))
    found = raised.value.diagnostics[0]
    assert found.code.startswith(code)
    assert message in f"{found.message} {found.hint}"
    assert found.place.file == "project.json"
