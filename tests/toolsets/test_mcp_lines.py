"""What a server prints is read line by line: in linear time, and not more of a line than a bound."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.toolsets.mcp import large_answers, server_lines
from llm_do.toolsets.mcp.large_answers import LargeAnswers
from llm_do.toolsets.mcp.server_lines import LINES, answers_of_connection

ANSWERS_KEPT = LargeAnswers()


@pytest.fixture(autouse=True, scope="module")
def connection() -> Iterator[None]:
    token = answers_of_connection.set(ANSWERS_KEPT)
    yield
    answers_of_connection.reset(token)


def decoded(data: bytes, size: int = 7) -> list[str]:
    """Decode in pieces, as the SDK's client does; return what each piece came to."""
    decoder = codecs.getincrementaldecoder(LINES)()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [*[decoder.decode(piece) for piece in pieces], decoder.decode(b"", final=True)]


@given(st.text(alphabet="a\u00e9\U0001f600\n\r"), st.integers(1, 9))
def test_the_text_is_that_of_utf_8(text: str, size: int) -> None:
    assert "".join(decoded(text.encode(), size)) == text


def test_nothing_is_returned_before_a_line_is_complete() -> None:
    assert decoded(b"one line\nand half of one", size=9) == ["one line\n", "", "", "and half of one"]


LONG = "\\n" + "x" * 5000
ANSWERS: list[tuple[dict[str, Any], Any]] = [
    ({"jsonrpc": "2.0", "id": 7, "result": {"text": LONG, "id": 3}}, 7),
    ({"id": "seven", "jsonrpc": "2.0", "result": {"text": LONG}}, "seven"),
    ({"result": {"text": LONG, "id": 3}, "jsonrpc": "2.0", "id": 7}, 7),
    ({"result": {"text": LONG}, "id": 7, "jsonrpc": "2.0"}, 7),
    ({"jsonrpc": "2.0", "method": "log", "params": {"text": LONG, "id": 3}}, None),
    ({"method": "sampling/createMessage", "params": {"text": LONG}, "jsonrpc": "2.0", "id": 7}, None),
    ({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {"text": LONG}}, None),
    ({"jsonrpc": "2.0", "method": "log", "params": {"text": LONG + '"id": 3}'}}, None),
]


def replacement(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return what takes the place of a large message, None for one that answers nothing; the next line stays."""
    line = json.dumps(message).encode() + b"\n"
    first, second, rest = "".join(decoded(line + b"{}\n", 1000)).split("\n")
    assert (second, rest) == ("{}", "")
    return None if first == "a large message that answers nothing" else json.loads(first)


@pytest.mark.parametrize(("message", "known"), ANSWERS)
def test_an_error_takes_the_place_of_an_answer_that_is_too_long(
    message: dict[str, Any], known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_answers, "LARGEST_MESSAGE", 4500)
    read = replacement(message)

    assert (read is None) == (known is None)
    if read is not None:
        assert (read["id"], read["error"]["code"]) == (known, -32000)


@pytest.mark.parametrize(("message", "known"), ANSWERS)
def test_a_small_message_takes_the_place_of_a_large_one(
    message: dict[str, Any], known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (large_answers, server_lines):
        monkeypatch.setattr(module, "LARGE_MESSAGE", 4500)
    small = replacement(message)

    assert (small is None) == (known is None)
    if small is None:
        return
    assert small["id"] == known
    kept = ANSWERS_KEPT.take(small["result"])
    assert kept is not None
    assert json.loads(kept.data) == message["result"]
    assert ANSWERS_KEPT.take(small["result"]) is None


def test_answers_that_no_request_takes_are_kept_in_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_answers, "LARGE_MESSAGE", 10)
    monkeypatch.setattr(large_answers, "_MOST_KEPT", 1000)
    answers = LargeAnswers()
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "x" * 300}}).encode()
    results = [json.loads(answers.keep(message) or b"")["result"] for _ in range(5)]

    assert [answers.take(result) is not None for result in results] == [False, False, True, True, True]


def test_a_server_cannot_take_what_is_kept() -> None:
    assert LargeAnswers().take({"llm_do large answer": "0" * 32}) is None
    assert LargeAnswers().take({"llm_do large answer": ["0"]}) is None
