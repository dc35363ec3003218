"""Which of the known words a misspelled one stands for."""

from __future__ import annotations

from llm_do.text.words import closest_match
from tests.support.tables import each_row

KEYS = ["name", "description", "model", "model_settings", "compatible_models", "tools", "toolsets", "max_steps"]


@each_row(
    "word, meant",
    [
        ("modle", "model"),
        ("mdoel", "model"),
        ("Model", "model"),
        ("max-steps", "max_steps"),
        ("steps_max", "max_steps"),
        ("desc", "description"),
        ("tool", "tools"),
        ("toolset", "toolsets"),
        ("modelsettings", "model_settings"),
        ("temperature", None),
        ("foo", None),
        ("a", None),
        ("", None),
    ],
)
def test_the_word_that_was_meant(word: str, meant: str | None) -> None:
    assert closest_match(word, KEYS) == meant


def test_a_short_word_is_not_taken_for_any_other() -> None:
    assert closest_match("/foo", ["/tools", "/help", "/quit"]) is None
    assert closest_match("a", ["b"]) is None


def test_where_any_word_is_allowed_only_typing_errors_count() -> None:
    assert closest_match("temprature", ["temperature"], spelling_only=True) == "temperature"
    assert closest_match("temp", ["temperature"], spelling_only=True) is None


def test_a_word_of_any_length_is_answered_quickly() -> None:
    assert closest_match("x" * 10_000_000, ["y" * 10_000_000]) is None
