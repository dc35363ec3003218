"""Large JSON is read in parts, with the same result as `json.loads`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from llm_do.toolsets.mcp import large_json
from llm_do.toolsets.mcp.large_json import read_large_json

SMALL = 40
"""More characters than a number in these tests has: a longer one is read in one go, or not at all."""
TEXTS = st.text(st.sampled_from('a\u00e9\u20ac\U0001f600\ud83d\ude00"\\/\n\u0007 ')) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | TEXTS,
    lambda children: st.lists(children) | st.dictionaries(TEXTS, children),
    max_leaves=25,  # several windows, and generated in half the time that the default takes
)


@pytest.fixture(autouse=True, scope="module")
def small_window() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_json, "_WINDOW", SMALL)
        yield


def outcome(read: Any, data: bytes | str) -> str:
    """What is read, or that it isn't JSON; as a text, since NaN doesn't equal itself."""
    try:
        return repr(read(data))
    except ValueError:
        return "no JSON"


@settings(max_examples=60)
@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_json_is_read_as_in_one_go(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert repr(read_large_json(text)) == repr(json.loads(text))


@given(st.text(st.sampled_from('[]{},:"\\u0d8c1-.e \n'), max_size=40))
def test_what_is_not_json_is_refused(text: str) -> None:
    assert outcome(read_large_json, text) == outcome(json.loads, text)


@pytest.mark.parametrize(
    "text",
    [
        '"no end' + "x" * SMALL,
        '"a raw\nline feed' + "x" * SMALL + '"',
        '"ends in a backslash\\',
        '["' + "x" * SMALL + '" 1]',
        "[" + "1," * SMALL + "]",
        '{"a' + "a" * SMALL + '": 1, 2: 3}',
        '{"a": ' + "1" * SMALL + "} x",
        "",
        " " * 3 * SMALL,
    ],
)
def test_broken_json_is_refused_wherever_it_breaks(text: str) -> None:
    with pytest.raises(ValueError):
        json.loads(text)
    with pytest.raises(ValueError):
        read_large_json(text)


def test_bytes_that_are_not_text_are_refused() -> None:
    for data in (b'"' + b"x" * SMALL + b'\xff"', b'"' + b"x" * SMALL + b'\xc3"', b"[\xff]"):
        with pytest.raises(ValueError):
            read_large_json(data)


def test_nesting_is_bounded() -> None:
    assert read_large_json("[" * 200 + "]" * 200)
    for levels in (202, 990, 100_000):
        with pytest.raises(ValueError, match="nested more deeply than 200 levels"):
            read_large_json("[" * levels + "]" * levels)


def test_the_number_of_containers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "_MOST_CONTAINERS", 100)
    for many, one_more in (("[" + "[]," * 98 + "[]]", "[" + "[]," * 99 + "[]]"), ("[{}]" + " " * 900, "[" * 101)):
        assert read_large_json(many)
        with pytest.raises(ValueError, match="has more than 100 lists and objects"):
            read_large_json(one_more)


def test_no_call_into_native_code_gets_more_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[int] = []
    scan = large_json._scan

    def measured(text: str, at: int) -> Any:
        scanned.append(len(text))
        return scan(text, at)

    monkeypatch.setattr(large_json, "_scan", measured)
    rows = [{"id": number, "share": math.pi, "name": f"row {number}"} for number in range(200)]
    assert read_large_json(json.dumps({"rows": rows})) == {"rows": rows}
    assert max(scanned) <= SMALL
