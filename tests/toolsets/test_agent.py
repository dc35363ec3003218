"""Agents as tools: their name, schema and description, and calls with valid and invalid arguments."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

from llm_do import AgentArgs, AgentToolset
from llm_do.toolsets.agent import agent_as_toolset
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script


class Pitch(AgentArgs):
    """The pitch to judge."""

    company: str = Field(description="Whose pitch it is.")
    tags: list[str] = Field(default_factory=list)

    def prompt_messages(self) -> list[Any]:
        return [f"{self.company} {self.tags}"]


def shown(toolset: AgentToolset) -> Any:
    """Return the tool as a model sees it."""
    [(name, tool)] = asyncio.run(toolset.get_tools(None)).items()  # type: ignore[arg-type]
    assert tool.tool_def.name == name
    return tool.tool_def


def test_an_agent_is_one_tool_with_its_name() -> None:
    definition = shown(AgentToolset(agent("critic", script("x"), description="Judges a text.")))

    assert (definition.name, definition.description) == ("critic", "Judges a text.")
    assert definition.parameters_json_schema["required"] == ["input"]
    assert set(definition.parameters_json_schema["properties"]) == {"input", "attachments"}


def test_the_schema_is_the_input_models() -> None:
    schema = shown(agent_as_toolset(agent("judge", script("x"), input_model=Pitch))).parameters_json_schema

    assert schema["properties"]["company"]["description"] == "Whose pitch it is."
    assert schema["required"] == ["company"]


def test_a_long_description_is_truncated_and_a_missing_one_generated() -> None:
    assert len(shown(AgentToolset(agent("a", script("x"), description="word " * 200))).description) <= 200
    assert "helper" in shown(AgentToolset(agent("helper", script("x")))).description


def test_a_valid_argument_reaches_the_agent_and_an_invalid_one_fails() -> None:
    judge = agent("judge", script(lambda messages, info: messages[-1].parts[-1].content), input_model=Pitch)
    calls = [
        call("judge", company="A", tags=["x"]),
        call("judge", '{"company": "B"}'),
        call("judge", company=1),
        call("judge", "[]"),
        call("judge"),
    ]
    result = carry_out(runtime_of([agent("main", script(calls, "fin"), toolsets=[judge]), judge]))

    results = results_of(result.messages)
    assert [outcome for _, outcome, _ in results] == ["success", "success", "failed", "failed", "failed"]
    assert [text for _, _, text in results][:2] == ["A ['x']", "B []"]
    assert "company" in results[2][2]
    assert [record.path for record in result.calls] == ["main/judge"] * 2
    strict(result.messages)


def test_usage_is_added_to_the_parents() -> None:
    judge = agent("judge", script("ok"))
    result = carry_out(
        runtime_of([agent("main", script([call("judge", input="x")] * 1, "fin"), toolsets=[judge]), judge])
    )

    assert result.usage.requests == 3
    assert result.calls[0].usage.requests == 1


def test_several_agents_in_one_response_run_in_parallel() -> None:
    waiting = 0
    everybody = asyncio.Event()

    async def turn(messages: Any, info: Any) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 3:
            everybody.set()
        async with asyncio.timeout(5):
            await everybody.wait()
        return "met"

    workers = [agent(f"w{n}", script(turn)) for n in range(3)]
    main = agent("main", script([call(f"w{n}", input="go") for n in range(3)], "fin"), toolsets=workers)
    result = carry_out(runtime_of([main, *workers]))

    assert [text for _, _, text in results_of(result.messages)] == ["met"] * 3


def test_an_agent_may_be_listed_by_name_object_or_toolset_and_prefixed() -> None:
    from llm_do.project.agent_spec import ToolsetRef

    judge = agent("judge", script("ok"))
    model = script([call("judge", input="a"), call("my_judge", input="b")], "fin")
    result = carry_out(runtime_of([agent("main", model, toolsets=["judge", ToolsetRef("judge", prefix="my")]), judge]))
    assert model.asked[0].tools == ["judge", "my_judge"]
    assert [text for _, _, text in results_of(result.messages)] == ["ok", "ok"]

    model = script([call("judge", input="a")], "fin")
    result = carry_out(runtime_of([agent("main", model, toolsets=[AgentToolset(judge)]), judge]))
    assert [text for _, _, text in results_of(result.messages)] == ["ok"]
    assert result.calls[0].path == "main/judge"
