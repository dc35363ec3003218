"""Assertions: what their sentences mean, where their faults are, and values that stand for all others."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given, settings, strategies as st

from llm_do.linker.proofs.representatives import representative_paths, representative_texts
from llm_do.policy.assertions import AssertionSyntaxError, Never, OnlyAfter, parse_assertion
from llm_do.policy.pattern import ArgumentPattern, parse_pattern
from llm_do.text.globs import path_parts
from tests.support.tables import each_row

WORDS = st.sampled_from(
    ["never", "from", "unless", "asked", "only", "after", "generated", "agents", "->", "=>", "web", "shell(git *)", "("]
)


@each_row(
    "text, terms, unless_asked",
    [
        ("never shell", ["shell"], False),
        ("never web -> files.write(src/**)", ["web", "files.write(src/**)"], False),
        ("never web->shell(git push *)  unless asked", ["web", "shell(git push *)"], True),
        ("never shell from generated agents", ["generated agents", "shell"], False),
        ("never a -> b -> c", ["a", "b", "c"], False),
        ("never send(to='from x -> y')", ["send(to='from x -> y')"], False),
        ("never 'from' -> write_file(a\\ b)", ["'from'", "write_file(a\\ b)"], False),
    ],
)
def test_never_names_what_a_chain_of_calls_leads_through(text: str, terms: list[str], unless_asked: bool) -> None:
    found = parse_assertion(text)
    assert isinstance(found, Never)
    assert ([term.text for term in found.terms], found.unless_asked) == (terms, unless_asked)
    assert all(text[term.start : term.end] == term.text for term in found.terms)


def test_only_after_names_a_tool_and_a_state() -> None:
    found = parse_assertion("deploy(env=prod) only after tests_passed")
    assert isinstance(found, OnlyAfter)
    assert (found.target.text, found.state) == ("deploy(env=prod)", "tests_passed")
    assert found.text[found.state_start :] == "tests_passed"


@each_row(
    "text, fault, hint",
    [
        ("", (0, 1), "never X -> Y"),
        ("   ", (0, 3), "never X -> Y"),
        ("allow shell", (0, 5), "never X -> Y"),
        ("never", (4, 5), "name an agent"),
        ("never web -> ", (12, 13), "name an agent"),
        ("never web => shell", (10, 12), "write `->`"),
        ("never web → shell", (10, 11), "write `->`"),
        ("never -> shell", (6, 8), "name an agent"),
        ("never shell unless told", (12, 18), "unless asked"),
        ("never a -> b from c", (13, 17), "never X -> Y -> Z"),
        ("never generated agents", (6, 22), "from generated agents"),
        ("never write_file(a", (17, 18), "`)`"),
        ("never a:b:c", (8, 9), "quote a colon"),
        ("deploy only after", (16, 17), "only after STATE"),
        ("deploy only after deploy", (18, 24), "comes first"),
        ("deploy only after a b", (20, 21), "never X"),
        ("never " + "a" * 2000, (0, 1), "characters"),
    ],
)
def test_a_fault_has_its_place_and_what_to_write(text: str, fault: tuple[int, int], hint: str) -> None:
    with pytest.raises(AssertionSyntaxError) as caught:
        parse_assertion(text)
    assert (caught.value.start, caught.value.end) == fault
    assert hint in caught.value.hint


@given(st.text("never ab->()'\"\\.*", max_size=40) | st.lists(WORDS, max_size=7).map(" ".join))
@example("never 'a")
@example("never a\\")
def test_any_text_is_an_assertion_or_has_a_fault_inside(text: str) -> None:
    try:
        found = parse_assertion(text)
    except AssertionSyntaxError as error:
        fault = error
    else:
        assert found.text == text
        assert all(text[term.start : term.end] == term.text for term in found.terms if not term.generated)
        return
    assert 0 <= fault.start < fault.end <= max(len(text), 1)
    assert fault.message
    assert fault.hint


def argument(text: str) -> ArgumentPattern:
    found = parse_pattern(f"x({text})").primary
    assert found is not None
    return found


SEGMENTS = st.sampled_from(["a", "b", "A", "*", "**", "a*", "*b", "?", "[ab]", "[!a]", "x.py", "*.py"])
PATTERNS = st.lists(st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=3)
PATHS = st.lists(st.sampled_from(["a", "b", "A", "ab", "B", "x.py", "q"]), max_size=5).map(
    lambda parts: "/".join(parts)
)


def path_matches(patterns: list[ArgumentPattern], path: str) -> list[bool]:
    parts = path_parts(path or ".") or []
    return [each.path.matches(parts, restrictive=strict) for each in patterns for strict in (False, True)]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(PATTERNS, PATHS)
def test_every_path_has_a_representative_that_the_same_patterns_match(texts: list[str], path: str) -> None:
    patterns = [*map(argument, texts)]
    wanted = path_matches(patterns, path)
    assert wanted in [path_matches(patterns, each) for each in representative_paths(patterns)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab*?A/", min_size=1, max_size=5), min_size=1, max_size=3), st.text("abAc/", max_size=6))
def test_every_text_has_a_representative_that_the_same_patterns_match(texts: list[str], text: str) -> None:
    patterns: list[ArgumentPattern] = []
    for each in texts:
        with suppress(ValueError):
            patterns.append(argument(each))

    def matched(value: str) -> list[bool]:
        return [each.plain.matches(value, fold=fold) for each in patterns for fold in (False, True)]

    assert matched(text) in [matched(each) for each in representative_texts(patterns)]
