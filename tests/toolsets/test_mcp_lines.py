"""What a server prints is read line by line: in linear time, and not more of a line than a bound."""

from __future__ import annotations

import codecs
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.toolsets.mcp import server_lines
from llm_do.toolsets.mcp.server_lines import LINES


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
    ({"jsonrpc": "2.0", "method": "log", "params": {"text": LONG + '"id": 3}'}}, None),
]


@pytest.mark.parametrize(("message", "known"), ANSWERS)
def test_an_error_takes_the_place_of_an_answer_that_is_too_long(
    message: dict[str, Any], known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_lines, "LARGEST_MESSAGE", 4500)
    line = json.dumps(message).encode() + b"\n"

    first, second, rest = "".join(decoded(line + b"{}\n", 1000)).split("\n")

    assert (second, rest) == ("{}", "")
    if known is None:
        assert first.startswith("a message longer than")
    else:
        read = json.loads(first)
        assert (read["id"], read["error"]["code"]) == (known, -32000)
