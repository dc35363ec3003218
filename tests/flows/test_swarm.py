"""Flows in code: what is refused on creation, and the public signatures."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any

import pytest

import llm_do
import llm_do.flows
import llm_do.messages
from llm_do import AgentSpec, LinkError, Swarm, run
from llm_do.flows import FlowSpec, ParallelGroup, SerialGroup, SwarmNode
from tests.support.runs import agent
from tests.support.scripted import script
from tests.support.tables import each_row


def spec(name: str) -> AgentSpec:
    return agent(name, script(name))


def clashing() -> AgentSpec:
    def delegate_to_w(text: str) -> str:
        """Do it."""
        return text

    return AgentSpec("lead", tools=[delegate_to_w])


@each_row(
    "make, message, column",
    [
        (lambda: Swarm([spec("a")], flow="a >>"), "a name is missing after `>>` at column 5 of 'a >>'", 5),
        (lambda: Swarm([spec("a")], flow="a >> b"), "the flow has no member `b` at column 6", 6),
        (lambda: Swarm([spec("a")], flow="a >> a"), "`a` is a step of the flow twice at column 6", 6),
        (lambda: Swarm([spec("a"), spec("b")], flow="a"), "its expression never names it", 1),
        (lambda: Swarm([spec("a"), spec("a")]), "two different members of the flow 'swarm' are called 'a'", 1),
        (lambda: Swarm(["a", "a"]), "`a` is listed twice", 1),
        (lambda: Swarm([]), "has no members", 1),
        (lambda: Swarm([], mode="team"), "has no members", 1),
        (lambda: Swarm([clashing(), spec("w")], mode="team"), "has a tool called `delegate_to_w`", 1),
        (lambda: Swarm([len, spec("a")], mode="team"), "`len` is not an agent, which mode team needs", 1),
        (lambda: Swarm([spec("a"), Swarm([spec("b")], name="in")], mode="handoff"), "`in` is not an agent", 1),
        (lambda: ParallelGroup("g", []), "has no members", 1),
        (lambda: SerialGroup("g", []), "has no members", 1),
    ],
)
def test_a_flow_that_cannot_run_is_refused_on_creation(make: Any, message: str, column: int) -> None:
    with pytest.raises(LinkError) as raised:
        make()

    assert message in raised.value.message
    assert "\n" not in raised.value.message
    assert raised.value.diagnostics[0].column == column


@each_row(
    "make, message",
    [
        (lambda: Swarm([spec("a")], mode="ring"), "the mode 'ring'"),  # type: ignore[arg-type]
        (lambda: Swarm([spec("a")], flow="a", mode="team"), "has an expression, but its mode is team"),
        (lambda: Swarm([lambda text: text]), "a function without a name"),
        (lambda: Swarm([spec("a")], on_error="colect"), "`on_error` must be 'cancel' or 'collect', not 'colect'"),  # type: ignore[arg-type]
        (lambda: Swarm([spec("a")], max_concurrency=0), "`max_concurrency` must be a whole number above 0, not 0"),
        (lambda: Swarm([spec("a")], max_handoffs=-1), "`max_handoffs` must be a whole number, 0 or more, not -1"),
        (lambda: Swarm([spec("a")], separator=None), "`separator` must be a string, not None"),  # type: ignore[arg-type]
        (lambda: Swarm([spec("a")], aggregate="x"), "`aggregate` must be a function, not 'x'"),  # type: ignore[arg-type]
        (lambda: Swarm([spec("a")], name="a b"), "the flow 'a b': `name` must be at most 64 letters"),
        (lambda: Swarm("abc"), "the members of the flow 'swarm' are not a list"),
        (lambda: Swarm(spec("a")), "the members of the flow 'swarm' are not a list"),  # type: ignore[arg-type]
        (lambda: ParallelGroup("g", [spec("a")], on_error="x"), "the flow 'g': `on_error`"),  # type: ignore[arg-type]
        (lambda: SerialGroup("", [spec("a")]), "the flow '': `name`"),
        (lambda: SwarmNode(Swarm([spec("a")]), "a b"), "the flow 'a b': `name`"),
        (lambda: SwarmNode(spec("a"), "node"), "the node 'node' needs a flow, not"),  # type: ignore[arg-type]
    ],
)
def test_contradictory_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(LinkError, match=re.escape(message)):
        make()


def test_the_seeds_signatures_hold() -> None:
    pair = ParallelGroup(name="pair", agents=[spec("a"), spec("b")], separator=" + ")
    line = SerialGroup(name="line", agents=[spec("c"), spec("d")])
    inner = Swarm(agents=[spec("e")], flow="e")
    node = SwarmNode(swarm=inner, name="inner")
    outer = Swarm(agents=[pair, line, node], flow="pair >> line >> inner", mode="workflow", max_handoffs=10)

    result = run.sync(outer, "go")

    assert result.output == "e"
    assert (result.steps, result.usage.requests) == (5, 5)
    assert all(isinstance(flow, FlowSpec) for flow in (pair, line, node, outer))


def test_a_swarm_runs_by_itself_in_every_way() -> None:
    async def main() -> tuple[Any, Any, list[str]]:
        flow = Swarm([spec("a"), spec("b")])
        stream = run.stream(flow, "go")
        types = [event.type async for event in stream]
        return (await run(flow, "go")).output, stream.result.output if stream.result else None, types

    import asyncio

    output, streamed, types = asyncio.run(main())
    assert output == streamed == "b"
    assert (types[0], types[-1]) == ("run_started", "run_finished")


def test_run_sync_works_inside_a_running_loop() -> None:
    import asyncio

    async def notebook() -> Any:
        return run.sync(Swarm([spec("a")]), "go").output

    assert asyncio.run(notebook()) == "a"


def test_a_declaration_cannot_be_changed() -> None:
    flow = Swarm([spec("a")])

    with pytest.raises(AttributeError):
        flow.name = "other"  # type: ignore[misc]


def test_names_that_code_needs_are_exported() -> None:
    needed = {
        llm_do: {"Swarm", "HandoffLimitError", "RunResult", "CallRecord", "ErrorRecord", "ExecutionContext"},
        llm_do.flows: {"Swarm", "SwarmNode", "ParallelGroup", "SerialGroup", "FlowSpec", "MemberFailure"},
        llm_do.messages: {"UserMessage", "SystemMessage", "AssistantMessage", "ToolCall", "ToolResult", "to_messages"},
    }
    needed[llm_do] |= {"Event", "RunStream", "Usage"}
    needed[llm_do.messages] |= {"Message"}

    for module, names in needed.items():
        assert names <= set(module.__all__)
        assert all(getattr(module, name) is not None for name in names)


def test_importing_the_names_imports_nothing_heavy() -> None:
    code = "import sys, llm_do; print([n for n in ('pydantic', 'pydantic_ai') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_limit_error_can_be_pickled() -> None:
    error = llm_do.HandoffLimitError("too often", agent_path="desk")

    assert str(pickle.loads(pickle.dumps(error))) == "too often"
