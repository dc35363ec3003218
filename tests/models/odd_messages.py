"""Odd answers of servers that speak Anthropic's protocol, each with how a run that gets it ends."""

from __future__ import annotations

import json
from typing import Any

from tests.models.odd_chat_answers import FORMS, PAGE, R, Row, both, failed
from tests.support.raw_server import Answer

__all__ = ["ROWS"]

USAGE = {"input_tokens": 11, "output_tokens": 7}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def call(name: str, input: Any, id: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def answer(*content: dict[str, Any], stop: str | None = "end_turn", ends: bool = True, **changes: Any) -> Answer:
    """A message, and the events that stream it."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE, **changes}
    whole = {**head, "content": list(content), "stop_reason": stop, "stop_sequence": None}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for at, block in enumerate(content):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        found.append({"type": "content_block_start", "index": at, "content_block": start})
        found.append({"type": "content_block_delta", "index": at, "delta": delta})
        found.append({"type": "content_block_stop", "index": at})
    if ends:
        found.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": changes.get("usage", USAGE)})
        found.append({"type": "message_stop"})
    return Answer(whole, "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in found))


YES = answer(text("Yes"))


def mistyped(old: str, new: str) -> str:
    """The stream of `YES`, with something of another type in it."""
    assert YES.stream is not None
    assert old in YES.stream
    return YES.stream.replace(old, new)


NUMBER = Answer(
    {**YES.whole, "content": [text("Yes") | {"text": 7}]},
    mistyped('"text_delta", "text": "Yes"', '"text_delta", "text": 7'),
)
"""An answer whose text is a number."""

ERROR = {"type": "error", "error": {"type": "invalid_request_error", "message": R}}

ROWS: dict[str, Row] = {
    "an ordinary answer": Row((YES,)),
    "a call": Row((answer(call("add", {"a": 1, "b": 2}), stop="tool_use"), YES), requests=2),
    "a call that isn't given": Row((answer(call("add", {}), stop="tool_use"), YES), requests=2),
    "a name with a dot": Row((answer(call("functions.add", {}), stop="tool_use"), YES), requests=2),
    "a call without a name": Row((answer(call("", {}), stop="tool_use"), YES), requests=2),
    "an unknown stop reason": Row((answer(text("Yes"), stop="eos_token"),)),
    "no token counts": Row(
        (answer(text("Yes"), usage={"input_tokens": 0, "output_tokens": 0}),), warning="doesn't say how many tokens"
    ),
    "cut at the limit": Row((answer(text("Yes"), stop="max_tokens"),), warning="cut off at its output limit"),
    "refused half-way": Row((answer(text("Yes"), stop="refusal"),), warning="content filter cut"),
    "refused": Row((answer(stop="refusal"),), "provider_failed", None, "refused", requests=1),
    "a number as text": failed(NUMBER, "a text in the answer is an int"),
    "a number as the name of a tool": failed(
        Answer(answer(call("add", {}) | {"name": 7}, stop="tool_use").whole, NUMBER.stream), "in the answer is an int"
    ),
    "a truth value as arguments": failed(
        Answer(answer(call("add", {}) | {"input": True}, stop="tool_use").whole, NUMBER.stream), "in the answer"
    ),
    "a number as usage": failed(
        Answer(YES.whole | {"usage": 7}, mistyped(json.dumps(USAGE), "7")),
        "AttributeError: 'int' object",
        hint="see what the server at this address sends",
        requests=1,
    ),
    "a cut stream": Row(
        (Answer(YES.whole, (YES.stream or "")[:500], cut=True),),
        "provider_failed",
        None,
        "connection",
        requests=2,
        partial="Yes",
    ),
    "a stream without an end": Row(
        (Answer("", answer(text("Ye"), ends=False).stream),), "provider_failed", None, "", requests=2, partial="Ye"
    ),
    "an error as an event": failed(
        Answer(
            {"type": "error", "error": {"type": "api_error", "message": R}},
            f"event: error\ndata: {json.dumps(ERROR)}\n\n",
        )
    ),
    "HTTP 200, error": failed(both(ERROR)),
    "HTTP 200, a page": failed(both(PAGE, kind="text/html"), "a web page: Sign in & go"),
    "HTTP 200, no JSON": failed(both("upstream said no"), "upstream said no"),
    "HTTP 200, nothing": failed(both("", kind="text/plain"), ""),
    "HTTP 200, an empty object": failed(both({}), ""),
    "HTTP 200, overloaded": failed(
        both({"type": "error", "error": {"type": "overloaded_error", "message": R}}), f"HTTP 529: {R}", requests=2
    ),
    "no stream from a server that can't": Row((both(YES.whole),)),
    "HTTP 529": failed(both(ERROR, 529), f"HTTP 529: {R}", requests=2),
    "control characters in an error": failed(
        both({"error": {"message": f"{R}\x1b[2J"}}, 400), rf"{R}\x1b[2J", requests=1
    ),
    **{
        f"HTTP 400, {name}": failed(
            both(body, 400, "text/plain" if isinstance(body, str) else "application/json"), requests=1
        )
        for name, body in FORMS.items()
    },
}
