"""Flow expressions: the trees that they mean, and the locations of their faults."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from llm_do.formats.syntax.flow_expression import (
    FlowSyntaxError,
    FlowTree,
    Parallel,
    Reference,
    Serial,
    format_flow,
    names_in,
    offset_in_json,
    parse_flow,
)
from llm_do.formats.syntax.json_nodes import parse_json
from tests.support.tables import each_row

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True).map(Reference)


def groups(inner: st.SearchStrategy[FlowTree]) -> st.SearchStrategy[FlowTree]:
    many = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.one_of(many.map(Serial), many.map(Parallel))


TREES: st.SearchStrategy[FlowTree] = st.recursive(NAMES, groups, max_leaves=12)


def ref(name: str) -> Reference:
    return Reference(name)


@each_row(
    "text, tree",
    [
        ("a", ref("a")),
        ("((a))", ref("a")),
        ("a >> b >> c", Serial((ref("a"), ref("b"), ref("c")))),
        ("a|b", Parallel((ref("a"), ref("b")))),
        ("(a | b) >> c", Serial((Parallel((ref("a"), ref("b"))), ref("c")))),
        ("a >> (b | (c >> d))", Serial((ref("a"), Parallel((ref("b"), Serial((ref("c"), ref("d")))))))),
        ("\n fact-checker>>\t_x2 ", Serial((ref("fact-checker"), ref("_x2")))),
    ],
)
def test_an_expression_is_parsed_into_its_tree(text: str, tree: FlowTree) -> None:
    assert parse_flow(text) == tree


@each_row(
    "text, message, caret",
    [
        ("", "empty", "^"),
        ("   ", "empty", "^^^"),
        ("a >>", "missing after `>>`", "    ^"),
        (">> a", "missing before `>>`", "^^"),
        ("a >> >> b", "missing after `>>`", "     ^^"),
        ("a > b", "not an operator", "  ^"),
        ("a b", "missing before `b`", "  ^"),
        ("a >> ()", "group is empty", "     ^^"),
        ("(a | b", "never closed", "^"),
        ("a | b) >> c", "closes nothing", "     ^"),
        ("a >> b | c", "meet without parentheses", "       ^"),
        ("a >> 2nd", "neither a name nor an operator", "     ^^^"),
        ("a, b", "neither a name nor an operator", " ^"),
        ("(a)(b)", "missing before `(`", "   ^"),
        ("schön >> b", "neither a name nor an operator", "   ^^"),
    ],
)
def test_a_fault_points_at_its_character(text: str, message: str, caret: str) -> None:
    with pytest.raises(FlowSyntaxError) as raised:
        parse_flow(text)

    assert message in str(raised.value)
    assert " " * raised.value.start + "^" * (raised.value.end - raised.value.start) == caret


@given(TREES)
def test_a_written_expression_parses_back_to_its_tree(tree: FlowTree) -> None:
    assert parse_flow(format_flow(tree)) == tree


@given(TREES)
def test_every_name_has_a_location(tree: FlowTree) -> None:
    text = format_flow(tree)

    for name in names_in(parse_flow(text)):
        assert text[name.start :].startswith(name.name)


@given(st.one_of(st.text(max_size=40), st.text("ab(|)> -\n", max_size=40)))
def test_any_text_is_a_tree_or_a_fault_inside_the_text(text: str) -> None:
    fault = None
    try:
        assert list(names_in(parse_flow(text)))
    except FlowSyntaxError as raised:
        fault = raised
    assert fault is None or (0 <= fault.start <= len(text) and fault.end > fault.start)


def test_deep_nesting_is_a_fault_and_not_a_crash() -> None:
    with pytest.raises(FlowSyntaxError, match="deeper than 50"):
        parse_flow("(" * 5000 + "a" + ")" * 5000)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.booleans())
def test_a_location_in_a_string_is_found_in_the_file_whatever_is_escaped(value: str, ascii_only: bool) -> None:
    text = '{"flow": ' + json.dumps(value, ensure_ascii=ascii_only) + "}"
    node = parse_json(text, "project.json").node
    assert node is not None
    found = node.at(("flow",))
    assert found is not None

    for index, character in enumerate(value):
        start, end = offset_in_json(found, index), offset_in_json(found, index + 1)
        assert json.loads(f'"{text[start:end]}"') == character
