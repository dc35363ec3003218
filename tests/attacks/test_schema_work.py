"""Schemas and values that would keep a validator busy for hours: each check ends, and what isn't checked is refused."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import pytest
from pydantic_ai import Tool

from llm_do.project.tools.argument_schemas import (
    SchemaWorkError,
    check_briefly,
    check_schema,
    find_schema_faults,
    find_unusable_part,
)
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

NESTED = "a" * 60 + "b"
BRANCHES = {f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(60)}


def of(name: str = "x", **schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}}


ENDLESS: dict[str, tuple[dict[str, Any], Any]] = {
    "nested repetition": (of(pattern=r"^(\w+\s?)*$"), {"x": NESTED + "!"}),
    "overlapping choices": (of(pattern="^(a|a)*$"), {"x": NESTED}),
    "backtracking after a look ahead": (of(pattern=r"^(?=x?)(a|aa)+$"), {"x": NESTED}),
    "names of properties": ({"type": "object", "propertyNames": {"pattern": "^(a|aa)+$"}}, {NESTED: 1}),
    "patterns of properties": ({"type": "object", "patternProperties": {"^(a|aa)+$": {}}}, {NESTED: 1}),
    "other properties": (
        {"type": "object", "patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False},
        {NESTED: 1},
    ),
    "references that double": (
        {"type": "object", "$defs": {**BRANCHES, "d60": {"type": "object"}}, "$ref": "#/$defs/d0"},
        {},
    ),
    "many choices and a long value": (of(anyOf=[{"type": "integer"}] * 3000), {"x": "y" * 1_000_000}),
    "a reference to itself": ({"type": "object", "$ref": "#"}, {}),
    "unlimited patterns": (
        {"type": "object", "patternProperties": {"^(a|aa)+$": {}}, "unevaluatedProperties": False},
        {NESTED: 1},
    ),
}


@each_row("name", ENDLESS)
def test_an_event_loop_is_not_held_up_by_a_check(name: str) -> None:
    schema, value = ENDLESS[name]
    started = time.thread_time()
    with contextlib.suppress(SchemaWorkError):
        assert check_briefly(schema, value) is not None
    assert time.thread_time() - started < 0.5  # 0.02 on a quiet machine


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_a_check_ends_and_what_it_could_not_check_is_a_fault(name: str) -> None:
    started = time.thread_time()
    assert check_schema(*ENDLESS[name]) is not None
    assert time.thread_time() - started < 10


@pytest.mark.slow
def test_a_call_whose_arguments_take_too_long_to_check_is_refused_and_others_run() -> None:
    pattern, value = ENDLESS["overlapping choices"][0], ENDLESS["overlapping choices"][1]["x"]

    def take(x: str) -> str:
        return f"took {x}"

    tool = Tool.from_schema(take, "take", "Take.", pattern)
    spec = agent("main", script([call("take", x=value), call("take", x="aa"), call("take", x="b")], "done"))
    spec.tools = [tool]
    result = carry_out(runtime_of([spec]))

    (_, first, slow), (_, second, good), (_, third, bad) = results_of(result.messages)
    assert (first, second, third) == ("failed", "success", "failed")
    assert slow == "invalid arguments for take: its schema can't be checked: it takes too long"
    assert good == "took aa"
    assert bad == "invalid arguments for take: x: 'b' does not match '^(a|a)*$'"


def test_a_run_can_be_cancelled_while_arguments_are_checked() -> None:
    schema, value = ENDLESS["references that double"]
    spec = agent("main", script(call("take", value), "done"))
    spec.tools = [Tool.from_schema(lambda: "took", "take", "Take.", schema)]

    async def scenario() -> float:
        runtime = runtime_of([spec], run_timeout=0.05)
        started = time.monotonic()
        result = await runtime.execute("go")
        assert result.status == "limited"
        return time.monotonic() - started

    assert asyncio.run(scenario()) < 0.9  # the check would take a second of processor time


@each_row(
    "schema, value, fault",
    [
        (of(pattern="^[a-z]+$"), {"x": "A"}, "x: 'A' does not match '^[a-z]+$'"),
        (of(pattern=r"^(?!\.)(?!.*\.\.)[\w.]+@[\w.]+$"), {"x": "a@b.example"}, None),
        (of(pattern=r"^(?!\.)(?!.*\.\.)[\w.]+@[\w.]+$"), {"x": ".a@b"}, "does not match"),
        (of(pattern=r"^\p{Lu}"), {"x": "Ä"}, None),
        (of(uniqueItems=True), {"x": [1, True, [1], [True], {"a": 1}, {"a": True}, "1", None, [], {}]}, None),
        (of(uniqueItems=True), {"x": [1, 1.0]}, "non-unique"),
        (of(uniqueItems=True), {"x": [{"a": 1, "b": [2]}, {"b": [2], "a": 1}]}, "non-unique"),
        (of(uniqueItems=True), {"x": [{"n": number} for number in range(3000)]}, None),
        ({"type": "object", "patternProperties": {"^s_": {"type": "string"}}}, {"s_a": 1}, "s_a: 1 is not of type"),
        (
            {"type": "object", "patternProperties": {"^s_": {}}, "additionalProperties": False},
            {"s_a": 1, "t": 2},
            "'t' does not match any of the patterns '^s_'",
        ),
        (
            {"type": "object", "patternProperties": {"^s_": {}}, "additionalProperties": {"type": "integer"}},
            {"s_a": "x", "t": "y"},
            "t: 'y' is not of type 'integer'",
        ),
        (
            {"properties": {"p": {}}, "patternProperties": {"^s_": {}}, "additionalProperties": False},
            {"p": 1, "s_": 2},
            None,
        ),
    ],
)
def test_what_is_limited_still_checks_as_the_standard_says(schema: Any, value: Any, fault: str | None) -> None:
    found = find_schema_faults(schema, value)
    assert (found == []) if fault is None else fault in found[0]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "it is not an object"),
        ([], "it is not an object"),
        ({}, 'the root must have "type": "object"'),
        ({"type": "string"}, 'the root must have "type": "object"'),
        ({"type": "object", "properties": []}, "properties: [] is not of type 'object'"),
        ({"type": "object", "required": "x"}, "required: 'x' is not of type 'array'"),
        (of(type="strin"), "properties.x.type: 'strin' is not valid"),
        (of(pattern="("), "the pattern '(' is not a valid regular expression"),
        (of(pattern="(?:a{600}){1000}"), "the pattern '(?:a{600}){1000}' takes too much memory"),
        (of(**{"$ref": "#/$defs/none"}), "$ref: '#/$defs/none' leads nowhere"),
        (of(**{"$ref": "https://example.org/schema"}), "leads nowhere"),
        (of(enum=["x" * 300_000]), "it has more than 262,144 characters"),
        ({**of(items={"$ref": "#/$defs/a~1b/anyOf/0"}), "$defs": {"a/b": {"anyOf": [{}]}}}, None),
        ({"type": "object", "$defs": {**BRANCHES, "d60": {}}, "$ref": "#/$defs/d0"}, None),
        (of(type="string", pattern="^[a-z]+$"), None),
    ],
)
def test_a_schema_that_no_provider_and_no_check_can_use_is_found_before_it_is_offered(
    schema: Any, reason: str | None
) -> None:
    found = find_unusable_part(schema)
    assert found is None if reason is None else reason in str(found)


def test_a_schema_nested_too_deeply_is_found_too() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"properties": {"x": schema}}
    assert "it can't be read" in str(find_unusable_part({"type": "object", "properties": {"x": schema}}))
