"""YAML without surprises: what scalars mean, what is refused, and at which location."""

from __future__ import annotations

import time

import pytest
import yaml

from llm_do.formats.syntax.source import AmbiguousScalar, NodeResult, Source
from llm_do.formats.syntax.yaml_nodes import MAX_ALIASES, parse_yaml, plain_scalar
from tests.support.tables import each_row


def read(text: str) -> NodeResult:
    return parse_yaml(Source("a.agent", text))


def faults(text: str) -> list[tuple[str, int, int]]:
    return [(item.code, item.line, item.column) for item in read(text).diagnostics]


@each_row(
    "text, value",
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-12", -12),
        ("1.10", 1.1),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-1.5E-2", -0.015),
        ("openai:gpt-5", "openai:gpt-5"),
        ("y", "y"),
        ("nope", "nope"),
        ("1.2.3", "1.2.3"),
        ("12 apples", "12 apples"),
        ("-", "-"),
        ("--x", "--x"),
        (".", "."),
        ("2024", 2024),
        ("9" * 400, int("9" * 400)),
    ],
)
def test_a_plain_scalar_means_what_json_would_make_of_it(text: str, value: object) -> None:
    found = plain_scalar(text)
    assert found == value
    assert type(found) is type(value)


@each_row(
    "text",
    [
        "no",
        "Yes",
        "ON",
        "off",
        "True",
        "FALSE",
        "NULL",
        ".nan",
        "-.inf",
        "2024-01-02",
        "2024-1-2T10:00:00",
        "012",
        "0x1F",
        "0o17",
        "0b11",
        "1_000",
        "12:30",
        "1:2:3.5",
        "08",
        "+012",
        "007.5",
        "1_0.5",
    ],
)
def test_a_scalar_that_yaml_versions_disagree_about_is_ambiguous(text: str) -> None:
    trap = plain_scalar(text)
    assert isinstance(trap, AmbiguousScalar)
    assert trap.text == text
    assert trap.meaning


def test_a_quoted_scalar_is_text() -> None:
    node = read("a: 'no'\nb: \"1.10\"\nc: |\n  yes\nd: >-\n  2024-01-02\n  x\n").node
    assert node is not None
    assert node.data() == {"a": "no", "b": "1.10", "c": "yes\n", "d": "2024-01-02 x"}


def test_every_value_and_key_has_a_location() -> None:
    node = read("a:\n  - x\n  - {b: 1, cé: '\U0001f600x'}\nd: z\n").node
    assert node is not None
    places = {loc: part.place for loc, part in node.walk()}
    assert {loc: (p.line, p.column, p.end_line, p.end_column) for loc, p in places.items()} == {
        (): (1, 1, 4, 5),
        ("a",): (2, 3, 3, 21),
        ("a", 0): (2, 5, 2, 6),
        ("a", 1): (3, 5, 3, 21),
        ("a", 1, "b"): (3, 9, 3, 10),
        ("a", 1, "cé"): (3, 16, 3, 20),
        ("d",): (4, 4, 4, 5),
    }
    assert node.key_place(("a", 1, "cé")).column == 12


def test_locations_are_right_with_other_line_endings() -> None:
    for end in ("\n", "\r\n", "\r"):
        assert faults(f"a: 1{end}b: 2{end}a: 3{end}") == [("LD110", 3, 1)]


def test_a_document_may_start_inside_a_file() -> None:
    source = Source("a.agent", "---\nname: a\nname: b\n---\n")
    result = parse_yaml(source, 4, 20)
    assert [(item.line, item.column) for item in result.diagnostics] == [(3, 1)]


def test_duplicate_keys_are_found_at_any_depth_with_both_locations() -> None:
    result = read("a:\n  b: 1\n  c: {d: 1, e: 2, d: 3}\n  b: 2\n")
    assert [(item.code, item.line, item.column) for item in result.diagnostics] == [("LD110", 3, 19), ("LD110", 4, 3)]
    assert "line 3, column 7" in result.diagnostics[0].message
    assert "line 2, column 3" in result.diagnostics[1].message
    assert result.node is not None
    assert result.node.data() == {"a": {"b": 1, "c": {"d": 1, "e": 2}}}


@each_row(
    "text, expected",
    [
        ("a: !!str x", [("LD111", 1, 4)]),
        ("a: !!python/object/apply:os.system [ls]", [("LD111", 1, 4)]),
        ("!!map {a: 1}", [("LD111", 1, 1)]),
        ("a: ! x", [("LD111", 1, 4)]),
        ("d: &d {x: 1}\ne:\n  <<: *d\n", [("LD112", 3, 3)]),
        ("on: 1", [("LD114", 1, 1)]),
        ("1: a", [("LD114", 1, 1)]),
        ("null: a\n~: b", [("LD114", 1, 1), ("LD114", 2, 1)]),
        ("2024-01-02: a", [("LD114", 1, 1)]),
        ("? [a, b]\n: c", [("LD114", 1, 3)]),
        ("x: &x a\n*x : b", [("LD114", 2, 1)]),
        ("a: *b", [("LD113", 1, 4)]),
        ("a: &a [*a]", [("LD113", 1, 8)]),
        ("a: &a {b: &b [*a]}", [("LD113", 1, 15)]),
        ("a: 1\n...\n---\nb: 2\n", [("LD106", 3, 1)]),
        ("a: " + "9" * 5000, [("LD116", 1, 4)]),
        ("a: 1e999", [("LD116", 1, 4)]),
        ("a: x\x07", [("LD103", 1, 5)]),
        ("a: x\ufeff", [("LD103", 1, 5)]),
        ("a: \ud800", [("LD103", 1, 4)]),
        ("a: [1\nb: 2", [("LD106", 2, 2)]),
        ("\ta: 1", [("LD106", 1, 1)]),
        ("a: b: c", [("LD106", 1, 5)]),
        ("a: @x", [("LD106", 1, 4)]),
        ("a: 'x", [("LD106", 1, 6)]),
    ],
)
def test_unsupported_yaml_is_refused_with_its_location(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert faults(text) == expected


@each_row(
    "text, hint",
    [
        ("description: Note: reads files", 'quote the value: description: "Note: reads files"'),
        ('a: 1\nd: say: "hi"', 'quote the value: d: "say: \\"hi\\""'),
        ("a: 1\n b: 2", "the line is indented more than the key above it: begin it in the same column"),
        ("a: 1\n b:\n  - c", "the line is indented more than the key above it: begin it in the same column"),
        (
            "a:\n  b: {}\n c: {}",
            "the line is indented less than the one above it: begin it in the same column",
        ),
        ("email: @me", 'quote the value: email: "@me"'),
        ("\ta: 1", "indent with spaces, not with tabs"),
    ],
)
def test_the_hint_of_a_syntax_error_shows_what_to_write(text: str, hint: str) -> None:
    assert read(text).diagnostics[0].hint == hint


def test_an_anchor_is_not_part_of_its_value() -> None:
    node = read("a: &x  hello\nb: *x\n").node
    assert node is not None
    assert node.data() == {"a": "hello", "b": "hello"}
    assert node.place_of(("a",)).column == 8


def test_an_empty_document_is_an_empty_mapping() -> None:
    for text in ("", "\n\n", "# only a comment\n"):
        node = read(text).node
        assert node is not None
        assert (node.kind, node.data()) == ("mapping", {})


def nested_aliases(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def chain(length: int) -> str:
    return "\n".join(["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, length)])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (nested_aliases(10), "LD113"),
        ("a: &a x\nb: [" + ", ".join(["*a"] * (MAX_ALIASES + 1)) + "]", "LD113"),
        (chain(1000), "LD113"),
        ("[" * 101 + "]" * 101, "LD104"),
        ("[" * 100_000, None),
        ("- " * 100_000, None),
        ("? " * 100_000, None),
        ("{a: " * 100_000, None),
        ("[" + "x, " * 60_000 + "x]", "LD104"),
        ("x" * 5_000_000, "LD104"),
    ],
)
def test_no_document_takes_much_time_or_memory(text: str, code: str | None) -> None:
    start = time.process_time()
    result = read(text)
    assert time.process_time() - start < 2
    assert result.node is None
    assert result.diagnostics[-1].code in ([code] if code else ["LD104", "LD106"])


def test_aliases_within_the_limits_are_accepted() -> None:
    result = read(chain(50))
    assert result.diagnostics == ()
    assert result.node is not None
    assert result.node.data() is not None


def test_results_are_the_same_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [no, 'é', {b: 1, b: 2}]\nc: *x\nd: !!str 1\ne: f: g\n"
    fast = read(text), read(text.replace("f: g", "|\n  g"))
    monkeypatch.setattr("llm_do.formats.syntax.yaml_nodes._Loader", yaml.SafeLoader)
    slow = read(text), read(text.replace("f: g", "|\n  g"))
    for one, other in zip(fast, slow, strict=True):
        assert [(item.code, item.place) for item in one.diagnostics] == [(x.code, x.place) for x in other.diagnostics]
    assert slow[1].node is not None
    assert fast[1].node is not None
    assert slow[1].node.data() == fast[1].node.data()
