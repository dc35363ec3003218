"""Runs that are replayed at once: code that isn't the same twice is found, and what is the same passes."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from llm_do import tool
from llm_do.errors import ReplayError
from llm_do.linker.test_linker import check_with_tests
from llm_do.testing import Played, play
from llm_do.testing.cases.case import Plan, all_cases
from llm_do.testing.cases.results import CaseResult
from llm_do.testing.cases.running import run_case
from tests.durable.scenarios import SCENARIOS, creates, effects_of
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row, sampled

MAIN = '''
import asyncio
import itertools
from pathlib import Path

from llm_do import CallContext, tool

NUMBERS = itertools.count()


def moment() -> int:
    """Something that isn't the same twice, such as the time."""
    file = Path("moment")
    number = len(file.read_text()) if file.exists() else 0
    file.write_text("x" * (number + 1))
    return number


@tool(approval="allow")
def note(text: str) -> str:
    """Note a text."""
    with open("notes", "a") as file:
        file.write(f"{text}\\n")
    return "noted"


TOOLS = [note]


async def main(input, ctx: CallContext) -> str:
    match input.input:
        case "good":
            now = await ctx.step("moment", moment)
            return await ctx.call("writer", f"at {now}, number {next(NUMBERS)}")
        case "input":
            return await ctx.call("writer", f"at {moment()}")
        case "caught":
            try:
                return await ctx.call("writer", f"at {moment()}")
            except Exception:
                return "caught"
        case "gathered":
            return str(await asyncio.gather(ctx.call("writer", "a"), ctx.call("writer", f"b{moment()}")))
        case "output":
            return f"{await ctx.call('writer', 'x')} {moment()}"
        case "fewer":
            if moment() == 0:
                await ctx.call("writer", "first")
            return await ctx.call("writer", "second")
        case "more":
            if moment() == 1:
                await ctx.call("reader", "first")
            return await ctx.call("writer", "second")
        case "step":
            return str(await ctx.step(f"step {moment()}", lambda: 1))
        case "status":
            if moment():
                raise ValueError("the second time")
            return "the first time"
        case "too late":
            try:
                async with asyncio.timeout(0.0001):
                    return await ctx.call("writer", "x")
            except TimeoutError:
                return "too late"
        case "thread":
            ctx.thread.state["times"] = ctx.thread.state.get("times", 0) + 1
            return await ctx.call("writer", f"time {ctx.thread.state['times']}")
        case _:
            raise ValueError("always")
'''
AGENT = "---\nname: {}\nmodel: script:answers.yaml\ntools: [note]\n---\nWrite.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text(MAIN)
    for name in ("writer", "reader"):
        (tmp_path / f"{name}.agent").write_text(AGENT.format(name))
    (tmp_path / "answers.yaml").write_text("- tools: [{name: note, args: {text: a}}]\n- text: fine\n")
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"function": "main.py:main"}, "agent_files": ["*.agent"], "python_files": ["main.py"]}'
    )
    return tmp_path


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(MAIN.split("\n"), 1) if text in line)


def run_all(root: Path, tests: str, plan: Plan) -> list[CaseResult]:
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests/a.test.yaml").write_text(f"tests:\n{tests}")
    checked = check_with_tests(root)
    assert not [each for each in checked.diagnostics if each.severity == "error"]
    return [run_case(root, case, plan).result for case in all_cases(checked.tests)]


PASSING = """\
  - {name: good, input: good, expect: {tools: [note], output: {equals: fine}}}
  - {name: too late, input: too late, expect: {output: {equals: too late}}}
  - {name: fails, input: fails, expect: {status: failed}}
  - {name: on a thread, inputs: [thread, thread], thread: t, expect: {files: {notes: {contains: a}}}}
"""


def test_what_is_the_same_twice_passes_and_repeats_no_effect(root: Path) -> None:
    results = run_all(root, PASSING, Plan(replays=True))

    assert [(each.name, each.status, each.failures) for each in results] == [
        (name, "passed", ()) for name in ("good", "too late", "fails", "on a thread")
    ]
    assert [each.tool_calls for each in results if each.name in ("good", "on a thread")] == [1, 2]
    # Expectations are checked as without a replay.
    [failed] = run_all(root, "  - {name: good, input: good, expect: {output: {equals: bad}}}\n", Plan(replays=True))
    assert failed.status == "failed"
    assert "replay" not in failed.failures[0].what


@each_row(
    "input, where, what",
    [
        ("input", 'f"at {moment()}")', "it calls writer with another input than before"),
        ("caught", "            except Exception", "it calls writer with another input than before"),
        ("gathered", "asyncio.gather", "it calls writer with another input than before"),
        ("output", "async def main", "its result isn't what it was before"),
        ("fewer", "async def main", "it no longer comes to 3 steps that were finished, the first of them request 1"),
        ("more", '"reader", "first"', "it calls reader, which it didn't before"),
        ("step", 'ctx.step(f"step', "it comes to the step 'step 1' of main, which it didn't before"),
        ("status", "async def main", "it ended before with the status completed, and now with failed"),
    ],
)
@pytest.mark.slow
def test_what_is_not_the_same_twice_fails_with_its_place(input: str, where: str, what: str, root: Path) -> None:
    case = f"  - {{name: n, input: {input}, expect: {{status: failed}}}}\n"

    [result] = run_all(root, case, Plan(replays=True))

    [failure] = result.failures
    assert result.status == "failed"
    assert failure.what.startswith(f"its replay differs: {what}")
    line = line_of(where) - (1 if input == "caught" else 0)
    assert (str(failure.file), failure.line) == ("main.py", line)
    assert "ctx.step" in (failure.hint or "")
    if "another input" in what:
        assert failure.block is not None
        assert failure.block.splitlines()[:2] == ["--- run", "+++ replay"]


def test_a_replay_may_be_kept_in_a_file(tmp_path: Path) -> None:
    played = play(
        project_of([agent("main", script("fine"))], root=tmp_path), "go", replay=True, store=tmp_path / "runs.db"
    )
    assert played.output == "fine"
    assert (tmp_path / "runs.db").exists()


def test_a_conversation_ends_at_the_turn_that_differs(root: Path) -> None:
    case = "  - {name: n, inputs: [good, input, good], expect: {}}\n"

    [result] = run_all(root, case, Plan(replays=True))

    assert result.failures[0].what == "its replay differs: it calls writer with another input than before"
    assert result.tool_calls == 2  # the third input wasn't run


def test_instructions_that_change_are_shown_as_a_difference(tmp_path: Path) -> None:
    numbers = itertools.count()
    main = agent("main", script("fine"), instructions=lambda: f"It is {next(numbers)} o'clock.")

    with pytest.raises(ReplayError) as caught:
        play(project_of([main], root=tmp_path), "go", replay=True)

    assert caught.value.difference == "request 1 of main isn't what was sent before: its instructions changed"
    assert caught.value.requests is not None
    assert "run.durable" not in str(caught.value)


def test_what_was_cancelled_is_not_asked_for_again_and_is_no_difference(tmp_path: Path) -> None:
    running: list[asyncio.Event] = []

    @tool(approval="allow")
    async def wait(item: str) -> str:
        """Wait."""
        running[0].set()
        await asyncio.Event().wait()
        return item

    async def fail(messages: Any, info: Any) -> Any:
        await running[0].wait()
        return ValueError("no")

    async def main(input: str, ctx: Any) -> str:
        running[:] = [asyncio.Event()]
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.call("waits", "x"))
            group.create_task(ctx.call("fails", "x"))
        return "unreached"

    waits = agent("waits", script(call("wait", {"item": "a"}, "w1"), "unused"), tools=[wait])
    fails = agent("fails", script(fail))
    played = play(project_of([waits, fails], main, root=tmp_path), "go", replay=True)
    assert played.status == "failed"
    assert [each.status for each in played.calls] == ["cancelled"]


@pytest.mark.parametrize("name", sampled(SCENARIOS))
def test_runs_of_every_kind_are_the_same_twice(name: str, tmp_path: Path) -> None:
    def played(folder: str, *, replay: bool) -> tuple[Played, list[str]]:
        root = tmp_path / folder
        root.mkdir()
        options: Any = {"model": script(creates)} if name == "dynamic" else {}
        run = play(SCENARIOS[name](root), "go", replay=replay, approvals="approve_all", **options)
        return run, sorted(effects_of(root))

    (once, effects), (twice, same) = played("once", replay=False), played("twice", replay=True)

    assert (once.status, once.output, effects) == (twice.status, twice.output, same)
    types = [event.type for event in twice.events]
    assert types.count("run_finished") + types.count("run_failed") == types.count("run_resumed") == 1


@each_row(
    "options, why",
    [
        ({"record_cassette": True, "cassette": "c.json"}, "a cassette can't be recorded in a run that is replayed"),
        ({"record": False}, "`record` can't be False in a run that is replayed"),
    ],
)
def test_what_does_not_go_together_is_refused(options: Any, why: str, root: Path) -> None:
    with pytest.raises(ValueError, match=why):
        play(root, "good", replay=True, **options)
