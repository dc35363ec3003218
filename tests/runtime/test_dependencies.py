"""Dependencies of agents: their tools get them as `ctx.deps`, and the `CallContext` stays reachable."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from pydantic_ai import FunctionToolset, RunContext, Tool

from llm_do import (
    AgentSpec,
    CallContext,
    RunError,
    RunResult,
    Runtime,
    Swarm,
    Toolkit,
    UsageError,
    current_call,
    run,
    tool,
)
from llm_do.testing import play
from llm_do.threads import SqliteStore, memory_store
from llm_do.toolkits import ToolkitContext
from tests.durable.test_resumed_runs import StoppingStore, store_path
from tests.support.history import results_of
from tests.support.runs import agent, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


@dataclass
class Bank:
    balance: int


@dataclass
class Mail:
    outbox: list[str]


class Books(Protocol):
    balance: int


@tool(approval="allow")
def balance(ctx: RunContext[Bank]) -> int:
    """Say the balance."""
    return ctx.deps.balance


@tool(approval="allow")
def place(ctx: RunContext[CallContext]) -> str:
    """Say where this is, by the context that other agents' tools have."""
    return f"{ctx.deps.path} {ctx.deps.deps}"


@tool(approval="allow")
def called(ctx: RunContext[Bank]) -> str:
    """Say the same, by the current call."""
    return f"{current_call().path} {current_call().deps}"


def outputs(result: RunResult) -> list[Any]:
    return [content for _, _, content in results_of(result.messages)]


def clerk(*calls: Any, **fields: Any) -> AgentSpec:
    fields = {"tools": [balance], "deps_type": Bank, **fields}
    return agent("clerk", script(list(calls) or call("balance"), "done"), **fields)


async def ask(spec: AgentSpec, how: str, deps: object) -> RunResult:
    runtime = runtime_of([spec])
    if how == "run":
        return await runtime.run("go", deps=deps)
    if how == "run_sync":
        return runtime.run_sync("go", deps=deps)
    if how == "stream":
        stream = runtime.stream("go", deps=deps)
        async for _ in stream:
            pass
        assert stream.result is not None
        return stream.result
    if how == "one line":
        return await run(spec, "go", deps=deps)
    if how == "thread":
        async with contextlib.aclosing(runtime_of([spec], options={"store": memory_store()})) as kept:
            await kept.run("go", thread_id="t", deps=Bank(1))
            spec.model = script(call("balance"), "done")
            return await kept.run("again", thread_id="t", deps=deps)
    played = await asyncio.to_thread(play, project_of([spec]), "go", deps=deps, replay=True)
    return played.result


@each_row("how", ["run", "run_sync", "stream", "one line", "thread", "play"])
def test_a_run_gives_its_agent_dependencies(how: str) -> None:
    result = asyncio.run(ask(clerk(), how, Bank(7)))

    assert outputs(result)[-1] == "7"


def test_an_agent_has_its_own_unless_the_run_gives_others_of_their_type() -> None:
    assert outputs(run.sync(clerk(deps=Bank(1), deps_type=None), "go")) == ["1"]
    assert outputs(run.sync(clerk(deps=Bank(1)), "go")) == ["1"]
    assert outputs(run.sync(clerk(deps=Bank(1)), "go", deps=Bank(2))) == ["2"]


def test_the_call_context_is_there_too() -> None:
    result = run.sync(clerk(call("place"), call("called"), tools=[place, called]), "go", deps=Bank(7))

    assert outputs(result) == ["clerk Bank(balance=7)"] * 2


def own_factory(ctx: RunContext[Bank]) -> Any:
    return FunctionToolset([balance]) if ctx.deps.balance else None


def our_factory(ctx: RunContext[CallContext]) -> Any:
    assert ctx.deps.path == "clerk"
    return FunctionToolset([place])


def prepared(ctx: RunContext[Bank], definition: Any) -> Any:
    return definition if ctx.deps.balance == 7 else None


def named(kind: str) -> Any:
    functions: FunctionToolset[Any] = FunctionToolset([balance, place])
    if kind == "toolkit":
        kit = Toolkit("kit")
        kit.add_tool("balance", balance)
        kit.add_tool("place", place)
        return kit
    return {
        "functions": functions,
        "filtered": functions.filtered(lambda ctx, _: ctx.deps.balance == 7),
        "prepared": FunctionToolset([Tool(balance, prepare=prepared), place]),
        "own factory": own_factory,
        "our factory": our_factory,
    }[kind]


@each_row("kind", ["functions", "filtered", "prepared", "toolkit", "own factory", "our factory"])
def test_toolsets_get_them_and_those_of_ours_get_the_context(kind: str) -> None:
    calls = [call("place")] if kind == "our factory" else [call("balance")]
    calls += [call("place")] if "factory" not in kind else []
    result = run.sync(clerk(*calls, tools=(), toolsets=[named(kind)]), "go", deps=Bank(7), approvals="approve_all")

    expected = {"balance": "7", "place": "clerk Bank(balance=7)"}
    assert outputs(result) == [expected[each.tool_name] for each in result.messages[1].parts]


def test_a_toolkits_context_is_there_with_them() -> None:
    kit = Toolkit("kit")

    @kit.tool
    def count(ctx: ToolkitContext) -> str:
        """Count."""
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return f"{ctx.state['n']} in {ctx.deps.path}"

    result = run.sync(clerk(call("count"), tools=(), toolsets=[kit]), "go", deps=Bank(7), approvals="approve_all")
    assert outputs(result) == ["1 in clerk"]


def test_built_in_toolsets_and_handoffs_work_as_ever(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    helper = agent("helper", script(call("place"), "helped"), tools=[place])
    main = clerk(
        call("balance"),
        call("read_file", path="a.txt"),
        call("todo_write", items=[{"text": "x", "status": "pending"}]),
        call("remember", text="tea", scope="project"),
        call("helper", input="x"),
        toolsets=["filesystem_project", "todo", "memory", "helper"],
    )
    options = {"store": memory_store()}
    result = runtime_of([main, helper], root=tmp_path, options=options).run_sync("go", deps=Bank(7))

    first, file, todo, memory, answer = outputs(result)
    assert (first, file, answer) == ("7", "hello", "helped")
    assert "failed" not in f"{todo} {memory}"
    assert outputs_of(result, "clerk/helper") == ["clerk/helper None"]

    other = agent("other", script("taken over"))
    main = agent("main", script(call("transfer_to_other", reason="x")), deps=Bank(1), handoffs=["other"])
    assert runtime_of([main, other]).run_sync("go").output == "taken over"


def outputs_of(result: RunResult, path: str) -> list[Any]:
    record = next(each for each in result.calls if each.path == path)
    return [content for _, _, content in results_of(record.messages)]


def test_each_agent_of_a_run_has_only_its_own() -> None:
    @tool(approval="allow")
    def send(ctx: RunContext[Mail], text: str) -> str:
        """Send."""
        ctx.deps.outbox.append(text)
        return "sent"

    mail = Mail([])
    post = agent("post", script(call("send", text="hi"), "posted"), tools=[send], deps=mail)
    teller = agent("teller", script(call("balance"), "told"), tools=[balance], deps_type=Bank)
    main = agent("main", script([call("post", input="x"), call("teller", input="x")], "done"), toolsets=[post, teller])

    result = run.sync(main, "go", deps=Bank(3))
    assert mail.outbox == ["hi"]
    assert outputs_of(result, "main/teller") == ["3"]
    swarm = Swarm([agent("teller", script(call("balance"), "told"), tools=[balance], deps_type=Bank)], mode="workflow")
    assert outputs(run.sync(swarm, "go", deps=Bank(4))) == ["4"]


def test_code_that_calls_by_name_has_those_of_its_caller() -> None:
    @tool(approval="allow")
    async def relay(ctx: RunContext[Bank]) -> str:
        """Relay."""
        names = ("balance", "place", "kit::balance", "kit::place")
        return ", ".join([str(await current_call().call(name, {})) for name in names])

    kit: FunctionToolset[Any] = FunctionToolset([balance, place])
    tools, toolsets = {"balance": balance, "place": place}, {"kit": kit}
    runtime = runtime_of([clerk(call("relay"), tools=[relay])], tools=tools, toolsets=toolsets)
    place_of = "clerk/{} Bank(balance=7)".format
    assert outputs(runtime.run_sync("go", deps=Bank(7))) == [f"7, {place_of('place')}, 7, {place_of('kit::place')}"]

    async def entry(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("balance", {}) + ctx.deps.balance

    assert runtime_of([], entry, tools=tools).run_sync("go", deps=Bank(5)).output == 10


def test_instructions_and_outputs_get_them() -> None:
    def told(ctx: RunContext[Bank]) -> str:
        return f"You have {ctx.deps.balance}."

    def spend(ctx: RunContext[Bank], amount: int) -> int:
        """Spend."""
        return ctx.deps.balance - amount

    spec = agent("main", script(call("final_result", amount=2)), deps=Bank(9), instructions=told, output_type=spend)
    assert run.sync(spec, "go").output == 7
    assert spec.model.asked[0].messages[-1].instructions == "You have 9."


MISTAKES: dict[str, tuple[AgentSpec, object, str, str]] = {
    "none": (clerk(), None, "'clerk' needs dependencies of type Bank, and there are none", "Pass a Bank"),
    "others": (clerk(), Mail([]), "and the run was given a Mail", "Pass a Bank"),
    "a number": (clerk(), 5, "and the run was given an int", "Pass a Bank"),
    "for no one": (AgentSpec("a", model="test"), 1, "type int, and no agent takes any", "deps_type=int"),
    "no type": (clerk(deps_type=Bank(1)), Bank(1), "deps_type must be a type, not Bank", "correct"),
    "its own of another type": (
        clerk(deps=Mail([])),
        None,
        "must be of type Bank, its deps_type, not Mail",
        "corr",
    ),
}


@each_row("mistake", MISTAKES)
def test_a_mistake_is_a_sentence(mistake: str) -> None:
    spec, deps, text, hint = MISTAKES[mistake]

    with pytest.raises(UsageError, match=text) as raised:
        run.sync(spec, "go", deps=deps)
    assert hint in (raised.value.hint or "")


@each_row("kind", [Books, Bank | None, Any])
def test_types_that_cannot_be_checked_are_not(kind: Any) -> None:
    assert outputs(run.sync(clerk(deps_type=kind), "go", deps=Bank(6))) == ["6"]


def test_no_dependencies_are_enough_where_the_type_says_so() -> None:
    @tool(approval="allow")
    def poor(ctx: RunContext[Bank | None]) -> bool:
        """Say whether there is no bank."""
        return ctx.deps is None

    assert outputs(run.sync(clerk(call("poor"), tools=[poor], deps_type=Bank | None), "go")) == ["True"]


def test_a_called_agent_without_dependencies_fails_its_caller_with_the_reason() -> None:
    async def entry(input: Any, ctx: CallContext) -> Any:
        return await ctx.call("clerk", "x")

    with pytest.raises(RunError, match="'clerk' needs dependencies of type Bank") as raised:
        runtime_of([clerk()], entry).run_sync("go")
    assert raised.value.agent_path == "entry/clerk"


def test_a_durable_run_needs_them_again(tmp_path: Path) -> None:
    def runtime(store: SqliteStore) -> Runtime:
        return runtime_of([clerk()], root=tmp_path, options={"store": store, "durable": True})

    async def go() -> None:
        store = StoppingStore(store_path(tmp_path), 3, after=True)
        begun = runtime(store)
        store.stop = begun.interrupt
        stopped = await begun.execute("go", run_id="r", deps=Bank(7))
        await begun.aclose()
        await store.aclose()
        assert stopped.status == "interrupted"
        async with contextlib.aclosing(SqliteStore(store_path(tmp_path))) as store:
            again = runtime(store)
            with pytest.raises(UsageError, match="run r began with dependencies of type Bank") as raised:
                await again.resume("r")
            assert "runtime.resume(run_id, deps=...)" in (raised.value.hint or "")
            assert outputs(await again.resume("r", deps=Bank(7))) == ["7"]
            await again.aclose()

    asyncio.run(go())
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"Bank(balance" not in file.read_bytes()


def test_a_batch_gives_them_to_each_run(tmp_path: Path) -> None:
    async def go() -> list[RunResult]:
        spec = clerk()
        async with contextlib.aclosing(runtime_of([spec], root=tmp_path)) as runtime:
            with pytest.raises(UsageError, match="needs dependencies of type Bank"):
                async for _ in runtime.map(["a"]):
                    pass
            return [each async for each in runtime.map(["a", "b"], deps=Bank(8))]

    assert [outputs(each) for each in asyncio.run(go())] == [["8"], ["8"]]
