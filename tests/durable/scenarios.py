"""Runs of every kind for the tests of durable runs: each is built anew by whoever continues it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_ai.exceptions import ModelHTTPError

from llm_do import ApprovalDecision, ApprovalRequest, Project, Runtime, Toolkit, tool
from llm_do.flows import ParallelGroup, Swarm
from llm_do.project.flow_spec import FlowSpec
from llm_do.runtime.context.call_context import current_call
from llm_do.runtime.session.runtime_config import RuntimeConfig
from tests.durable.more_scenarios import (
    MORE_SCENARIOS,
    calls_of_work as _calls,
    flow_project as _flow,
    note_effect as _note,
    work as _work,
    worker as _worker,
)
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script

__all__ = ["SCENARIOS", "creates", "effects_of", "runtime_for"]


class Facts(BaseModel):
    title: str
    points: list[str]


def effects_of(root: Path) -> list[str]:
    """What tools have done so far, an item a line."""
    file = root / "effects"
    return file.read_text().split() if file.exists() else []


def _kit(root: Path) -> Toolkit:
    """A toolkit with a tool that unlocks another one."""
    kit = Toolkit("kit", context={})

    @kit.tool(enables_states=["open"], approval="allow")
    def unlock(item: str) -> str:
        """Unlock."""
        _note(root, item)
        return f"unlocked {item}"

    @kit.tool(required_states=["open"], approval="allow")
    def use(item: str) -> str:
        """Use."""
        _note(root, item)
        return f"used {item}"

    return kit


def _nested(root: Path) -> Project:
    work = _work(root)
    helper = agent("helper", script(_calls("h1"), "helped"), tools=[work])
    other = agent("other", script(_calls("o1", "o2"), "helped too"), tools=[work])
    turns = ([*_calls("m1"), call("helper", {"input": "x"}, "c1"), call("other", {"input": "y"}, "c2")], _calls("m2"))
    main = agent("main", script(*turns, "answer"), tools=[work], toolsets=["helper", "other"])
    return project_of([main, helper, other], root=root)


def _gather(root: Path) -> Project:
    work = _work(root)
    slow = agent("slow", script(_calls("s1"), "slow done"), tools=[work])
    quick = agent("quick", script("quick done"))

    def plain(number: int) -> int:
        _note(root, f"plain{number}")
        return number + 1

    async def main(input: str, ctx: Any) -> str:
        stamp = await ctx.step("stamp", lambda: len(effects_of(root)))
        both = await asyncio.gather(
            ctx.call("slow", f"at {stamp}"), ctx.call("quick", input), ctx.call("plain", {"number": 4})
        )
        return f"{both} {await ctx.call('slow', 'again')}"

    return project_of([slow, quick], main, root=root, tools={"plain": plain})


def _workflow(root: Path) -> Project:
    a, b, c = _worker("a", root, "a1"), _worker("b", root, "b1"), _worker("c", root, "c1", "c2")
    return _flow(Swarm([a, b, c], flow="a >> (b | c)", name="flow"), root, a, b, c)


def _parallel(root: Path) -> Project:
    a, b = _worker("a", root, "a1"), _worker("b", root, "b1", "b2")
    return _flow(ParallelGroup("both", [a, b]), root, a, b)


def _handoff(root: Path) -> Project:
    work = _work(root)
    second = agent("second", script(_calls("s1"), "second's"), tools=[work])
    first = agent(
        "first",
        script(_calls("f1"), call("transfer_to_second", {"reason": "x"}, "t1"), "unused"),
        tools=[work],
        handoffs=["second"],
    )
    return project_of([first, second], root=root)


def _team(root: Path) -> Project:
    a, b = _worker("a", root, "a1"), _worker("b", root, "b1")
    delegated = [call("delegate_to_a", {"task": "1"}, "1"), call("delegate_to_b", {"task": "2"}, "2")]
    lead = agent("lead", script(delegated, "led"))
    return _flow(Swarm([lead, a, b], mode="team", name="team"), root, lead, a, b)


def _gates(root: Path) -> Project:
    kit = _kit(root)
    turns = (
        [call("unlock", {"item": "k1"}, "k1"), call("use", {"item": "k2"}, "k2")],
        call("use", {"item": "k3"}, "k3"),
    )
    return project_of([agent("main", script(*turns, "answer"), toolsets=[kit])], root=root)


def _structured(root: Path) -> Project:
    answer = call("final_result", {"title": "t", "points": ["p"]}, "out")
    return project_of([agent("main", script(_calls("w1"), answer), tools=[_work(root)], output_type=Facts)], root=root)


def _retries(root: Path) -> Project:
    failed = root / "failed"

    def once(messages: Any, info: Any) -> Any:
        if not failed.exists():
            failed.touch()
            return ModelHTTPError(429, "m", {"error": "slow down"})
        return _calls("r1")

    return project_of([agent("main", script(once, _calls("r2"), "answer"), tools=[_work(root)])], root=root)


def _inner(root: Path) -> Project:
    """A tool whose code calls an agent, a toolkit's tool from Python, and a function that fails."""
    kit = _kit(root)

    def fail(item: str) -> str:
        _note(root, item)
        raise ValueError(f"no {item}")

    @tool(approval="allow")
    async def ask(item: str) -> str:
        """Ask the helper."""
        return str(await current_call().call("helper", item))

    async def main(input: str, ctx: Any) -> str:
        first = await ctx.call("kit::unlock", {"item": "k1"})
        try:
            await ctx.call("fail", {"item": "f1"})
        except ValueError as error:
            first = f"{first}, {error}"
        return f"{first}, {await ctx.call('lead', input)}, {await ctx.call('kit::use', {'item': 'k2'})}"

    helper = agent("helper", script(_calls("h1"), "helped"), tools=[_work(root)])
    lead = agent("lead", script(call("ask", {"item": "x"}, "a1"), _calls("w1"), "led"), tools=[ask, _work(root)])
    return project_of([lead, helper], main, root=root, tools={"fail": fail}, toolsets={"kit": kit})


def _dynamic(root: Path) -> Project:
    main = agent("main", None, tools=["work"], toolsets=["dynamic_agents"])
    return project_of([main], root=root, tools={"work": _work(root)}, generated_agents_dir=root / "made")


def creates(messages: Any, info: Any) -> Any:
    """The turns of an agent that creates another one and calls it twice, and of that one."""
    prompts = [part.content for each in messages for part in each.parts if part.part_kind == "user-prompt"]
    done = sum(each.kind == "response" for each in messages)
    if prompts[-1] != "go":
        return "made's" if done else _calls(f"{prompts[-1]}-work")
    made = call("agent_create", {"name": "made", "instructions": "Work.", "tools": ["work"]}, "c1")
    turns = (made, *(call("agent_call", {"agent": "made", "input": text}, text) for text in ("x1", "x2")))
    return turns[done] if done < len(turns) else "answer"


def _plan(root: Path) -> Project:
    flow = FlowSpec("flow", mode="plan", agents=("p", "e", "s"))
    planner = agent("p", script("- a\n- b"))
    return _flow(flow, root, planner, _worker("e", root, "e1"), agent("s", script("the answer")))


def _pay(root: Path) -> Any:
    def pay(item: str) -> str:
        """Pay for an item."""
        _note(root, item)
        return f"paid {item}"

    return pay


def _approvals(root: Path) -> Project:
    """Calls that need approval, side by side in two agents and of an agent, and a question to the person."""
    pay = _pay(root)
    clerk = agent("clerk", script(call("pay", {"item": "c1"}, "c1"), "the clerk's"), tools=[pay])
    question = call("ask_user", {"question": "Which one?", "choices": ["red", "blue"]}, "u1")
    turns = ([call("pay", {"item": "m1"}, "m1"), call("clerk", {"input": "x"}, "k1")], [question, *_calls("w1")])
    main = agent("main", script(*turns, "answer"), tools=[pay, _work(root)], toolsets=["clerk", "ask_user"])
    return project_of([main, clerk], root=root, agent_calls_require_approval=True)


async def _allow(request: ApprovalRequest) -> ApprovalDecision:
    await asyncio.sleep(0)
    return ApprovalDecision("once")


async def _choose(question: Any) -> str:
    await asyncio.sleep(0)
    return question.choices[1]


SCENARIOS: dict[str, Callable[[Path], Project]] = {
    "nested": _nested,
    "gather": _gather,
    "workflow": _workflow,
    "parallel": _parallel,
    "handoff": _handoff,
    "team": _team,
    "gates": _gates,
    "structured": _structured,
    "retries": _retries,
    "inner": _inner,
    "dynamic": _dynamic,
    "plan": _plan,
    "approvals": _approvals,
    **MORE_SCENARIOS,
}


def runtime_for(name: str, root: Path, **options: Any) -> Runtime:
    """Build a scenario's runtime; its runs are durable."""
    project = SCENARIOS[name](root)
    if name == "approvals":
        options = {"approvals": _allow, "ask_user": _choose, **options}
    options = {"approvals": "approve_all", "durable": True, "retry_delay": 0.0, **options}
    if name == "dynamic":
        options["model"] = script(creates)
    return Runtime(project, config=RuntimeConfig.of(project, **options))
