"""Markdown on a terminal: it sets styles, keeps every word, and fits."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from llm_do.ui.terminal.markdown import render_markdown
from llm_do.ui.terminal.text_width import text_width


@given(st.text(max_size=200), st.booleans())
def test_rendered_markdown_only_sets_styles(text: str, color: bool) -> None:
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", render_markdown(f"# {text}", 80, color=color))

    assert all(char == "\n" or char.isprintable() for char in drawn)


@given(st.lists(st.text("abcäß漢", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(25, 90))
def test_rendered_markdown_keeps_every_word_and_fits(words: list[str], columns: int) -> None:
    drawn = render_markdown(f"**{words[0]}** {' '.join(words[1:])}", columns)

    plain = re.sub(r"\x1b\[[0-9;]*m", "", drawn)
    assert plain.split() == words
    assert all(text_width(line) <= columns for line in plain.split("\n"))


def test_markdown_is_rendered_and_other_text_is_unchanged() -> None:
    assert render_markdown("a * b * c\n", 80) == "a * b * c\n"
    assert render_markdown("see <b>this</b> **x**", 80) == "see <b>this</b> x\n"
    assert render_markdown("<a>\n  <b>**x**</b>\n</a>", 80) == "<a>\n<b>x</b>\n</a>\n"
    assert render_markdown('{"a": "**b** `c`"}', 80) == '{"a": "**b** `c`"}\n'
    assert render_markdown("**b** `c`\n\n- [x](http://y)", 80, color=True) == (
        "\x1b[1mb\x1b[0m \x1b[36mc\x1b[0m\n\n • \x1b[34mx\x1b[0m (\x1b[34mhttp://y\x1b[0m)\n"
    )
    assert "\x1b]8" not in render_markdown("[x](http://y) <http://z>", 80, color=True)
