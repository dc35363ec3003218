"""An exception as text is never longer than what can be handled in a moment."""

from __future__ import annotations

from llm_do.text.exception_text import exception_text


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_the_beginning_of_a_very_long_message_stands_for_all_of_it() -> None:
    text = exception_text(ValueError("start " + "x" * 30_000_000))
    assert text.startswith("ValueError: start xxx")
    assert text.endswith("xxx (29,500,006 more characters)")
    assert len(text) < 500_100


def test_an_exception_that_fails_to_say_what_it_is_has_a_text() -> None:
    assert exception_text(BrokenError()) == "BrokenError: (it can't be shown)"
