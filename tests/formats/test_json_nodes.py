"""JSON with locations: the standard parser's values, and clear messages for invalid JSON."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from llm_do.formats.syntax.json_nodes import parse_json
from tests.support.tables import each_row

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.sampled_from([None, 2]), st.booleans())
def test_json_means_the_same_as_to_the_standard_parser(value: object, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    result = parse_json(text, "p.json")
    assert result.diagnostics == ()
    assert result.node is not None
    assert json.dumps(result.node.data()) == json.dumps(json.loads(text))


def test_every_value_and_key_has_a_location() -> None:
    node = parse_json('{\r\n  "a": [1, {"é": "\U0001f600"}],\n\t"b": null\n}', "p.json").node
    assert node is not None
    assert {loc: (p.line, p.column, p.end_line, p.end_column) for loc, p in ((x, n.place) for x, n in node.walk())} == {
        (): (1, 1, 4, 2),
        ("a",): (2, 8, 2, 23),
        ("a", 0): (2, 9, 2, 10),
        ("a", 1): (2, 12, 2, 22),
        ("a", 1, "é"): (2, 18, 2, 21),
        ("b",): (3, 7, 3, 11),
    }
    assert node.key_place(("a", 1, "é")).column == 13
    assert node.place_of(("a", 9, "x")) == node.place_of(("a",))


@each_row(
    "text, expected, word",
    [
        ("", [("LD105", 1, 1)], "empty"),
        (" \n ", [("LD105", 2, 2)], "empty"),
        ("{", [("LD105", 1, 2)], "end of the file"),
        ('{"a"}', [("LD105", 1, 5)], "`:` is expected"),
        ('{"a": }', [("LD105", 1, 7)], "a value is expected"),
        ('{"a": 1 "b": 2}', [("LD105", 1, 9)], "`,` or `}`"),
        ('{"a": 1,}', [("LD105", 1, 8)], "comma before"),
        ("[1,\n2,\n]", [("LD105", 2, 2)], "comma before"),
        ("{'a': 1}", [("LD105", 1, 2)], "a key is expected"),
        ("{a: 1}", [("LD105", 1, 2)], "a key is expected"),
        ("{\"a\": 'x'}", [("LD105", 1, 7)], "a value is expected"),
        ('{"a": x}', [("LD105", 1, 7)], "not `x`"),
        ('{"a": True}', [("LD105", 1, 7)], "Python"),
        ('{"a": 01}', [("LD105", 1, 7)], "a value is expected"),
        ('{"a": +1}', [("LD105", 1, 7)], "a value is expected"),
        ('{"a": .5}', [("LD105", 1, 7)], "a value is expected"),
        ('{"a": "x', [("LD105", 1, 7)], "never closed"),
        ('{"a": "x\n"}', [("LD105", 1, 9)], "isn't closed on its line"),
        ('{"a": "\t"}', [("LD105", 1, 8)], "U+0009"),
        ('{"a": "\\x"}', [("LD105", 1, 8)], "`\\x`"),
        ('{"a": "\\u12"}', [("LD105", 1, 8)], "`\\u`"),
        ('{"a": 1} x', [("LD105", 1, 10)], "after the end"),
        ('{"a": 1} // x\n', [("LD105", 1, 10)], "comments"),
        ('/* x */ {"a": 1, # y\n"b": 2}', [("LD105", 1, 1), ("LD105", 1, 18)], "comments"),
        ('{"a": NaN, "b": -Infinity}', [("LD116", 1, 7), ("LD116", 1, 17)], "NaN"),
        ('{"a": 1e999}', [("LD116", 1, 7)], "too large"),
        ('{"a": ' + "9" * 5000 + "}", [("LD116", 1, 7)], "too large"),
        ('{"a": "\\ud800"}', [("LD103", 1, 7)], "surrogate"),
        ('{"a": "\udfff"}', [("LD103", 1, 8)], "U+DFFF"),
        ('{"a": 1,\n "b": {"c": 1, "c": 2},\n "a": 2}', [("LD110", 2, 16), ("LD110", 3, 2)], "line 2, column 8"),
        ("[" * 101 + "]" * 101, [("LD104", 1, 101)], "deeper"),
        ("\x00", [("LD105", 1, 1)], "U+0000"),
    ],
)
def test_invalid_json_is_reported_with_its_location(text: str, expected: list[tuple[str, int, int]], word: str) -> None:
    result = parse_json(text, "p.json")
    assert [(item.code, item.line, item.column) for item in result.diagnostics] == expected
    assert word in result.diagnostics[0].message


def test_parsing_continues_after_common_mistakes() -> None:
    result = parse_json('\ufeff{"a": [1,], // one\n "b": None, "b": 2,}', "p.json")
    assert result.node is not None
    assert result.node.data() == {"a": [1], "b": None}
    assert len(result.diagnostics) == 5


def test_a_hundred_levels_are_accepted() -> None:
    assert parse_json("[" * 100 + "]" * 100, "p.json").diagnostics == ()


@pytest.mark.parametrize(
    "text",
    ["[" * 1_000_000, '{"a":' * 1_000_000, '"' + "\\n" * 1_000_000 + '"', '"' + "x" * 3_000_000, " " * 3_000_000],
)
def test_no_document_takes_long_to_parse(text: str) -> None:
    start = time.process_time()
    parse_json(text, "p.json")
    assert time.process_time() - start < 2
