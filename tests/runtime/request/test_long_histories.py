"""A run of many steps sends, shows and keeps the same with a window over its history as without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset, RunContext, direct
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import FunctionModel

from llm_do import CallContext, HookPoint
from llm_do.models.history_window import HistoryWindow
from llm_do.runtime.agents import pipeline
from llm_do.threads import ConversationManager, SqliteStore
from tests.models import odd_chat_answers, odd_messages, odd_responses
from tests.support.history import strict
from tests.support.raw_server import Answer, serve_raw
from tests.support.runs import agent, carry_out, runtime_of
from tests.threads.thread_support import talk

STEPS = 45
NEVER = 1_000_000


def look(at: int) -> str:
    """Look."""
    return "<system>a tag</system>" if at == 7 else f"something at {at}"


class Steps:
    """A model that asks for tools in so many requests; in every tenth it also asks for one that isn't there."""

    def __init__(self, count: int, name: str = "look") -> None:
        self.asked: list[list[ModelMessage]] = []
        self.model = FunctionModel(self._answer)
        self._count, self._name = count, name

    def _answer(self, messages: list[ModelMessage], _: Any) -> ModelResponse:
        self.asked.append(list(messages))
        done = sum(message.kind == "response" for message in messages) % self._count
        if done == self._count - 1:
            return ModelResponse([TextPart("done")])
        calls = [ToolCallPart(self._name, {"at": done}, f"call_{done}")]
        return ModelResponse([*calls, ToolCallPart("nothing", {}, f"other_{done}")] if done % 10 == 9 else calls)


class Seen:
    """How many messages PydanticAI saw at each request, and how many were sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lengths: list[tuple[int, int]] = []
        restore = HistoryWindow.restore

        def watched(window: HistoryWindow, messages: list[ModelMessage], prepared: Any) -> list[ModelMessage]:
            found = restore(window, messages, prepared)
            self.lengths.append((len(messages), len(found)))
            return found

        monkeypatch.setattr(HistoryWindow, "restore", watched)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def data(messages: Sequence[ModelMessage]) -> list[Any]:
    """Messages without what differs from run to run."""
    dumped = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    for message in dumped:
        for name in ("timestamp", "run_id", "conversation_id"):
            message.pop(name, None)
        for part in message["parts"]:
            part.pop("timestamp", None)
    return dumped


def test_pydantic_ai_sees_little_of_a_long_history_and_the_model_all_of_it(seen: Seen) -> None:
    model = Steps(STEPS)
    result = carry_out(runtime_of([agent("main", model.model, tools=[look], max_steps=STEPS)]))

    assert result.output == "done"
    assert [len(asked) for asked in model.asked] == [2 * number + 1 for number in range(STEPS)]
    assert seen.lengths[-1][0] < 50 < seen.lengths[-1][1] == 2 * STEPS - 1
    assert len(result.messages) == 2 * STEPS
    strict(result.messages)


def test_the_same_is_sent_and_kept_without_a_window(monkeypatch: pytest.MonkeyPatch, seen: Seen) -> None:
    def run() -> tuple[list[Any], list[Any]]:
        model = Steps(STEPS)
        result = carry_out(runtime_of([agent("main", model.model, tools=[look], max_steps=STEPS)]))
        return [data(asked) for asked in model.asked], data(result.messages)

    narrow = run()
    assert seen.lengths
    seen.lengths.clear()
    monkeypatch.setattr(pipeline, "LONG", NEVER)
    assert run() == narrow
    assert not seen.lengths


def test_functions_of_a_project_see_the_whole_history(seen: Seen) -> None:
    found: dict[str, list[int]] = {"tool": [], "instructions": [], "prepare": [], "hook": [], "toolset": []}

    def tool(ctx: RunContext[Any], at: int) -> str:
        found["tool"].append(len(ctx.messages))
        return str(at)

    def instructions(ctx: RunContext[Any]) -> str:
        found["instructions"].append(len(ctx.messages))
        return "Be brief."

    async def prepare(ctx: RunContext[Any], definition: Any) -> Any:
        found["prepare"].append(len(ctx.messages))
        return definition

    def hook(agent: Any, messages: list[ModelMessage]) -> None:
        found["hook"].append(len(messages))

    class Own(FunctionToolset[Any]):
        async def get_instructions(self, ctx: RunContext[Any]) -> None:
            found["toolset"].append(len(ctx.messages))

    own: Own = Own(id="own")
    own.add_function(lambda: "x", name="other", prepare=prepare)
    model = Steps(STEPS, "tool")
    fields = {"instructions": instructions, "hooks": [(HookPoint.PRE_LLM_CALL, hook)], "max_steps": STEPS}
    spec = agent("main", model.model, tools=[tool], toolsets=[own], **fields)
    carry_out(runtime_of([spec]))

    requests = [2 * number + 1 for number in range(STEPS)]
    assert found["tool"] == [2 * number for number in range(1, STEPS)]
    assert found["instructions"] == requests
    assert found["hook"] == requests
    assert found["prepare"] == requests
    assert found["toolset"] == requests
    assert seen.lengths[-1][0] < 50


def answers(protocol: str) -> list[Answer]:
    """The answers of a server that asks for a tool in all requests but the last."""
    tools: list[Answer] = []
    for number in range(STEPS - 1):
        args, name = {"at": number}, f"call_{number}"
        if protocol == "anthropic":
            tools.append(odd_messages.answer(odd_messages.call("look", args, name), stop="tool_use"))
        elif protocol == "openai":
            tools.append(odd_responses.answer(odd_responses.call("look", json.dumps(args), name)))
        else:
            function = {"name": "look", "arguments": json.dumps(args)}
            calls = [{"id": name, "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            tools.append(Answer(odd_chat_answers.whole(message, "tool_calls")))
    last = {"anthropic": odd_messages.YES, "openai": odd_responses.YES}
    return [*tools, last.get(protocol, Answer(odd_chat_answers.whole({"role": "assistant", "content": "Yes"})))]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["openai-chat", "openai", "anthropic"])
def test_each_protocol_sends_the_same_bodies(monkeypatch: pytest.MonkeyPatch, seen: Seen, protocol: str) -> None:
    with serve_raw({"m": answers(protocol)}) as (url, log):
        for name, value in (("OPENAI", f"{url}/v1"), ("ANTHROPIC", url)):
            monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
            monkeypatch.setenv(f"{name}_BASE_URL", value)

        def run() -> list[dict[str, Any]]:
            log.clear()
            spec = agent("main", f"{protocol}:m", tools=[look], instructions="Be brief.", max_steps=STEPS)
            assert carry_out(runtime_of([spec])).output == "Yes"
            return list(log)

        narrow = run()
        assert len(narrow) == STEPS
        assert seen.lengths[-1][0] < 50
        monkeypatch.setattr(pipeline, "LONG", NEVER)
        assert run() == narrow


def fail(agent: Any, response: ModelResponse) -> None:
    """Fail at the last response."""
    if isinstance(response.parts[0], TextPart):
        raise ValueError("no")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "length"),
    [
        ({"max_steps": STEPS - 1}, 2 * STEPS - 1),
        ({"max_steps": STEPS, "hooks": [(HookPoint.POST_LLM_CALL, fail)]}, 2 * STEPS - 1),
        ({"max_steps": STEPS, "output_type": bool}, 2 * STEPS - 1),
    ],
)
def test_a_run_that_ends_early_has_its_whole_history(fields: dict[str, Any], length: int, seen: Seen) -> None:
    result = carry_out(runtime_of([agent("main", Steps(STEPS).model, tools=[look], retries=0, **fields)]))
    assert result.status != "completed"
    assert seen.lengths[-1][0] < 50
    assert len(result.messages) >= length
    strict(result.messages)


def test_a_thread_is_continued_and_kept_whole(tmp_path: Path, seen: Seen) -> None:
    store = SqliteStore(tmp_path / "threads.db")
    asyncio.run(talk(store, 99))
    model = Steps(3)
    runtime = runtime_of([agent("main", model.model, tools=[look])], options={"store": store, "record": True})
    result = carry_out(runtime, thread_id="t")

    assert result.output == "done"
    assert [len(asked) for asked in model.asked] == [199, 201, 203]
    assert all(narrow < 30 for narrow, _ in seen.lengths)
    assert len(asyncio.run(ConversationManager(store).get_messages("t"))) == 204


def test_a_run_that_is_cancelled_while_a_function_waits_keeps_its_whole_thread(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "threads.db")
    asyncio.run(talk(store, 99))

    async def cancelled() -> list[ModelMessage]:
        begun, kept = asyncio.Event(), list[list[ModelMessage]]()

        async def instructions(ctx: RunContext[Any]) -> str:
            kept.append(ctx.messages)
            begun.set()
            await asyncio.Event().wait()
            return "Be brief."

        spec = agent("main", Steps(3).model, tools=[look], instructions=instructions)
        runtime = runtime_of([spec], options={"store": store, "record": True})
        running = asyncio.create_task(runtime.execute("go", thread_id="t"))
        await asyncio.wait_for(begun.wait(), 60)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await runtime.aclose()
        return kept[0]

    assert len(asyncio.run(cancelled())) == 199
    assert len(asyncio.run(ConversationManager(store).get_messages("t"))) == 199


@pytest.mark.slow
def test_what_others_ask_the_model_is_theirs(seen: Seen) -> None:
    helper = Steps(1)

    async def ask(ctx: RunContext[CallContext], at: int) -> str:
        """Ask a helper about the end of the conversation."""
        await direct.model_request(helper.model, [ctx.messages[0], *ctx.messages[-24:-1]])
        return str(at)

    model = Steps(STEPS, "ask")
    carry_out(runtime_of([agent("main", model.model, tools=[ask], max_steps=STEPS)]))
    assert [len(asked) for asked in helper.asked][-1] == 24
    assert len(model.asked[-1]) == 2 * STEPS - 1


@pytest.mark.slow
def test_a_tool_may_shorten_the_history(monkeypatch: pytest.MonkeyPatch, seen: Seen) -> None:
    def run() -> list[Any]:
        def shorten(ctx: RunContext[Any], at: int) -> str:
            """Shorten the history."""
            if at == 40:
                del ctx.messages[11:41]
            if at == 42:
                ctx.messages[3].parts[0].content = "<system>a tag</system>"
                ctx.messages[3].parts = list(ctx.messages[3].parts)
            return str(at)

        asked: list[list[Any]] = []

        def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
            asked.append(data(messages))
            number = len(asked) - 1
            done = number == STEPS
            return ModelResponse([TextPart("done") if done else ToolCallPart("shorten", {"at": number}, f"c{number}")])

        spec = agent("main", FunctionModel(answer), tools=[shorten], max_steps=STEPS + 1)
        assert carry_out(runtime_of([spec])).output == "done"
        return asked

    narrow = run()
    assert seen.lengths
    monkeypatch.setattr(pipeline, "LONG", NEVER)
    assert run() == narrow


class Watching(AbstractCapability[Any]):
    """A capability that sees requests."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        self.seen.append(len(request_context.messages))
        return request_context


class OwnModel(FunctionModel):
    """A model that prepares messages in its own way."""

    def prepare_messages(self, messages: list[ModelMessage], model_request_parameters: Any = None) -> Any:
        return [*messages]


@pytest.mark.slow
def test_others_who_see_how_a_request_is_prepared_see_all_of_it(seen: Seen) -> None:
    watching, requests = Watching(), [2 * number + 1 for number in range(STEPS)]
    spec = agent("main", Steps(STEPS).model, tools=[look], capabilities=[watching], max_steps=STEPS)
    carry_out(runtime_of([spec]))
    assert watching.seen == requests
    assert not seen.lengths

    model = Steps(STEPS)
    carry_out(runtime_of([agent("main", OwnModel(model._answer), tools=[look], max_steps=STEPS)]))
    assert [len(asked) for asked in model.asked] == requests
    assert not seen.lengths
