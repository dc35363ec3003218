"""Canonical JSON and digests: equal for equal data, different otherwise."""

from __future__ import annotations

import datetime
import enum
import json
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import PurePosixPath

import pytest
from hypothesis import given, strategies as st

from llm_do.policy.digest import call_digest
from llm_do.policy.values import ToolCallInfo
from llm_do.text.canonical_json import canonical_json, digest
from tests.support.tables import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters()) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=5))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert digest(value) == digest(dict(reversed(list(value.items()))))


@given(JSON, JSON)
def test_different_data_have_different_texts(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical_json(one) == canonical_json(other)) is same


@each_row(
    "one, other",
    [
        (1, "1"),
        (1, True),
        (1, 1.0),
        (None, "null"),
        ("", None),
        ([], {}),
        ({"a": None}, {}),
        ("\ud83d\ude00", "😀"),
        (b"x", "x"),
        (b"x", {"\0bytes": "eA=="}),
        ({1: "a"}, {"1": "a"}),
        ({1, 2}, [1, 2]),
        (Decimal("1.0"), Decimal("1.00")),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.timedelta(seconds=1), datetime.timedelta(seconds=1, microseconds=1)),
        (Point(1, 2), Point(2, 1)),
        (PurePosixPath("a"), "a"),
    ],
)
def test_values_that_a_tool_can_distinguish_have_different_digests(one: object, other: object) -> None:
    assert digest(one) != digest(other)


def test_values_that_a_tool_cannot_distinguish_have_equal_digests() -> None:
    assert digest((1, 2)) == digest([1, 2])
    assert digest(Colour.RED) == digest("red")
    assert digest({2, 1}) == digest({1, 2})
    assert digest({1: "a", 2: "b"}) == digest({2: "b", 1: "a"})


def test_unserializable_data_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    for value in (object(), {"a": object()}, loop):
        with pytest.raises(TypeError):
            digest(value)


def test_a_call_is_the_same_only_with_the_same_agent_tool_arguments_and_targets() -> None:
    call = ToolCallInfo("write", {"path": "a", "n": 1}, path="main/x", resolved={"path": "a"})
    assert call_digest(call) == call_digest(replace(call, args={"n": 1, "path": "a"}))
    for other in (
        replace(call, tool_name="read"),
        replace(call, args={"path": "a", "n": 2}),
        replace(call, path="main"),
        replace(call, toolset="docs"),
        replace(call, resolved={"path": "elsewhere"}),
    ):
        assert call_digest(call) != call_digest(other)
    with pytest.raises(TypeError):
        call_digest(replace(call, args={"path": "a", "n": object()}))


def test_a_call_with_lone_surrogates_has_a_digest() -> None:
    assert len(call_digest(ToolCallInfo("write", {"text": "\udcff"}))) == 64
