"""Values passed between the steps of a workflow: text, fields, arguments; and the errors for mismatches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import CallContext, InputError, PromptInput, RunError, Swarm
from llm_do.flows import ParallelGroup
from tests.flows.flow_runs import Facts, Note, Report, asked, run_flow, saying, text_of
from tests.support.runs import agent
from tests.support.scripted import call, script
from tests.support.tables import each_row


def test_each_step_reads_the_output_of_the_previous_one_and_the_last_answers() -> None:
    a, b, c = saying("a"), saying("b"), saying("c")

    assert text_of(run_flow(Swarm([a, b, c]), "start")) == "c's"
    assert [asked(spec) for spec in (a, b, c)] == [["start"], ["a's"], ["b's"]]


def test_the_expression_determines_the_order() -> None:
    a, b = saying("a"), saying("b")

    assert text_of(run_flow(Swarm([a, b], flow="b >> a"))) == "a's"
    assert asked(b) == ["go"]


def test_parallel_members_get_the_same_input_and_the_next_step_gets_both_outputs_in_declared_order() -> None:
    a, b, c, d = (saying(name) for name in "abcd")

    assert text_of(run_flow(Swarm([a, b, c, d], flow="a >> (c | b) >> d"))) == "d's"
    assert asked(c) == asked(b) == ["a's"]
    assert asked(d) == ["c's\n\nb's"]


def test_a_group_joins_with_its_separator_or_its_aggregate() -> None:
    a, b = saying("a"), saying("b")

    async def count(outputs: list[str]) -> dict[str, int]:
        return {"outputs": len(outputs)}

    assert text_of(run_flow(ParallelGroup("pair", [a, b], separator=" / "))) == "a's / b's"
    assert text_of(run_flow(ParallelGroup("pair", [a, b], aggregate=lambda outputs: outputs[::-1]))) == ["b's", "a's"]
    assert text_of(run_flow(ParallelGroup("pair", [a, b], aggregate=count))) == {"outputs": 2}


def test_an_aggregate_that_raises_is_named_with_its_line() -> None:
    def broken(outputs: list[str]) -> str:
        raise ValueError("no")

    result = run_flow(ParallelGroup("pair", [saying("a"), saying("b")], aggregate=broken))

    assert result.status == "failed"
    assert str(result.error) == "the aggregate of flow 'pair' raised ValueError: no"
    assert result.error.file == "test_passing.py"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["model", "dict", "dataclass"])
def test_a_structured_output_arrives_as_fields_where_the_next_step_takes_fields(kind: str) -> None:
    facts = {"title": "Tea", "points": ["green", "hot"]}

    def research(text: str) -> Any:
        return {"model": Facts(**facts), "dict": dict(facts), "dataclass": Note(**facts)}[kind]

    writer = saying("writer", input_model=Report)

    assert text_of(run_flow(Swarm([research, writer]))) == "writer's"
    assert asked(writer) == ["Tea: green, hot"]


def test_a_structured_output_arrives_as_json_where_the_next_step_takes_text() -> None:
    researcher = agent("researcher", script(call("final_result", {"title": "Tea", "points": []})), output_type=Facts)
    writer = saying("writer")

    run_flow(Swarm([researcher, writer]))

    assert asked(writer) == ['{"title": "Tea", "points": []}']


class Translation(PromptInput):
    language: str = "English"


@each_row(
    "output, language, prompt",
    [
        ({"input": "Tee", "language": "German"}, "German", "Tee"),
        ("Tea", "English", "Tea"),
        ({"title": "Tea"}, "English", '{"title": "Tea"}'),
        (["Tea"], "English", '["Tea"]'),
    ],
)
def test_an_input_model_with_more_fields_receives_them(output: Any, language: str, prompt: str) -> None:
    def make(text: str) -> Any:
        return output

    writer = saying("writer", input_model=Translation, template=True, instructions="{{language}}")

    assert text_of(run_flow(Swarm([make, writer]))) == "writer's"
    assert asked(writer) == [prompt]
    assert writer.model.asked[0].info.instructions == language  # type: ignore[union-attr]


def test_an_output_that_the_next_step_cannot_take_ends_the_run_and_names_both() -> None:
    result = run_flow(Swarm([saying("a"), saying("b", input_model=Report)], name="pair"))

    assert result.status == "failed"
    assert isinstance(result.error, RunError)
    assert result.error.agent_path == "pair/2/b"
    assert "b can't take the output of the previous step" in result.error.message
    assert "title: Field required" in result.error.message


def test_a_flow_takes_what_its_first_step_takes() -> None:
    writer = saying("writer", input_model=Report)
    flow = Swarm([writer, saying("b")])

    with pytest.raises(InputError, match="title: Field required"):
        run_flow(flow, "text")
    assert text_of(run_flow(flow, {"title": "Tea", "points": ["hot"]})) == "b's"
    assert asked(writer) == ["Tea: hot"]


def test_functions_of_every_shape_can_be_steps() -> None:
    def shorten(text: str) -> str:
        return text[:2]

    def describe(facts: Facts) -> str:
        return f"{facts.title}!"

    async def make(input: str, ctx: CallContext) -> dict[str, Any]:
        return {"title": f"{input} at {ctx.path}", "points": []}

    def by_name(title: str, points: list[str]) -> Facts:
        return Facts(title=title, points=points)

    flow = Swarm([shorten, make, by_name, describe], name="lab")

    assert text_of(run_flow(flow, "abcdef")) == "ab at lab/2/make!"


def test_a_function_with_the_context_gets_the_input_its_annotation_says() -> None:
    seen: list[Any] = []

    async def text(input: str, ctx: CallContext) -> Facts:
        seen.append(input)
        return Facts(title="Tea", points=["hot"])

    async def fields(input: dict[str, Any], ctx: CallContext) -> Facts:
        seen.append(input)
        return Facts(**input)

    async def model(input: Report, ctx: CallContext) -> Note:
        seen.append(input)
        return Note(input.title, input.points)

    async def default(input, ctx) -> list[str]:  # type: ignore[no-untyped-def]
        seen.append(input.input)
        return ["a", "b"]

    async def listed(input: list[str], ctx: CallContext) -> str:
        seen.append(input)
        return "end"

    async def numbers(input: list[int], ctx: CallContext) -> str:
        return "never"

    facts = {"title": "Tea", "points": ["hot"]}
    assert text_of(run_flow(Swarm([text, fields, model, default, listed]))) == "end"
    assert seen == ["go", facts, Report(**facts), '{"title": "Tea", "points": ["hot"]}', ["a", "b"]]
    wrong = run_flow(Swarm([default, numbers]))
    assert "numbers can't take the output of the previous step" in str(wrong.error)


def test_a_function_step_that_raises_is_named_with_its_line() -> None:
    def broken(text: str) -> str:
        raise KeyError("gone")

    result = run_flow(Swarm([saying("a"), broken], name="pair"))

    assert (result.status, str(result.error)) == ("failed", "broken raised KeyError: 'gone'")
    assert result.error.agent_path == "pair/2/broken"  # type: ignore[union-attr]
    assert result.error.file == "test_passing.py"  # type: ignore[union-attr]


def test_no_member_can_change_another_ones_input() -> None:
    def make(text: str) -> dict[str, Any]:
        return {"notes": ["first"]}

    async def greedy(input: dict, ctx: CallContext) -> str:  # type: ignore[type-arg]
        input["notes"].append("mine")
        return "taken"

    async def modest(input: dict, ctx: CallContext) -> str:  # type: ignore[type-arg]
        await asyncio.sleep(0)
        return ",".join(input["notes"])

    assert text_of(run_flow(Swarm([make, greedy, modest], flow="make >> (greedy | modest)"))) == "taken\n\nfirst"
