"""Large values written in parts are the same JSON as in one go."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.text.json_data import NotDataError, to_json_data
from llm_do.text.large_data import conversion
from llm_do.text.large_data.conversion import is_large, json_parts, large_json_data, text_parts
from tests.support.tables import each_row

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5)
KEYS = st.text(max_size=5) | st.integers() | st.booleans()
VALUES: Any = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=9) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=40,
)


@pytest.mark.slow
@given(VALUES, st.integers(2, 12))
def test_parts_make_the_same_json(value: Any, nodes: int) -> None:
    before = conversion._NODES, conversion._CHARACTERS
    conversion._NODES, conversion._CHARACTERS = nodes, nodes * 2
    try:
        text = "".join(json_parts(value))
    finally:
        conversion._NODES, conversion._CHARACTERS = before
    assert json.loads(text) == json.loads(json.dumps(to_json_data(value)))


@given(st.text(st.sampled_from(["a", "\ud83d", "\ude00", "é", "\ud800"]), max_size=12), st.integers(1, 4))
def test_parts_of_a_text_never_split_a_character(text: str, characters: int) -> None:
    before = conversion._CHARACTERS
    conversion._CHARACTERS = characters
    try:
        assert "".join(text_parts(text)) == to_json_data(text)
    finally:
        conversion._CHARACTERS = before


@each_row(
    "value, large",
    [
        ("x" * 900_000, False),
        ("x" * 1_100_000, True),
        (b"x" * 1_100_000, True),
        (bytearray(1_100_000), True),
        (list(range(4_000)), False),
        (list(range(6_000)), True),
        ([[[list(range(6_000))]]], True),
        ({"a": {"b": dict.fromkeys(range(6_000))}}, True),
        ([[]] * 6_000, True),
        (None, False),
        (object(), False),
    ],
)
def test_a_value_is_large_by_its_parts_however_they_are_nested(value: Any, large: bool) -> None:
    assert is_large(value) is large


class Level(IntEnum):
    LOW = 1


class Count(int):
    pass


class Name(str):
    pass


@each_row("value", [Level.LOW, Count(3), Name("x"), True, 2])
def test_data_has_pythons_own_types_only_whatever_it_is_made_of(value: Any) -> None:
    exact = {bool, int, str}
    assert type(to_json_data(value)) in exact
    for whole in ([value], {"a": value}, [*range(4_998), value]):
        for data in (to_json_data(whole), large_json_data(whole)):
            assert {type(each) for each in (data if isinstance(data, list) else data.values())} <= exact


def test_what_has_no_content_is_found_in_a_large_value_too() -> None:
    with pytest.raises(NotDataError):
        list(json_parts([*range(10_000), object()], strict=True))
