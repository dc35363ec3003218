"""Hooks that replace what a model is sent, and what it answered."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from llm_do import HookError, HookPoint, RequestReplacement, RunResult, Runtime
from llm_do.runtime.record.stored_records import Filter
from llm_do.threads import memory_store
from llm_do.ui.live.sent_requests import SentRequests
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.threads.thread_support import done, runtime_on


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def echo(messages: Any, _: Any) -> str:
    """Answer with the last prompt."""
    prompts = [part.content for each in messages for part in each.parts if part.part_kind == "user-prompt"]
    return f"heard {prompts[-1]}"


def mask(agent: Any, messages: list[Any]) -> list[Any]:
    """Send no secrets."""
    return [
        replace(each, parts=[_masked(part) for part in each.parts]) if each.kind == "request" else each
        for each in messages
    ]


def _masked(part: Any) -> Any:
    return replace(part, content=part.content.replace("s3cret", "***")) if part.part_kind == "user-prompt" else part


def shout(agent: Any, response: ModelResponse) -> ModelResponse:
    """Answer loudly."""
    return replace(
        response,
        parts=[
            replace(part, content=part.content.upper()) if isinstance(part, TextPart) else part
            for part in response.parts
        ],
    )


HOOKS = [(HookPoint.PRE_LLM_CALL, mask), (HookPoint.POST_LLM_CALL, shout)]


def test_hooks_replace_a_request_and_its_response_and_the_record_says_so() -> None:
    store = memory_store()
    runtime = runtime_on(store, agent("main", script(echo), hooks=HOOKS), options={"record": True})
    log = heard(runtime)

    result = carry_out(runtime, "my s3cret")

    assert result.output == "HEARD MY ***"
    assert [(each.type, getattr(each, "replaced", None)) for each in log.of("hook", "text_done")] == [
        ("hook", "messages"),
        ("hook", "response"),
        ("text_done", None),
    ]
    assert log.of("text_done")[0].text == "HEARD MY ***"
    assert (log.of("hook")[0].hook, log.of("hook")[0].request) == ("mask", 1)
    # The conversation has the person's words and the answer that counts.
    assert result.messages[0].parts[-1].content == "my s3cret"
    assert result.messages[1].parts[0].content == "HEARD MY ***"
    (exchange,) = done(store.exchanges(result.run_id))
    assert exchange.sent.messages[0]["parts"][-1]["content"] == "my ***"
    assert exchange.outcome.response.parts[0].content == "heard my ***"
    events = [each.data for each in done(store.observations(Filter(run_id=result.run_id)))]
    shown = SentRequests([exchange], events)
    assert [line for line in shown.lines() if "hook" in line] == [
        "the hook mask replaced the messages",
        "the hook shout replaced the response:",
    ]
    assert [(each["hook"], each["replaced"]) for each in shown.to_data()[0]["hooks"]] == [
        ("mask", "messages"),
        ("shout", "response"),
    ]


def test_settings_are_laid_over_those_of_the_request_and_none_leaves_one_out() -> None:
    seen: list[Any] = []

    def answer(messages: Any, info: Any) -> str:
        seen.append(info.model_settings)
        return "fin"

    async def cool(agent: Any, messages: Any) -> RequestReplacement:
        return RequestReplacement(settings={"temperature": 0.0, "seed": None})

    def warm(agent: Any, messages: Any) -> RequestReplacement:
        return RequestReplacement(settings={"top_p": 0.5})

    spec = agent(
        "main",
        script(answer),
        model_settings={"temperature": 1.0, "seed": 7, "max_tokens": 9},
        hooks=[(HookPoint.PRE_LLM_CALL, cool), (HookPoint.PRE_LLM_CALL, warm)],
    )
    carry_out(runtime_of([spec]))
    assert {name: value for name, value in seen[0].items() if value is not None} == {
        "temperature": 0.0,
        "max_tokens": 9,
        "top_p": 0.5,
    }


def test_a_budget_counts_what_is_sent_and_guards_see_the_replaced_response() -> None:
    def shorten(agent: Any, messages: list[Any]) -> list[Any]:
        return [ModelRequest(parts=[UserPromptPart("short")])]

    spec = agent(
        "main",
        script(echo),
        hooks=[(HookPoint.PRE_LLM_CALL, shorten), (HookPoint.POST_LLM_CALL, shout)],
        output_guards=[lambda text: text + "!"],
    )
    result = carry_out(runtime_of([spec], budget={"input_tokens": 200}), "long " * 2000)
    assert result.output == "HEARD SHORT!"
    assert 0 < result.usage.input_tokens < 200


def test_tool_calls_of_a_replaced_response_take_every_step() -> None:
    def rewrite(agent: Any, response: ModelResponse) -> ModelResponse | None:
        if not response.tool_calls:
            return None
        return replace(response, parts=[ToolCallPart("add", {"a": 1, "b": 40}, "x"), ToolCallPart("gone", {}, "y")])

    main = agent("main", script(call("add", a=1, b=2), "fin"), tools=[add], hooks=[(HookPoint.POST_LLM_CALL, rewrite)])
    result = carry_out(runtime_of([main], approvals="reject_all"))
    assert [each.tool for each in result.denials] == ["add"]
    results = [part for each in result.messages for part in each.parts if part.part_kind == "tool-return"]
    assert [part.tool_call_id for part in results] == ["x", "y"]
    assert "no tool" in results[1].content or "unknown" in results[1].content.lower()
    assert result.usage.requests == 2


ASKED = [ModelRequest(parts=[UserPromptPart("x")]), ModelResponse(parts=[ToolCallPart("add", {}, "1")])]


@each_row(
    "point, returned, message",
    [
        (HookPoint.PRE_LLM_CALL, "text", "returned a str"),
        (HookPoint.PRE_LLM_CALL, [], "messages that don't end with a request"),
        (HookPoint.PRE_LLM_CALL, ["text"], "messages of which one is a str"),
        (HookPoint.PRE_LLM_CALL, [*ASKED, ASKED[0]], "messages with a call of add without its result"),
        (HookPoint.PRE_LLM_CALL, RequestReplacement(settings={"temperature": "hot"}), "wrong settings: temperature"),
        (HookPoint.PRE_LLM_CALL, RequestReplacement(settings={"base_url": "http://x"}), "belongs to the connection"),
        (HookPoint.PRE_LLM_CALL, RequestReplacement(messages=7), "messages that are an int"),  # type: ignore[arg-type]
        (HookPoint.POST_LLM_CALL, "text", "returned a str"),
        (HookPoint.POST_LLM_CALL, ASKED[0], "returned a ModelRequest"),
    ],
)
def test_what_cannot_replace_anything_ends_the_call_and_names_the_hook(
    point: HookPoint, returned: Any, message: str
) -> None:
    def wrong(**data: Any) -> Any:
        return returned

    helper = agent("helper", script("helped"), hooks=[(point, wrong)])
    result = carry_out(runtime_of([helper]))
    assert isinstance(result.error, HookError)
    assert f"the hook wrong at {point.value} returned " in result.error.message
    assert message in result.error.message
    assert result.error.line == wrong.__code__.co_firstlineno
    assert result.error.hint is not None
    main = agent("main", script(call("helper", {"input": "x"}), "without help"), toolsets=[helper])
    nested = carry_out(runtime_of([main]))
    assert (nested.status, nested.output) == ("completed", "without help")
    assert [(each.agent_path, each.type) for each in nested.errors] == [("main/helper", "HookError")]


def test_text_is_streamed_unless_a_hook_may_replace_it() -> None:
    def look(agent: Any, response: Any) -> None: ...

    def streamed(hook: Any) -> list[str]:
        runtime = runtime_of([agent("main", script("some text"), hooks=[(HookPoint.POST_LLM_CALL, hook)])])
        log = heard(runtime, "text")
        assert carry_out(runtime).status == "completed"
        return [each.text for each in log.events]

    assert "".join(streamed(look)) == "some text"
    assert streamed(shout) == []


def test_a_resumed_run_takes_what_its_hooks_returned_from_the_record(tmp_path: Path) -> None:
    called: list[str] = []
    runtimes: list[Runtime] = []

    async def look() -> str:
        """Stop the first attempt at the run."""
        if len(runtimes) == 1:
            runtimes[0].interrupt()
            await asyncio.Event().wait()
        return "a tree"

    def number(agent: Any, messages: list[Any]) -> list[Any]:
        called.append("pre")
        return [ModelRequest(parts=[UserPromptPart(f"take {len(called)}")]), *messages]

    def sign(agent: Any, response: ModelResponse) -> ModelResponse:
        called.append("post")
        return replace(response, parts=[TextPart(f"signed {len(called)} "), *response.parts])

    async def attempt() -> RunResult:
        hooks = [(HookPoint.PRE_LLM_CALL, number), (HookPoint.POST_LLM_CALL, sign)]
        main = agent("main", script(call("look", {}, "c1"), "seen"), tools=[look], hooks=hooks)
        runtimes.append(Runtime(project_of([main], root=tmp_path), durable=True, approvals="approve_all"))
        try:
            if len(runtimes) == 1:
                return await runtimes[0].execute("go", run_id="r")
            return await runtimes[1].execute_again("r", in_flight="repeat")
        finally:
            await runtimes[-1].aclose()

    assert asyncio.run(attempt()).status == "interrupted"
    assert called == ["pre", "post"]
    result = asyncio.run(attempt())

    assert result.error is None
    assert result.output == "signed 4 seen"
    assert called == ["pre", "post", "pre", "post"]
    assert result.messages[1].parts[0].content == "signed 2 "


@pytest.mark.slow
def test_a_durable_run_keeps_each_message_once_that_its_hooks_return(tmp_path: Path) -> None:
    requests, runtimes = 24, list[Runtime]()
    asked: list[list[Any]] = []

    async def look(at: int) -> str:
        """Stop the first attempt at the run near its end."""
        if len(runtimes) == 1 and at == requests - 2:
            runtimes[0].interrupt()
            await asyncio.Event().wait()
        return f"a tree {'x' * 1000} {at}"

    def last(agent: Any, messages: list[Any]) -> list[Any]:
        return [messages[0], *messages[-8:]] if len(messages) > 9 else mask(agent, messages)

    def answer(messages: list[Any], _: Any) -> Any:
        asked.append(messages)
        at = 0 if len(messages) == 1 else int(messages[-1].parts[0].content.split()[-1]) + 1
        return "seen" if at == requests - 1 else call("look", at=at)

    async def attempt() -> RunResult:
        hooks = [(HookPoint.PRE_LLM_CALL, mask), (HookPoint.PRE_LLM_CALL, last)]
        main = agent("main", script(answer), tools=[look], hooks=hooks, max_steps=requests)
        runtimes.append(Runtime(project_of([main], root=tmp_path), durable=True, approvals="approve_all"))
        try:
            if len(runtimes) == 1:
                return await runtimes[0].execute("go", run_id="r")
            return await runtimes[1].execute_again("r", in_flight="repeat")
        finally:
            await runtimes[-1].aclose()

    assert asyncio.run(attempt()).status == "interrupted"
    result = asyncio.run(attempt())

    assert result.output == "seen"
    assert len(asked[-1]) == 9
    assert asked[-1][0].parts[0].content == "go"
    [file] = tmp_path.rglob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        [(kept,)] = connection.execute("SELECT sum(length(data)) FROM steps WHERE key LIKE '%/pre_llm_call'")
    assert kept < 4 * requests * 1000 * 2
