"""Text for people: nothing hidden, no control characters, nothing cut, no two texts alike."""

from __future__ import annotations

import json
import re
import time
import unicodedata

from hypothesis import given, strategies as st

from llm_do.text.sanitizer import format_arguments, sanitize
from tests.support.tables import each_row

ANY = st.text(alphabet=st.characters())
TRICKY = st.text(alphabet="\\nrtxuU012e \n\t\x1b\u202eé", max_size=14)
ESCAPE = re.compile(r"(\\+)([nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


def read_back(shown: str) -> str:
    def one(found: re.Match[str]) -> str:
        slashes = "\\" * (len(found[1]) // 2)
        if len(found[1]) % 2 == 0:
            return slashes + found[2]
        short = {"n": "\n", "r": "\r", "t": "\t"}.get(found[2])
        return slashes + (short or chr(int(found[2][1:], 16)))

    return ESCAPE.sub(one, shown)


@each_row(
    "text, shown",
    [
        ("plain text, Grüße, 日本語, 😀", "plain text, Grüße, 日本語, 😀"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("a\u200bb\u200dc\ufeff", "a\\u200bb\\u200dc\\ufeff"),
        ("a\u00a0b\u3000c", "a\\xa0b\\u3000c"),
        ("\udcff", "\\udcff"),
        ("\ue000\U000e0041", "\\ue000\\U000e0041"),
        ("x\ufe0f\u3164\u2800", "x\\ufe0f\\u3164\\u2800"),
        ("a\r\nb\tc\0", "a\\r\\nb\\tc\\x00"),
        ("\u2028", "\\u2028"),
        ("C:\\dir \\d+ \\\\", "C:\\dir \\d+ \\\\"),
        ("\\u202e", "\\\\u202e"),
        ("[bold]x[/bold] <b> **x**", "[bold]x[/bold] <b> **x**"),
    ],
)
def test_invisible_and_control_characters_are_escaped(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_line_breaks_are_kept_on_request() -> None:
    assert sanitize("a\nb\r\n\x1b\\n", lines=True) == "a\nb\\r\n\\x1b\\n"


@given(ANY | TRICKY, st.booleans())
def test_sanitized_text_is_printable_and_encodable(text: str, lines: bool) -> None:
    shown = sanitize(text, lines=lines)
    shown.encode("utf-8")
    left = shown.replace("\n", "") if lines else shown
    bad = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not [char for char in left if unicodedata.category(char) in bad]


@given(ANY | TRICKY)
def test_sanitizing_is_reversible_so_no_two_texts_look_alike(text: str) -> None:
    assert read_back(sanitize(text)) == text


@given(TRICKY, TRICKY)
def test_different_texts_look_different_with_line_breaks_too(one: str, other: str) -> None:
    assert (sanitize(one, lines=True) == sanitize(other, lines=True)) is (one == other)


def test_arguments_are_shown_in_full_and_in_order() -> None:
    long = "x" * 100_000
    shown = format_arguments({"b": long, "a": 1, "c\n": {"k": ["\u202e", "\x1b", "\\u202e"]}, "d": object})
    assert shown[0] == ("b", long)
    assert shown[1] == ("a", "1")
    assert shown[2] == ("c\\n", '{"k":["\\u202e","\\u001b","\\\\u202e"]}')
    assert shown[3][1].startswith("<class")


@each_row("value", ["1", "true", "null", "", " ", '"x"', "-1.5e3"])
def test_text_that_looks_like_another_value_is_quoted(value: str) -> None:
    assert format_arguments({"a": value}) == [("a", json.dumps(value))]


def test_a_json_document_in_a_text_is_unchanged() -> None:
    assert format_arguments({"a": '{\n "b": 1\n}'}) == [("a", '{\n "b": 1\n}')]


def test_sanitizing_takes_linear_time() -> None:
    start = time.process_time()
    sanitize("\\" * 300_000 + "\u202e" * 100_000)
    assert time.process_time() - start < 2
