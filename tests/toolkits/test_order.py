"""Calls to one toolkit run one after the other and stop at a failure; everything else runs in parallel."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from llm_do import HookPoint, ToolError, Toolkit, Update
from tests.support.history import strict
from tests.support.runs import Answers, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.toolkits.kits import play

Do = Literal["ok", "raise", "fail", "error"]


class Steps:
    """A toolkit whose tools tell what ran when, and fail as they are asked to."""

    def __init__(self, name: str = "steps") -> None:
        self.kit = Toolkit(name, context={"n": 0})
        self.log: list[str] = []
        self.running = 0
        self.most = 0
        self.kit.tool(self.step)
        self.kit.tool(timeout=0.01)(self.slow)
        self.kit.tool(self.work)

    async def step(self, ctx: Any, do: Do = "ok", mark: str = "") -> Any:
        """Do it."""
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            self.log.append(f"{mark}{ctx.state['n']}")
            await asyncio.sleep(0)
            if do == "raise":
                raise RuntimeError("boom")
            if do == "error":
                raise ToolError("no")
            if do == "fail":
                return Update.failed("no")
            await asyncio.sleep(0)
            return "ok", {"n": ctx.state["n"] + 1}
        finally:
            self.running -= 1

    async def slow(self) -> None:
        """Never ends."""
        await asyncio.Event().wait()

    def work(self, ctx: Any) -> Any:
        """In a worker thread."""
        self.log.append(f"thread {ctx.state['n']}")
        return Update("ok", n=ctx.state["n"] + 1)


def test_each_call_sees_what_the_one_before_it_changed() -> None:
    steps = Steps()
    played = play([call("step"), call("work"), call("step"), call("work")], "done", kits=[steps.kit])
    assert steps.log == ["0", "thread 1", "2", "thread 3"]
    assert steps.most == 1
    assert played.result.toolkits["steps"].context["n"] == 4


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (call("step", do="raise"), "failed"),
        (call("step", do="fail"), "failed"),
        (call("step", do="error"), "failed"),
        (call("slow"), "timed_out"),
        (call("step", do="unknown"), "refused"),
        (call("step", "{broken"), "refused"),
        (call("step", "[1]"), "refused"),
    ],
)
def test_after_a_failure_the_rest_of_that_toolkits_calls_do_not_run(bad: Any, status: str) -> None:
    steps, other = Steps(), Steps("other")
    other.kit.name = "other"

    def plain() -> str:
        """A plain tool."""
        return "plain"

    played = play(
        [call("step", mark="a"), bad, call("plain"), call("step", mark="b"), call("o_step", mark="c"), call("work")],
        [call("step", mark="d")],
        "done",
        kits=[steps.kit, ref(other.kit, "o")],
        tools=[plain],
    )
    outputs = played.outputs
    assert outputs[0] == "ok"
    assert outputs[2] == "plain"
    assert (
        outputs[3] == outputs[5] == f"not run: {bad.tool_name}, called before it in the same response, did not succeed"
    )
    assert outputs[4] == "ok"
    assert outputs[6] == "ok"
    assert sorted(played.statuses) == sorted(["success", status, "success", "refused", "success", "refused", "success"])
    assert [mark for mark in steps.log if mark[0] in "abd"] == ["a0", "d1"]


def ref(kit: Toolkit, prefix: str) -> Any:
    """The toolkit under a prefix."""
    spec = agent("x", None)
    spec.add_toolkit(prefix, kit)
    return spec.toolsets[0]


def test_the_calls_that_did_not_run_name_the_one_that_stopped_them_all() -> None:
    kit = Toolkit("kit")
    for name in ("one", "two", "three"):
        kit.add_tool(name, (lambda: Update.failed("no")) if name == "one" else (lambda: "ok"))
    played = play([call("one"), call("two"), call("three")], "done", kits=[kit])
    assert [outputs.split(",")[0] for outputs in played.outputs] == ["no", "not run: one", "not run: one"]


def test_a_denial_in_the_middle_of_a_batch_stops_the_rest_without_a_question() -> None:
    steps = Steps()
    person = Answers(["once", "deny", "once"])
    played = play(
        [call("step", mark="a"), call("step", mark="b"), call("step", mark="c")],
        call("step", mark="d"),
        "done",
        kits=[steps.kit],
        approvals=person,
    )
    assert played.statuses == ["success", "denied", "refused", "success"]
    assert [request.args["mark"] for request in person.asked] == ["a", "b", "d"]
    assert steps.log == ["a0", "d1"]


def test_nobody_is_asked_about_a_call_that_would_be_refused_and_no_hook_hears_of_it() -> None:
    kit = Toolkit("kit")
    kit.add_tool("free", lambda: "ok")
    kit.tool(lambda: "no", name="locked", required_states=["never"])  # type: ignore[call-overload]
    person, seen = Answers(["once"]), []
    played = play(
        call("locked"),
        "done",
        kits=[kit],
        approvals=person,
        hooks=[
            (HookPoint.PRE_TOOL_CALL, lambda **event: seen.append(event["tool_name"])),
            (HookPoint.POST_TOOL_CALL, lambda **event: seen.append(event["tool_name"])),
        ],
    )
    assert played.statuses == ["refused"]
    assert (person.asked, seen) == ([], [])


def test_the_state_is_changed_before_the_hook_after_the_call() -> None:
    kit, seen = Toolkit("kit"), []
    kit.tool(lambda: ("ok", {"a": 1}), name="go", enables_states=["on"])  # type: ignore[call-overload]

    def look(**_: Any) -> None:
        seen.append((kit.unlocked_states, kit.context.to_dict()))

    play(call("go"), "done", kits=[kit], hooks=[(HookPoint.PRE_TOOL_CALL, look), (HookPoint.POST_TOOL_CALL, look)])
    assert seen == [(frozenset(), {}), (frozenset({"on"}), {"a": 1})]


def test_different_toolkits_and_plain_tools_run_side_by_side() -> None:
    meeting: list[asyncio.Event] = []

    def waits(number: int) -> Any:
        async def wait() -> str:
            """Wait until all three are here."""
            while len(meeting) < 3:
                meeting.append(asyncio.Event())
            meeting[number].set()
            await asyncio.gather(*(event.wait() for event in meeting))
            return f"{number}"

        return wait

    one, two = Toolkit("one"), Toolkit("two")
    one.add_tool("first", waits(0))
    two.add_tool("second", waits(1))
    third = waits(2)
    third.__name__ = "third"
    played = play(
        [call("first"), call("second"), call("third")], "done", kits=[one, two], tools=[third], run_timeout=60
    )
    assert played.outputs == ["0", "1", "2"]


def test_cancelling_between_two_ordered_calls_runs_nothing_more_and_closes_the_history() -> None:
    kit, log = Toolkit("kit"), []

    async def main() -> Any:
        started = asyncio.Event()

        @kit.tool
        async def slow() -> str:
            """Never ends."""
            started.set()
            await asyncio.Event().wait()
            return "no"

        @kit.tool
        def after() -> str:
            """Must not run."""
            log.append("after")
            return "no"

        runtime = runtime_of([agent("main", script([call("slow"), call("after")], "done"), toolsets=[kit])])
        ear = heard(runtime)
        task = asyncio.ensure_future(runtime.execute("go"))
        await started.wait()
        runtime.interrupt()
        return await task, ear

    result, ear = asyncio.run(main())
    assert result.status == "interrupted"
    assert log == []
    assert [(event.tool_name, event.status) for event in ear.of("tool_result")] == [
        ("slow", "cancelled"),
        ("after", "cancelled"),
    ]
    strict(result.messages)
    assert result.toolkits["kit"].unlocked_states == frozenset()


def test_a_hook_that_aborts_the_run_lets_no_later_call_slip_through() -> None:
    kit, log = Toolkit("kit"), []
    kit.add_tool("one", lambda: "ok")
    kit.add_tool("two", lambda: log.append("two"))

    def abort(**event: Any) -> None:
        raise RuntimeError("stop")

    runtime = runtime_of(
        [
            agent(
                "main",
                script([call("one"), call("two")], "done"),
                toolsets=[kit],
                hooks=[(HookPoint.POST_TOOL_CALL, abort)],
            )
        ]
    )
    result = carry_out(runtime)
    assert result.status == "failed"
    assert log == []
    strict(result.messages)


def test_state_changes_are_events_between_call_and_result() -> None:
    steps = Steps()
    played = play(call("step"), "done", kits=[steps.kit])
    types = [event.type for event in played.ear.events if event.type in ("tool_call", "state_changed", "tool_result")]
    assert types == ["tool_call", "state_changed", "tool_result"]
    (event,) = played.ear.of("state_changed")
    assert (event.toolkit, event.updates, event.states) == ("steps", {"n": 1}, [])


def test_a_call_that_changes_nothing_is_no_change() -> None:
    kit = Toolkit("kit")
    kit.add_tool("look", lambda: "seen")
    assert not play(call("look"), "done", kits=[kit]).ear.of("state_changed")
