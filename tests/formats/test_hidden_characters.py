"""Hidden characters are reported, and what people write in their languages isn't."""

from __future__ import annotations

import pytest

from llm_do.formats.agent_file import parse_agent
from tests.support.tables import each_row

HIDDEN = {
    "tags": "\U000e0041\U000e0042",
    "tags after a flag without an end": "\U0001f3f4\U000e0067\U000e0062x",
    "bidi override": "\u202eabc",
    "isolate": "\u2066",
    "zero-width space": "\u200b",
    "word joiner": "\u2060",
    "byte order mark inside": "\ufeff",
    "soft hyphen": "\xad",
    "joiner between ASCII": "a\u200db",
    "escape": "\x1b[31m",
    "C1": "\x9b",
    "NEL": "\x85",
    "line separator": "\u2028",
    "bytes in variation selectors": "x\ufe01\ufe02\U000e0101",
    "direction mark without such letters": "\u200f",
}
VISIBLE = {
    "accents": "café naïve",
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "heart": "\u2764\ufe0f",
    "keycap": "1\ufe0f\u20e3 #\ufe0f\u20e3",
    "Scotland": "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Hebrew with a mark": "\u05e9\u05dc\u05d5\u05dd!\u200f",
    "Hindi": "\u0915\u094d\u200d\u0937",
    "Japanese": "日本語、テスト",
    "tabs and line ends": "a\tb\r\nc",
}


def codes(body: str) -> list[str]:
    return [found.code for found in parse_agent(f"---\nname: main\n---\nSay {body}.\n", "main.agent").diagnostics]


@each_row("body", HIDDEN.values())
def test_hidden_characters_in_a_body_are_reported(body: str) -> None:
    assert set(codes(body)) == {"LD109"}


@each_row("body", VISIBLE.values())
def test_what_languages_need_is_not_reported(body: str) -> None:
    assert codes(body) == []


def test_a_file_full_of_them_has_a_bounded_report() -> None:
    assert len(codes("a\u200b" * 1000)) == 10


def test_lines_of_ascii_are_not_searched_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a search takes a fifth of the time in which a small file is linked.
    monkeypatch.setattr("llm_do.formats.syntax.hidden_characters.re", None)
    assert codes(VISIBLE["tabs and line ends"]) == []
