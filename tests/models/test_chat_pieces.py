"""The pieces of chat answers: thinking tags, tool calls, and the words in errors."""

from __future__ import annotations

import json
import random
from typing import Any

from llm_do.models.providers.chat.thinking_tags import ThinkingTags, close_thinking
from llm_do.models.providers.chat.tool_call_deltas import ToolCallDeltas
from llm_do.models.providers.provider_words import provider_words
from tests.support.tables import each_row

TEXTS = [
    "Yes",
    "<think>hm</think>Yes",
    "\n <think>\nhm\n</think>\n\nYes, no",
    "<think>a</think> <think>b</think>\nYes",
    "<think>never closed, with < and </thin",
    "Use <think> tags",
    "A <think>b</think> c <think>d</think>",
    "a < b, <thing>, <think",
    "</think>Yes",
    "<think></think>",
    "  no tag at all <",
]


def joined(pieces: list[str]) -> str:
    return "".join(pieces)


@each_row("text", TEXTS)
def test_thinking_is_found_alike_however_a_text_is_split(text: str) -> None:
    whole = close_thinking(text)
    chance = random.Random(text)
    for _ in range(50):
        tags, pieces, rest = ThinkingTags(), list[str](), text
        while rest:
            size = chance.randint(1, 6)
            pieces += tags.feed(rest[:size])
            rest = rest[size:]
        pieces += tags.end()
        assert joined(pieces) + "</think>" * tags.is_open == whole
        assert (
            all(piece in ("<think>", "</think>") or "think>" not in piece for piece in pieces) or "<think>" not in whole
        )


def test_a_long_text_behind_a_tag_in_its_middle_takes_linear_time() -> None:
    tags = ThinkingTags()
    pieces = tags.feed("Use <think> ")
    for _ in range(100_000):
        pieces += tags.feed("tags ")
    assert joined(pieces + tags.end()) == "Use  " + "tags " * 100_000


def mended(*pieces: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and arguments of each call that pieces make up."""
    calls, found = ToolCallDeltas(), dict[int, tuple[str, str]]()
    for piece in pieces:
        mend = calls.mend(piece)
        name, arguments = found.get(mend["index"], ("", ""))
        function = mend["function"]
        found[mend["index"]] = name + (function["name"] or ""), arguments + (function["arguments"] or "")
    return [found[index] for index in sorted(found)]


def piece(index: int | None, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


@each_row(
    "pieces, calls",
    [
        ([piece(0, "a", "add", ""), piece(0, None, None, "{"), piece(0, None, None, "}")], [("add", "{}")]),
        ([piece(0, "a", "add", "{}"), piece(1, "b", "add", "{}")], [("add", "{}"), ("add", "{}")]),
        ([piece(0, "a", "add", "{}"), piece(0, "b", "add", "{}")], [("add", "{}"), ("add", "{}")]),
        ([piece(0, "a", "add", ""), piece(0, "b", "ping", "")], [("add", ""), ("ping", "")]),
        ([piece(0, None, "add", "{}"), piece(0, None, "add", "{}")], [("add", "{}"), ("add", "{}")]),
        ([piece(0, None, "add", "{}"), piece(0, None, "ping", "{}")], [("add", "{}"), ("ping", "{}")]),
        ([piece(0, "a", "add", '{"a"'), piece(0, "a", "add", ": 1}")], [("add", '{"a": 1}')]),
        ([piece(0, None, "add", '{"a"'), piece(0, None, "add", ": 1}")], [("add", '{"a": 1}')]),
        ([piece(0, "a", "get", ""), piece(0, "a", "get_time", "{}")], [("get_time", "{}")]),
        ([piece(0, "a", "get", ""), piece(0, None, "_time", "{}")], [("get_time", "{}")]),
        ([piece(None, "a", "add", "{}"), piece(None, "b", "ping", "{}")], [("add", "{}"), ("ping", "{}")]),
        ([piece(None, "a", "add", ""), piece(None, None, None, "{}")], [("add", "{}")]),
        (
            [piece(0, "a", "add", ""), piece(1, "b", "ping", ""), piece(0, None, None, "{}")],
            [("add", "{}"), ("ping", "")],
        ),
        ([piece(0, "a", "add", {"a": 1})], [("add", '{"a": 1}')]),
        ([piece(0, None, None, "{}")], [("", "{}")]),
    ],
)
def test_a_piece_belongs_to_its_call(pieces: list[dict[str, Any]], calls: list[tuple[str, str]]) -> None:
    assert mended(*pieces) == calls


@each_row(
    "body, words",
    [
        ({"error": "unavailable", "error_description": "no GPU"}, "no GPU"),
        ({"error": {"code": 5, "status": "X", "message": "no GPU"}}, "no GPU"),
        ({"detail": [{"loc": ["body", "tools", 0], "msg": "too many"}, {"msg": "no"}]}, "body.tools.0: too many; no"),
        ({"fault": {"faultstring": "no GPU"}}, "no GPU"),
        ({"error": {"message": json.dumps({"error": {"message": "no GPU"}})}}, "no GPU"),
        ({"message": "", "detail": None, "title": "no GPU"}, "no GPU"),
        ({"code": 5}, '{"code": 5}'),
        ("<html><body><h1>502</h1><style>p{}</style><p>no &lt;GPU&gt;</p></body></html>", "a web page: 502 no <GPU>"),
        (b"no GPU", "no GPU"),
        ("x" * 400, "x" * 300 + "..."),
        ("{not json", "{not json"),
        ("[" * 100_000, "[" * 300 + "..."),
        (None, ""),
        ({}, ""),
        (5, ""),
    ],
)
def test_the_message_of_an_error_is_found_in_any_form_of_its_body(body: object, words: str) -> None:
    assert provider_words(body) == words


def test_words_can_be_nested_without_end() -> None:
    body: dict[str, Any] = {}
    body["error"] = body
    assert provider_words(body, any_form=False) == ""
