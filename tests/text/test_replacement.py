"""Matches in a large text are replaced in pieces, as they would be in one go."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from llm_do.text.large_data import replacement
from llm_do.text.large_data.replacement import replace_matches
from tests.support.tables import each_row


def shown(found: re.Match[str]) -> str:
    return f"[{found[0]}]"


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3), st.text("abc", max_size=60))
def test_words_are_found_wherever_pieces_end(words: list[str], text: str) -> None:
    pattern = re.compile("|".join(sorted(words, key=len, reverse=True)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replacement, "PIECE", 7)
        assert replace_matches(pattern, shown, text, 4) == pattern.sub(shown, text)


@given(st.text("k:ab ", max_size=60))
def test_a_match_of_any_length_is_found_by_its_beginning(text: str) -> None:
    pattern = re.compile("k:[a-z]+")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replacement, "PIECE", 7)
        assert replace_matches(pattern, shown, text, 4) == pattern.sub(shown, text)


@each_row("rest", ["....a", "..a..a", ".", "aaaa..........a"])
def test_a_match_may_go_on_behind_what_it_cannot_end_with(rest: str) -> None:
    pattern = re.compile("k:[a-z.]+[a-z]")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replacement, "PIECE", 7)
        for before in range(20):
            text = f"{' ' * before}k:aa{rest}{' ' * 20}"
            assert replace_matches(pattern, shown, text, 4) == pattern.sub(shown, text)
