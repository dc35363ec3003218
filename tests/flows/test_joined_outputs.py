"""What the step after parallel members, or after `for_each`, gets: their outputs as text, or as the list."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from llm_do import AgentArgs, AgentSpec, CallContext, LinkError, Swarm
from llm_do.flows import JoinedText, SerialGroup
from tests.flows.flow_runs import asked, finish, flow_runtime, run_flow, saying, text_of


def split(text: str) -> list[str]:
    """Split the text."""
    return text.split()


def count(word: str) -> dict[str, Any]:
    """Count the letters of a word."""
    if word == "never":
        raise ValueError("no")
    return {"word": word, "letters": len(word)}


EACH: list[Any] = ["split", {"for_each": "output", "do": "count"}]
PAIRS = [{"word": "a", "letters": 1}, {"word": "big", "letters": 3}]


def add(counts: list[dict[str, Any]]) -> int:
    """Add up the letters."""
    return sum(each["letters"] for each in counts)


def optional(counts: list[dict[str, Any]] | None = None) -> int:
    """Take a list or nothing."""
    return add(counts or [])


def add_in_context(counts: list[dict[str, Any]], ctx: CallContext) -> int:
    """Add up the letters, as a function of the form `(input, ctx)`."""
    return add(counts)


class Counts(AgentArgs):
    counts: list[dict[str, Any]]
    unit: str = "letters"

    def prompt_messages(self) -> list[Any]:
        return [f"{add(self.counts)} {self.unit}"]


def add_model(input: Counts, ctx: CallContext) -> int:
    """Add up the letters of an input model."""
    return add(input.counts)


@pytest.mark.parametrize("last", [add, optional, add_in_context, add_model])
def test_a_function_that_takes_a_list_gets_the_outputs(last: Any) -> None:
    flow = Swarm([split, count, last], steps=[*EACH, last.__name__])

    assert text_of(run_flow(flow, "a big")) == 4


def as_text(text: str) -> str:
    """Take text."""
    return text


def as_either(value: str | list[Any]) -> Any:
    """Take text or a list."""
    return value


def as_anything(value) -> Any:
    """Take anything."""
    return value


def in_context(text: str, ctx: CallContext) -> str:
    """Take text, as a function of the form `(input, ctx)`."""
    return text


@pytest.mark.parametrize("last", [as_text, as_either, as_anything, in_context])
def test_a_function_that_takes_text_gets_the_text(last: Any) -> None:
    flow = Swarm([split, count, last], steps=[*EACH, last.__name__], separator="; ")

    assert text_of(run_flow(flow, "a big")) == '{"word": "a", "letters": 1}; {"word": "big", "letters": 3}'


def test_an_agent_gets_the_list_in_its_input_model_and_text_without_one() -> None:
    typed, plain = saying("typed", input_model=Counts), saying("plain")

    run_flow(Swarm([split, count, typed], steps=[*EACH, "typed"]), "a big")
    run_flow(Swarm([split, count, plain], steps=[*EACH, "plain"], separator="; "), "a big")

    assert asked(typed) == ["4 letters"]
    assert asked(plain) == ['{"word": "a", "letters": 1}; {"word": "big", "letters": 3}']


def test_parallel_members_are_joined_in_the_same_way() -> None:
    def one(text: str) -> dict[str, Any]:
        """Count once."""
        return {"letters": 1}

    def two(text: str) -> dict[str, Any]:
        """Count twice."""
        return {"letters": 2}

    assert text_of(run_flow(Swarm([one, two, add], "(one | two) >> add"))) == 3


def test_the_list_goes_through_flows_inside_each_other() -> None:
    inner, outer = Swarm([split, count], steps=EACH, name="inner"), SerialGroup("outer", [add])

    assert text_of(run_flow(Swarm([inner, outer], "inner >> outer"), "a big")) == 4


def test_from_python_the_output_is_the_text_with_the_outputs() -> None:
    flow = Swarm([split, count], steps=EACH)
    runtime = flow_runtime(flow, entry=_letters)

    result = run_flow(flow, "a big")

    assert isinstance(result.output, JoinedText)
    assert list(result.output.outputs) == PAIRS
    assert result.to_dict()["output"] == str(result.output)
    assert type(result.to_dict()["output"]) is str
    assert finish(runtime, "a big").output == 4


async def _letters(input: Any, ctx: CallContext) -> int:
    return add(list((await ctx.call("swarm", input.input)).outputs))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"when": "outputs[?letters > `2`]", "then": "yes", "else": "no"}, "yes's"),
        ({"when": "length(outputs) > `2`", "then": "yes", "else": "no"}, "no's"),
        ({"for_each": "outputs[].word", "do": "yes"}, "yes's\n\nyes's"),
        ({"for_each": "outputs[-1:]", "do": "yes"}, "yes's"),
    ],
)
def test_conditions_and_lists_may_look_at_the_outputs(step: Any, expected: str) -> None:
    members = [split, count, *[saying(name) for name in ("yes", "no") if name in step.values()]]

    assert text_of(run_flow(Swarm(members, steps=[*EACH, step]), "a big")) == expected


def test_a_failed_item_is_text_in_the_list() -> None:
    steps: list[Any] = ["split", {"for_each": "output", "do": "count", "on_error": "collect"}]

    def last(found: list[Any]) -> list[Any]:
        """Return the list."""
        return found

    listed = text_of(run_flow(Swarm([split, count, last], steps=[*steps, "last"]), "a never"))
    steps.append({"when": "outputs[1] == 'x'", "then": "as_text"})
    passed = text_of(run_flow(Swarm([split, count, as_text], steps=steps), "a never"))

    assert listed == [PAIRS[0], "item 2 failed: count raised ValueError: no"]
    assert str(passed.outputs[1]) == listed[1]


def test_with_an_aggregate_there_is_only_what_it_returns() -> None:
    flow = Swarm([split, count, as_anything], steps=[*EACH, "as_anything"], aggregate=add)

    assert text_of(run_flow(flow, "a big")) == 4


def test_a_parallel_member_that_changes_its_list_changes_no_other() -> None:
    def spoil(found: list[dict[str, Any]]) -> str:
        """Change the input."""
        found[0]["letters"] = 100
        return "spoiled"

    flow = Swarm([split, count, spoil, add], steps=[*EACH, "spoil | add"], max_concurrency=1)

    assert text_of(run_flow(flow, "a big")) == "spoiled\n\n4"


def test_a_copy_keeps_the_outputs() -> None:
    joined = JoinedText.of(PAIRS, "; ")

    for other in (copy.deepcopy(joined), pickle.loads(pickle.dumps(joined))):
        assert (other, other.outputs) == (joined, joined.outputs)


SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["a", {"when": "outputs", "then": "b"}], "joins no outputs"),
        (["a", {"for_each": "outputs", "do": "b"}], "joins no outputs"),
        ([{"for_each": "output", "do": "a"}, {"when": "outputs[0].wrod", "then": "b"}], "did you mean `word`"),
        ([{"for_each": "output", "do": "a"}, {"for_each": "output", "do": "b"}], "write `outputs`"),
    ],
)
def test_what_the_outputs_are_is_checked(steps: Any, message: str) -> None:
    with pytest.raises(LinkError) as caught:
        Swarm([AgentSpec("a", output_type=SCHEMA), AgentSpec("b")], steps=steps)

    assert message in f"{caught.value} {caught.value.hint}"
