"""Odd answers of servers that speak OpenAI's Responses protocol, each with how a run that gets it ends."""

from __future__ import annotations

from typing import Any

from tests.models.odd_chat_answers import FORMS, PAGE, R, Row, both, failed
from tests.support.raw_server import Answer, events

__all__ = ["ROWS"]

USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "total_tokens": 18,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": list(content)}


def said(text: str) -> dict[str, Any]:
    return message({"type": "output_text", "text": text, "annotations": []})


def call(name: str, arguments: Any, id: str | None = "call_1") -> dict[str, Any]:
    item = {"type": "function_call", "id": "fc_1", "call_id": id, "name": name}
    return {**item, "arguments": arguments, "status": "completed"}


def response(*output: dict[str, Any], status: str = "completed", **changes: Any) -> dict[str, Any]:
    """A complete response."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": "m",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
        "error": None,
        "incomplete_details": None,
        **changes,
    }


def answer(*output: dict[str, Any], end: str = "response.completed", **changes: Any) -> Answer:
    """A response, and the events that stream it."""
    whole = response(*output, **changes)
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for at, item in enumerate(output):
        place = {"output_index": at, "item_id": item["id"]}
        found.append(
            {"type": "response.output_item.added", "output_index": at, "item": {**item, "content": [], "arguments": ""}}
        )
        for number, part in enumerate(item.get("content") or ()):
            where = {**place, "content_index": number}
            if part["type"] == "refusal":
                found.append({"type": "response.refusal.delta", "delta": part["refusal"], **where})
                found.append({"type": "response.refusal.done", "refusal": part["refusal"], **where})
                continue
            found.append({"type": "response.content_part.added", "part": {**part, "text": ""}, **where})
            found.append({"type": "response.output_text.delta", "delta": part["text"], "logprobs": [], **where})
            found.append({"type": "response.output_text.done", "text": part["text"], "logprobs": [], **where})
        if item["type"] == "function_call":
            found.append({"type": "response.function_call_arguments.delta", "delta": item["arguments"] or "", **place})
        found.append({"type": "response.output_item.done", "output_index": at, "item": item})
    found.append({"type": end, "response": whole})
    return Answer(whole, events(*({**event, "sequence_number": at} for at, event in enumerate(found)), done=False))


YES = answer(said("Yes"))
ADD = '{"a": 1, "b": 2}'
INCOMPLETE: dict[str, Any] = {"status": "incomplete", "end": "response.incomplete"}

ROWS: dict[str, Row] = {
    "counts that are none": Row(
        (answer(said("Yes"), usage={**USAGE, "output_tokens": {}, "total_tokens": {}}),),
        warning="doesn't say how many tokens",
    ),
    "an ordinary answer": Row((YES,)),
    "a call": Row((answer(call("add", ADD)), YES), requests=2),
    "null arguments": Row((answer(call("ping", None)), YES), requests=2),
    "a name with a dot": Row((answer(call("functions.add", ADD)), YES), requests=2),
    "a call without a name": Row((answer(call("", ADD)), YES), requests=2),
    "absent usage": Row((answer(said("Yes"), usage=None),), warning="doesn't say how many tokens"),
    "null model": Row((answer(said("Yes"), model=None),)),
    "cut at the limit": Row(
        (answer(said("Yes"), incomplete_details={"reason": "max_output_tokens"}, **INCOMPLETE),),
        warning="cut off at its output limit",
    ),
    "filtered half-way": Row(
        (answer(said("Yes"), incomplete_details={"reason": "content_filter"}, **INCOMPLETE),),
        warning="content filter cut",
    ),
    "refusal": Row(
        (answer(message({"type": "refusal", "refusal": "I can't help."})),),
        "provider_failed",
        None,
        "refused: I can't help.",
        requests=1,
    ),
    "failed": failed(
        answer(status="failed", error={"code": "server_error", "message": R}, end="response.failed"), requests=2
    ),
    "null output": failed(
        Answer(
            response() | {"output": None},
            events({"type": "response.completed", "response": response() | {"output": None}}, done=False),
        ),
        "",
    ),
    "a cut stream": failed(Answer(YES.whole, (YES.stream or "")[:600], cut=True), "", requests=2),
    "HTTP 200, error": failed(both({"error": {"message": R}})),
    "HTTP 200, error as text": failed(both({"error": R})),
    "HTTP 200, a page": failed(both(PAGE, kind="text/html"), "a web page: Sign in & go"),
    "HTTP 200, no JSON": failed(both("upstream said no"), "isn't JSON: upstream said no"),
    "HTTP 200, nothing": failed(both("", kind="text/plain"), "the "),
    "HTTP 200, an empty object": failed(both({}), "the "),
    "no such path": failed(
        both({"error": {"message": "Not Found"}}, 404),
        "has no Responses API",
        hint="openai-chat:openai no such path",
        requests=1,
    ),
    "no such method": failed(both("", 405), "has no Responses API", hint="`openai-chat:", requests=1),
    "no such path, as FastAPI says it": failed(both({"detail": "Not Found"}, 404), "has no Responses API", requests=1),
    "no such path, as text": failed(both("404 page not found", 404, "text/plain"), "has no Responses API", requests=1),
    "unexpected endpoint": failed(
        both({"error": "Unexpected endpoint or method. (POST /v1/responses)"}),
        "has no Responses API",
        hint="openai-chat:",
    ),
    "no such model": failed(
        both({"error": {"message": "The model `no such model` does not exist", "code": "model_not_found"}}, 404),
        "there is no model",
        requests=1,
    ),
    "no such model, said otherwise": failed(
        both({"error": {"message": "model not found, try pulling it first"}}, 404), "there is no model", requests=1
    ),
    **{
        f"HTTP 400, {name}": failed(
            both(body, 400, "text/plain" if isinstance(body, str) else "application/json"), requests=1
        )
        for name, body in FORMS.items()
    },
}
