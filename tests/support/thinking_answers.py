"""Answers of models that think, sign what they thought and give everything an id, in three protocols."""

from __future__ import annotations

import json
from typing import Any

from tests.models import odd_chat_answers, odd_messages, odd_responses
from tests.models.odd_chat_answers import Row
from tests.support.raw_server import Answer, events

__all__ = ["ROWS"]

ADD = '{"a": 1, "b": 2}'
SIGNATURE = "EqQBCkYIBxgCKkDX+/opaque/thinking=="


def _messages(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str) -> Answer:
    """An answer in Anthropic's protocol; each block with the deltas that stream it."""
    usage = {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 5}
    head = {"id": "msg_01", "type": "message", "role": "assistant", "model": "m", "usage": usage, "stop_sequence": None}
    whole = {**head, "content": [block for block, _ in blocks], "stop_reason": stop}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": {**head, "content": [], "stop_reason": None}}]
    for at, (block, deltas) in enumerate(blocks):
        empty = {name: value[:0] if isinstance(value, str) and deltas else value for name, value in block.items()}
        start = empty | {name: block[name] for name in ("type", "id", "name") if name in block}
        start |= {"input": {}} if "input" in block else {}
        found.append({"type": "content_block_start", "index": at, "content_block": start})
        found += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        found.append({"type": "content_block_stop", "index": at})
    found.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage})
    found.append({"type": "message_stop"})
    return Answer(whole, "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in found))


THOUGHT = (
    {"type": "thinking", "thinking": "Let me add.", "signature": SIGNATURE},
    [
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "add."},
        {"type": "signature_delta", "signature": SIGNATURE},
    ],
)
HIDDEN = ({"type": "redacted_thinking", "data": "EmwKAhgB/secret+thoughts=="}, [])
CALL = (
    {"type": "tool_use", "id": "toolu_01A", "name": "add", "input": {"a": 1, "b": 2}},
    [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"a": 1,', ' "b": 2}')],
)
SAID = ({"type": "text", "text": "Yes"}, [{"type": "text_delta", "text": piece} for piece in ("Y", "e", "s")])

REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_01",
    "summary": [{"type": "summary_text", "text": "Let me add."}],
    "encrypted_content": "gAAAAABo/opaque==",
}


def _reasoning_events(answer: Answer) -> Answer:
    """A streamed response whose first item is reasoning, with the deltas of its summary."""
    lines = [json.loads(line.removeprefix("data: ")) for line in (answer.stream or "").split("\n\n") if line]
    place = {"output_index": 0, "item_id": REASONING["id"], "summary_index": 0}
    text = REASONING["summary"][0]["text"]
    deltas = [
        {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}, **place},
        {"type": "response.reasoning_summary_text.delta", "delta": text, **place},
        {"type": "response.reasoning_summary_text.done", "text": text, **place},
    ]
    at = next(at for at, line in enumerate(lines) if line["type"] == "response.output_item.done")
    added = {"type": "response.output_item.added", "output_index": 0, "item": {**REASONING, "summary": []}}
    lines = [line for line in lines[:at] if line["type"] != "response.output_item.added"] + [
        added,
        *deltas,
        *lines[at:],
    ]
    return Answer(answer.whole, events(*({**line, "sequence_number": n} for n, line in enumerate(lines)), done=False))


def _thinking_call() -> Answer:
    message = {
        "role": "assistant",
        "reasoning_content": "Let me add.",
        "tool_calls": [odd_chat_answers.call("c", "add", ADD)],
    }
    deltas = [{"reasoning_content": "Let me "}, {"reasoning_content": "add."}]
    pieces = [
        {"index": 0, **odd_chat_answers.call("c", "add", '{"a": 1,')},
        {"index": 0, "function": {"arguments": ' "b": 2}'}},
    ]
    chunks = odd_chat_answers.chunks(*deltas, *({"tool_calls": [piece]} for piece in pieces), finish="tool_calls")
    return Answer(odd_chat_answers.whole(message, "tool_calls"), events(*chunks))


ROWS: dict[str, tuple[str, Row]] = {
    "anthropic signed thinking": (
        "anthropic",
        Row((_messages(THOUGHT, HIDDEN, CALL, stop="tool_use"), _messages(THOUGHT, SAID, stop="end_turn"))),
    ),
    "openai encrypted reasoning": (
        "openai",
        Row(
            (
                _reasoning_events(odd_responses.answer(REASONING, odd_responses.call("add", ADD))),
                odd_responses.answer(odd_responses.said("Yes")),
            )
        ),
    ),
    "openai-chat reasoning content": ("openai-chat", Row((_thinking_call(), odd_chat_answers.YES))),
    "anthropic several calls": (
        "anthropic",
        Row(
            (
                odd_messages.answer(
                    odd_messages.text("First both."),
                    odd_messages.call("add", {"a": 1, "b": 2}, "toolu_1"),
                    odd_messages.call("ping", {}, "toolu_2"),
                    stop="tool_use",
                ),
                odd_messages.YES,
            )
        ),
    ),
}
