"""Entries as objects and by name: each kind is run like a declared entry, as often as one likes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import RunContext

from llm_do import (
    AgentEntry,
    CallContext,
    EntryError,
    FunctionEntry,
    ModelUnavailableError,
    NullModel,
    PromptInput,
    UsageError,
)
from llm_do.flows import FlowSpec
from llm_do.runtime.session.entries import FlowEntry
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def echo() -> Any:
    """A model that repeats its prompt."""
    return script(lambda messages, info: str(messages[-1].parts[-1].content))


def _upper(text: str) -> str:
    return text.upper()


def test_entry_objects_are_run_like_declared_entries() -> None:
    spec = agent("helper", echo())
    runtime = runtime_of([agent("main", script("main"))])

    async def both() -> tuple[Any, Any]:
        async def work(input: PromptInput, ctx: CallContext) -> str:
            return f"{input.input} at depth {ctx.depth}"

        return await runtime.run_entry(AgentEntry(spec), "hi"), await runtime.run_entry(FunctionEntry(work), "hi")

    first, second = asyncio.run(both())
    assert (first.output, second.output) == ("hi", "hi at depth 0")
    assert len(first.messages) == 2


class Question(PromptInput):
    topic: str = "weather"


def test_a_function_entry_declares_its_input() -> None:
    runtime = runtime_of([agent("main", script("main"))])
    entry = FunctionEntry(lambda input, ctx: input.topic, "ask", input_model=Question)

    assert runtime.run_sync({"input": "hi", "topic": "news"}, entry=entry).output == "news"


def test_one_agent_entry_can_be_run_many_times_at_once() -> None:
    entry = AgentEntry(agent("helper", echo()))
    runtime = runtime_of([agent("main", script("main"))])

    async def many() -> list[Any]:
        return await asyncio.gather(*(runtime.run(f"say {n}", entry=entry) for n in range(10)))

    for n, result in enumerate(asyncio.run(many())):
        assert result.output == f"say {n}"
        assert len(result.messages) == 2
        assert str(result.messages[0].parts[-1].content) == f"say {n}"
    again = asyncio.run(runtime.run("more", entry=entry, messages=result.messages))
    assert len(again.messages) == 4


def test_one_flow_entry_can_be_run_many_times_at_once() -> None:
    runtime = runtime_of([agent("a", echo()), agent("b", script("done"))])
    entry = FlowEntry(FlowSpec("both", agents=("a", "b"), mode="handoff"), runtime.registry)

    async def many() -> list[Any]:
        return await asyncio.gather(*(runtime.run(f"say {n}", entry=entry) for n in range(5)))

    for n, result in enumerate(asyncio.run(many())):
        assert (result.output, len(result.messages)) == (f"say {n}", 2)


def test_an_entry_agent_runs_at_depth_one_and_a_function_at_zero() -> None:
    depths: dict[str, Any] = {}

    def look(name: str, ctx: CallContext) -> None:
        depths[name] = (ctx.depth, ctx.path, ctx.run_id != "", ctx.thread_id, ctx.user_id)

    def peek(ctx: RunContext[CallContext]) -> str:
        look("agent", ctx.deps)
        return "seen"

    def main(input: Any, ctx: CallContext) -> str:
        look("function", ctx)
        assert isinstance(ctx.frame.config.model, NullModel)
        assert ctx.frame.config.active_toolsets == ()
        return "x"

    carry_out(runtime_of([agent("main", script([call("peek")], "x"), tools=[peek])]), thread_id="t", user_id="u")
    carry_out(runtime_of([], main))
    assert depths == {"agent": (1, "main", True, "t", "u"), "function": (0, "main", True, None, None)}


def test_another_entry_is_chosen_by_name() -> None:
    def shout(text: str) -> str:
        return text.upper()

    def broken(text: str) -> str:
        raise ValueError("no")

    runtime = runtime_of(
        [agent("main", script("main")), agent("other", echo())], tools={"shout": shout, "broken": broken}
    )

    assert carry_out(runtime, "x").output == "main"
    assert carry_out(runtime, "x", entry="other").output == "x"
    assert carry_out(runtime, {"text": "loud"}, entry="shout").output == "LOUD"
    assert carry_out(runtime, "loud", entry="shout").output == "LOUD"
    failed = carry_out(runtime, {"text": "loud"}, entry="broken")
    assert isinstance(failed.error, EntryError)
    assert failed.status == "failed"
    with pytest.raises(UsageError, match="othr") as error:
        carry_out(runtime, "x", entry="othr")
    assert "other" in str(error.value.hint)


@each_row("entry", ["", 3, agent("other", "test"), _upper])
def test_an_invalid_entry_is_rejected(entry: Any) -> None:
    with pytest.raises(UsageError, match=r"can't be the entry of a run|nothing named '' to run"):
        carry_out(runtime_of([agent("main", script("main"))]), "x", entry=entry)


def test_a_null_model_never_answers() -> None:
    async def ask() -> None:
        await NullModel().request([], None, None)  # type: ignore[arg-type]

    assert NullModel().model_name == "null"
    with pytest.raises(ModelUnavailableError):
        asyncio.run(ask())


def test_nothing_is_inherited_from_the_caller() -> None:
    inner = agent("inner", script("in"))
    model = inner.model
    main = agent(
        "main", script([call("inner", input="only this")], "fin"), toolsets=[inner], instructions="Secret plan."
    )
    run = carry_out(runtime_of([main, inner]), "the prompt")

    [asked] = model.asked
    assert asked.prompt == "only this"
    assert asked.tools == []
    assert "Secret" not in str(asked.messages)
    assert "the prompt" not in str(asked.messages)
    assert run.output == "fin"
