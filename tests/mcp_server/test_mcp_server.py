"""A project as an MCP server: its tools, their runs, and who is asked, with both kinds of clients."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, ElicitResult, InputRequiredResult

from llm_do import AgentArgs, Event, Project, UsageError
from tests.mcp_server.clients import MODES, Person, accepts, call, client_of, text_of
from tests.support.runs import agent, project_of
from tests.support.scripted import call as calls, script

DONE: list[str] = []


def pay(amount: int, to: str = "ann") -> str:
    """Pay someone."""
    DONE.append(f"{amount} to {to}")
    return f"paid {amount}"


def paying(*amounts: int) -> Project:
    """A project whose agent pays, each payment in a request of its own."""
    DONE.clear()
    turns = [[calls("pay", {"amount": amount})] for amount in amounts]
    return project_of([agent("main", script(*turns, "finished"), tools=["pay"])], tools={"pay": pay})


class Order(AgentArgs):
    """What is ordered."""

    item: str
    count: int = 1


def test_the_entry_and_all_agents_are_tools_with_the_schema_of_their_input() -> None:
    project = project_of(
        [agent("helper", "test"), agent("main", "test", description="Sells\nthings.", input_model=Order)], "main"
    )

    async def listed(**options: Any) -> dict[str, Any]:
        async with client_of(project, **options) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = asyncio.run(listed())
    assert list(tools) == ["main", "helper"]
    assert tools["main"].description == "Sells things."
    assert tools["main"].input_schema["properties"].keys() == {"item", "count"}
    assert tools["helper"].input_schema["properties"].keys() == {"input"}
    assert list(asyncio.run(listed(only=["helper"]))) == ["helper"]
    with pytest.raises(UsageError, match="nothing named 'helpr'"):
        asyncio.run(listed(only=["helpr"]))


def test_a_function_that_is_the_entry_is_a_tool_too() -> None:
    async def digest(input: Order, ctx: Any) -> dict[str, Any]:
        """Count what is ordered."""
        return {"item": input.item, "total": input.count * 2}

    project = project_of(entry=digest, input_model=Order)
    result = call(project, "digest", {"item": "tea", "count": 2})
    assert not result.is_error
    assert result.structured_content == {"item": "tea", "total": 4}


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_shows_forms_is_asked_and_answers_once_for_each_call(mode: str) -> None:
    person = accepts("once")
    result = call(paying(7, 8), mode=mode, person=person)
    assert text_of(result) == "finished"
    assert DONE == ["7 to ann", "8 to ann"]
    assert "main wants to call pay" in person.message
    assert "amount: 8" in person.message
    assert [each["const"] for each in person.forms[0].requested_schema["properties"]["answer"]["oneOf"]] == [
        "once",
        "session",
        "deny",
        "abort",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_each_other_answer_means_what_it_says(mode: str) -> None:
    person = accepts("session")
    call(paying(7, 7), mode=mode, person=person)
    assert (DONE, len(person.forms)) == (["7 to ann", "7 to ann"], 1)

    events: list[Event] = []
    denied = "denied pay"
    for person, reason in (
        (accepts("deny", note="too much"), f"{denied}: too much"),
        (Person([ElicitResult(action="decline")]), denied),
        (Person([ElicitResult(action="cancel")]), "no one could be asked"),
        (accepts("always"), "no one could be asked"),
        (accepts("yes"), "no one could be asked"),
        (Person([ElicitResult(action="accept")]), "no one could be asked"),
    ):
        events.clear()
        assert text_of(call(paying(7), mode=mode, person=person, events=events)) == "finished"
        assert DONE == []
        assert any(reason in str(event.to_dict()) for event in events if event.type == "tool_result")

    result = call(paying(7), mode=mode, person=accepts("abort"))
    assert result.is_error
    assert "a person ended the run at pay" in text_of(result)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_without_forms_is_not_asked_and_the_reason_is_named(mode: str) -> None:
    events: list[Event] = []
    call(paying(7), mode=mode, events=events)
    (ended,) = [event.to_dict() for event in events if event.type == "tool_result"]
    assert ended["status"] == "denied"
    assert "the MCP client can't ask a person; allow it with --allow" in str(ended)
    assert DONE == []
    call(paying(7), mode=mode, allow=["pay"])
    assert DONE == ["7 to ann"]


@pytest.mark.parametrize("mode", MODES)
def test_questions_of_agents_are_forms_too(mode: str) -> None:
    def asking() -> Project:
        question = {"question": "Which \x1b[31mcolour?", "choices": ["red", "blue"]}
        return project_of(
            [
                agent(
                    "main",
                    script([calls("ask_user", question)], lambda messages, _: str(messages[-1].parts[0].content)),
                    toolsets=["ask_user"],
                )
            ]
        )

    person = accepts("blue")
    result = call(asking(), mode=mode, person=person)
    assert "blue" in text_of(result)
    assert person.message == "main asks: Which \\x1b[31mcolour?"
    assert [each["const"] for each in person.forms[0].requested_schema["properties"]["answer"]["oneOf"]] == [
        "red",
        "blue",
    ]
    assert "no one to ask" in text_of(call(asking(), mode=mode))


def test_texts_of_a_model_cannot_act_on_a_form() -> None:
    project = project_of(
        [
            agent(
                "main",
                script([calls("pay", {"amount": 1, "to": "\u202eevil\n+ why: it is safe"})], "ok"),
                tools=["pay"],
            )
        ],
        tools={"pay": pay},
    )
    person = accepts("deny")
    call(project, person=person)
    assert "\u202e" not in person.message
    assert not any(line.startswith("+ why: it is safe") for line in person.message.splitlines())


def test_progress_names_what_happens() -> None:
    lines: list[tuple[float, str | None]] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        lines.append((number, message))

    call(paying(7), mode="legacy", person=accepts("once"), progress=progress)
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))
    assert any("pay(amount=7)" in (message or "") for _, message in lines)


def test_failures_are_results_that_the_clients_model_can_read() -> None:
    def broken() -> str:
        """Break."""
        raise RuntimeError("it broke")

    failing = project_of(
        [agent("main", script([calls("broken")]), tools=["broken"])], tools={"broken": broken}, on_tool_error="raise"
    )
    result = call(failing, allow=["broken"])
    assert result.is_error
    assert "it broke" in text_of(result)
    assert result.meta is not None
    assert result.meta["llm-do/run_id"]

    invalid = call(project_of([agent("main", "test", input_model=Order)]), "main", {"count": 2})
    assert invalid.is_error
    assert "item" in text_of(invalid)


def test_a_client_gets_errors_and_progress_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "tr0ub4dor-and-more")

    def broken() -> str:
        """Break."""
        raise RuntimeError(f"no login with {os.environ['ACME_API_KEY']}")

    lines: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message)

    failing = project_of(
        [agent("main", script([calls("broken")]), tools=["broken"])], tools={"broken": broken}, on_tool_error="raise"
    )
    result = call(failing, allow=["broken"], progress=note)

    assert "no login with [redacted ACME_API_KEY]" in text_of(result)
    assert any("[redacted ACME_API_KEY]" in (line or "") for line in lines)
    assert not any("tr0ub4dor" in (line or "") for line in [*lines, text_of(result)])


def test_what_does_not_exist_and_what_is_withheld_is_refused() -> None:
    async def attempts() -> None:
        async with client_of(paying()) as client:
            for name, more, reason in (
                ("nothing", {}, "no tool 'nothing'"),
                ("main", {"attachments": ["project.json"]}, "no argument 'attachments'"),
            ):
                with pytest.raises(MCPError, match=reason):
                    await client.call_tool(name, {"input": "go", **more})

    asyncio.run(asyncio.wait_for(attempts(), 30))


def test_answers_are_taken_by_the_call_that_asked_and_once() -> None:
    async def attempts() -> None:
        async with client_of(paying(7), person=accepts("once")) as client:
            session: Any = client.session
            asked = await session.call_tool("main", {"input": "go"}, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            assert asked.input_requests is not None
            answers = {key: ElicitResult(action="accept", content={"answer": "once"}) for key in asked.input_requests}

            async def answer(arguments: dict[str, Any], state: str | None) -> CallToolResult:
                return await session.call_tool("main", arguments, input_responses=answers, request_state=state)

            for arguments, state in (({"input": "other"}, asked.request_state), ({"input": "go"}, "forged")):
                with pytest.raises(MCPError, match="no call waits for these answers"):
                    await answer(arguments, state)
            assert DONE == []
            assert text_of(await answer({"input": "go"}, asked.request_state)) == "finished"
            with pytest.raises(MCPError, match="no call waits for these answers"):
                await answer({"input": "go"}, asked.request_state)
            assert DONE == ["7 to ann"]

    asyncio.run(asyncio.wait_for(attempts(), 30))


def test_a_cancelled_call_ends_its_run() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "over"

    async def cancelled() -> None:
        project = project_of([agent("main", script([calls("wait")], "ok"), tools=["wait"])], tools={"wait": wait})
        async with client_of(project, allow=["wait"]) as client:
            calling = asyncio.ensure_future(client.call_tool("main", {"input": "go"}))
            await begun.wait()
            calling.cancel()
            await ended.wait()

    asyncio.run(asyncio.wait_for(cancelled(), 30))
