from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, strategies as st

from llm_do.files.glob_patterns import PathPattern, expand_braces
from llm_do.files.refusals import FileRefusedError
from tests.support.tables import each_row


@each_row(
    "pattern, matching, others",
    [
        ("*", ["a", ".a", "a.b"], ["a/b"]),
        ("**/*", ["a", "a/b", "a/b/c"], []),
        ("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["a.pyc", "a.py/x"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "b"]),
        ("a/**", ["a", "a/x", "a/x/y"], ["b"]),
        ("**/a/**/b", ["a/b", "x/a/y/b", "a/a/b/b"], ["a", "b"]),
        ("a?c", ["abc", "a.c"], ["ac", "abbc", "a/c"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("[^a]x", ["bx"], ["ax"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[[:digit:]_]x", ["1x", "_x"], ["ax"]),
        ("[ab", ["[ab"], ["a"]),
        ("\\*", ["*"], ["a"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("/a/", ["a"], ["b"]),
    ],
)
def test_a_glob_matches_the_expected_names(pattern: str, matching: list[str], others: list[str]) -> None:
    glob = PathPattern.parse(pattern)
    assert [path for path in matching if not glob.matches(path)] == []
    assert [path for path in others if glob.matches(path)] == []


def test_a_glob_of_many_stars_is_fast() -> None:
    start = time.process_time()
    assert not PathPattern.parse("*a" * 40 + "b").matches("a" * 250)
    assert not PathPattern.parse("**/a/" * 40 + "b").matches("a/" * 200 + "a")
    assert time.process_time() - start < 1


def test_an_overlong_glob_is_refused() -> None:
    with pytest.raises(FileRefusedError, match="longer than"):
        PathPattern.parse("a" * 2000)


def test_braces_are_alternatives() -> None:
    assert expand_braces("{a,b}/*.{c,d}") == ["a/*.c", "a/*.d", "b/*.c", "b/*.d"]
    assert expand_braces("{a,{b,c}}") == ["a", "b", "a", "c"]
    assert expand_braces("{a}{") == ["{a}{"]


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(FileRefusedError, match="alternatives"):
        expand_braces("{a,b}" * 20)


@given(st.lists(st.sampled_from(["*", "?", "a", "b", "."]), max_size=8), st.text("ab.", max_size=8))
def test_a_name_matches_as_an_equivalent_regular_expression(tokens: list[str], name: str) -> None:
    expression = "".join({"*": ".*", "?": "."}.get(token, re.escape(token)) for token in tokens)
    pattern = "".join(tokens)
    if name and pattern and pattern.strip("*") != "":
        assert PathPattern.parse(pattern).matches(name) == bool(re.fullmatch(expression, name, re.DOTALL))


@pytest.mark.slow
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_a_valid_glob(pattern: str, path: str) -> None:
    assert PathPattern.parse(pattern).matches(path) in (True, False)
