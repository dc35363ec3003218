"""More runs for the tests of durable runs: media, MCP servers, compaction, budgets, time-outs, cancelled branches."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturn,
    UserPromptPart,
)

from llm_do import AgentArgs, Attachment, HookPoint, Project, register_model_factory, tool
from llm_do.flows import ParallelGroup, Swarm
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.project import EntrySpec, RuntimeSettings
from llm_do.project.registry import Registered, Registry
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.context.call_context import current_call
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script

__all__ = ["MORE_SCENARIOS", "calls_of_work", "flow_project", "note_effect", "worker"]

SERVER = Path(__file__).parents[1] / "toolsets" / "mcp_servers" / "plain_server.py"
PICTURE = b"\x89PNG\r\n\x1a\nnot really"


def note_effect(root: Path, item: str) -> None:
    """Note an effect."""
    with (root / "effects").open("a") as file:
        file.write(f"{item}\n")


def calls_of_work(*items: str) -> list[Any]:
    """Calls of the tool `work`."""
    return [call("work", {"item": item}, item) for item in items]


def work(root: Path) -> Any:
    """A tool that has an effect and changes the thread's state."""

    @tool(approval="allow")
    async def work(item: str) -> str:
        """Work on an item."""
        note_effect(root, item)
        await asyncio.sleep(0)
        current_call().thread.state.setdefault("done", {})[item] = True
        return f"worked on {item}"

    return work


def worker(name: str, root: Path, *items: str) -> AgentSpec:
    """An agent that works on these items."""
    return agent(name, script(calls_of_work(*items), f"{name}'s"), tools=[work(root)])


def flow_project(flow: Any, root: Path, *agents: AgentSpec, **settings: Any) -> Project:
    """A project whose entry is a flow."""
    names = {spec.name: Registered(spec.name, "agent", spec) for spec in agents}
    names[flow.name] = Registered(flow.name, "flow", flow)
    return Project(root, EntrySpec("flow", flow.name), Registry(names), settings=RuntimeSettings(**settings))


class Shown(AgentArgs):
    """An input with a picture."""

    input: str = ""

    def prompt_messages(self) -> list[Any]:
        return [self.input, Attachment("photo.png", data=PICTURE, media_type="image/png")]


def _pictures(messages: Any) -> list[bytes]:
    """The pictures that a model is sent."""
    parts = [part for message in messages for part in message.parts]
    items = [item for part in parts if isinstance(part, UserPromptPart) for item in part.content]
    items += [part.content for part in parts if part.part_kind == "tool-return"]
    return [item.data for item in items if isinstance(item, BinaryContent)]


def _media(root: Path) -> Project:
    @tool(approval="allow")
    async def photograph(item: str) -> ToolReturn:
        """Photograph an item."""
        note_effect(root, item)
        return ToolReturn(f"a picture of {item}", content=["see", BinaryContent(PICTURE, media_type="image/png")])

    @tool(approval="allow")
    async def scan(item: str) -> BinaryContent:
        """Scan an item."""
        note_effect(root, item)
        return BinaryContent(PICTURE, media_type="image/png")

    turns = (
        [call("photograph", {"item": "p1"}, "p1"), call("scan", {"item": "p2"}, "p2")],
        calls_of_work("p3"),
        "seen",
    )

    def answer(messages: Any, info: Any) -> Any:
        number = sum(message.kind == "response" for message in messages)
        pictures = _pictures(messages)
        right = len(pictures) == (3 if number else 1) and set(pictures) == {PICTURE}
        return turns[number] if right else ValueError(f"the pictures are {pictures}")

    spec = agent("main", script(answer), tools=[photograph, scan, work(root)], input_model=Shown)
    return project_of([spec], root=root)


def _mcp(root: Path) -> Project:
    server = BuiltinToolset("small", {"type": "mcp", "command": [sys.executable, str(SERVER)], "timeout": 60})
    turns = (
        [*calls_of_work("m1"), call("add", {"a": 1, "b": 2}, "a1"), call("fail", {"why": "because"}, "f1")],
        call("add", {"a": 3, "b": 4}, "a2"),
        calls_of_work("m2"),
    )
    spec = agent("main", script(*turns, "added"), tools=[work(root)], toolsets=["small"])
    return project_of([spec], root=root, toolsets={"small": server})


def _compaction(root: Path) -> Project:
    @tool(approval="allow")
    async def look(item: str) -> str:
        """Look at an item."""
        note_effect(root, item)
        return f"{item} " + "word " * 700

    register_model_factory("durablesummary", lambda _: script("They looked."))
    items = ("l1", "l2", "l3", "l4")
    turns = (*(call("look", {"item": item}, item) for item in items), "done")

    def next_turn(messages: Any, info: Any) -> Any:
        seen = (root / "effects").read_text().split() if (root / "effects").exists() else []
        return turns[len(set(seen))]

    compaction = {"max_tokens": 1800, "strategies": ["summarization"], "preserve_recent": 2}
    spec = agent(
        "main", script(next_turn), tools=[look], compaction={**compaction, "summary_model": "durablesummary:x"}
    )
    return project_of([spec], root=root)


def _rate_limit(root: Path) -> Project:
    """A 429 that asks to wait, at each of three requests."""

    def limited(name: str, answer: Any) -> Callable[[Any, Any], Any]:
        def turn(messages: Any, info: Any) -> Any:
            file = root / f"limited-{name}"
            if file.exists():
                return answer
            file.touch()
            return ModelHTTPError(429, "m", {"error": "slow down"}, headers={"retry-after": "0"})

        return turn

    turns = (limited("1", calls_of_work("r1")), limited("2", calls_of_work("r2")), limited("3", "answer"))
    return project_of([agent("main", script(*turns), tools=[work(root)])], root=root)


def _budget(root: Path) -> Project:
    """A run that stops at its budget of requests; what it sends is counted."""

    def counted(messages: Any, info: Any) -> Any:
        note_effect(root, "request")
        number = sum(message.kind == "response" for message in messages)
        return calls_of_work(f"b{number}")

    spec = agent("main", script(counted), tools=[work(root)], max_steps=50)
    return project_of([spec], root=root, budget={"requests": 4}, loop_threshold=0)


def _timeout(root: Path) -> Project:
    @tool(approval="allow", timeout=0.05)
    async def wait(item: str) -> str:
        """Wait for something that doesn't come."""
        note_effect(root, item)
        await asyncio.Event().wait()
        return item

    turns = ([call("wait", {"item": "t1"}, "t1"), *calls_of_work("t2")], call("wait", {"item": "t3"}, "t3"))
    return project_of([agent("main", script(*turns, "over"), tools=[wait, work(root)])], root=root)


def _cancelled(root: Path) -> Project:
    """A parallel group one of whose members fails, which cancels the other while its tool runs."""
    waiting = asyncio.Event()

    @tool(approval="allow", repeatable=True)
    async def wait(item: str) -> str:
        """Wait for something that doesn't come."""
        waiting.set()
        await asyncio.Event().wait()
        return item

    async def fail(messages: Any, info: Any) -> Any:
        await waiting.wait()
        return ValueError("no more")

    a = agent("a", script(calls_of_work("a1"), call("wait", {"item": "w"}, "w1"), "unused"), tools=[work(root), wait])
    b = agent("b", script(calls_of_work("b1"), fail), tools=[work(root)])
    group = ParallelGroup("both", [a, b], on_error="cancel")
    return flow_project(group, root, a, b)


def _collected(root: Path) -> Project:
    """A parallel group one of whose members fails, and whose others carry on; its tools are retried."""
    a = agent("a", script(calls_of_work("a1"), ValueError("no")), tools=[work(root)])
    b = worker("b", root, "b1", "b2")
    return flow_project(ParallelGroup("both", [a, b], on_error="collect"), root, a, b)


def _swarm(root: Path) -> Project:
    """A swarm whose agents hand over, as a flow within a flow."""
    first = agent(
        "first",
        script(calls_of_work("f1"), call("transfer_to_second", {"reason": "x"}, "t1"), "unused"),
        tools=[work(root)],
    )
    second = worker("second", root, "s1")
    swarm = Swarm([first, second], mode="handoff", name="swarm")
    last = worker("last", root, "l1")
    names = {spec.name: Registered(spec.name, "agent", spec) for spec in (first, second, last)}
    names["swarm"] = Registered("swarm", "flow", swarm)
    names["flow"] = Registered("flow", "flow", Swarm([last], flow="last", name="flow"))

    async def main(input: str, ctx: Any) -> str:
        return f"{await ctx.call('swarm', input)}, {await ctx.call('flow', input)}"

    return Project(root, EntrySpec("function", "main", main), Registry(names), settings=RuntimeSettings())


def _plan_again(root: Path) -> Project:
    """A plan whose planner revises it after its first step."""
    flow = FlowSpec("flow", mode="plan", agents=("p", "e", "s"))
    planner = agent("p", script("- one\n- two\n- three"))
    executor = agent("e", script([*calls_of_work("e1"), *calls_of_work("e2")], "done"), tools=[work(root)])
    return flow_project(flow, root, planner, executor, agent("s", script("the answer")))


def _conditional(root: Path) -> Project:
    """A flow that repeats an agent, then works on each item of a list, and chooses what comes last."""

    def parts(text: str) -> dict[str, Any]:
        """Name the parts."""
        return {"items": ["i1", "i2"], "rounds": text}

    def judge(text: str) -> dict[str, Any]:
        """Approve the second round."""
        rounds = text.count("drafter's") + text.count("again")
        return {"approved": rounds > 1, "text": f"{text} again"}

    def draft(messages: Any, info: Any) -> Any:
        prompt = next(part.content for message in messages for part in message.parts if part.part_kind == "user-prompt")
        return f"{prompt} drafter's"

    drafter = agent("drafter", script(calls_of_work("d1"), draft), tools=[work(root)])
    flow = Swarm(
        [drafter, judge, parts, worker("each", root, "e1"), worker("last", root, "l1"), worker("never", root, "n1")],
        steps=[
            {"repeat": "drafter >> judge", "until": "output.approved", "at_most": 3},
            {"when": "output.approved", "then": "parts", "else": "never"},
            {"for_each": "output.items", "do": "each", "concurrency": 2},
            "last",
        ],
        name="flow",
    )
    return flow_project(flow, root)


def _hooks(root: Path) -> Project:
    """Hooks whose replacements differ with each call of theirs."""

    def number(agent: AgentSpec, messages: list[ModelMessage]) -> list[ModelMessage]:
        note_effect(root, f"pre{len(messages)}")
        return [ModelRequest(parts=[UserPromptPart(f"of {len(messages)}")]), *messages]

    def sign(agent: AgentSpec, response: ModelResponse) -> ModelResponse:
        note_effect(root, "post")
        return replace(response, parts=[TextPart("signed "), *response.parts])

    hooks = [(HookPoint.PRE_LLM_CALL, number), (HookPoint.POST_LLM_CALL, sign)]
    inner = agent("inner", script(calls_of_work("i1"), "inner's"), tools=[work(root)], hooks=hooks)
    turns = ([*calls_of_work("m1"), call("inner", {"input": "x"}, "c1")], calls_of_work("m2"), "answer")
    return project_of(
        [agent("main", script(*turns), tools=[work(root)], toolsets=["inner"], hooks=hooks), inner], root=root
    )


def _memory(root: Path) -> Project:
    """An agent that remembers and forgets, and a function that does, too."""
    first = {"text": "The first.", "scope": "project"}
    own = {"id": hashlib.sha256(b"The first.").hexdigest()[:8], "scope": "project"}
    both = [
        call("remember", {"text": "The second.", "scope": "project"}, "r2"),
        call("remember", {"text": "The third.", "scope": "thread"}, "r3"),
    ]
    turns = (call("remember", first, "r1"), both, [call("forget", own, "f1"), *calls_of_work("w1")])
    helper = agent(
        "helper", script(*turns, call("recall", {}, "c1"), "answer"), tools=[work(root)], toolsets=["memories"]
    )

    async def main(input: str, ctx: Any) -> str:
        said = [await ctx.call("helper", input), await ctx.call("remember", first), await ctx.call("forget", own)]
        return " ".join(said)

    toolsets = {"memories": BuiltinToolset("memories", {"type": "memory"})}
    return project_of([helper], main, root=root, toolsets=toolsets)


MORE_SCENARIOS: dict[str, Callable[[Path], Project]] = {
    "media": _media,
    "mcp": _mcp,
    "compaction": _compaction,
    "rate_limit": _rate_limit,
    "budget": _budget,
    "timeout": _timeout,
    "cancelled": _cancelled,
    "collected": _collected,
    "swarm": _swarm,
    "plan_again": _plan_again,
    "conditional": _conditional,
    "hooks": _hooks,
    "memory": _memory,
}
"""Scenarios by name; `budget` and `cancelled` end with an error."""
