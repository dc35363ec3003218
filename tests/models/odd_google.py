"""Odd answers of servers that speak Google's protocol, each with how a run that gets it ends."""

from __future__ import annotations

from typing import Any

from tests.models.odd_chat_answers import FORMS, PAGE, R, Row, both, failed
from tests.support.raw_server import Answer, events

__all__ = ["ROWS"]

USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
ADD = {"a": 1, "b": 2}


def text(content: str) -> dict[str, Any]:
    return {"text": content}


def call(name: Any, args: Any, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args, **more}}


def response(*parts: Any, finish: Any = "STOP", **changes: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "m",
        "responseId": "r1",
        **changes,
    }


def answer(*parts: Any, finish: Any = "STOP", **changes: Any) -> Answer:
    """An answer, streamed with each part in a chunk of its own."""
    chunks = [response(part, finish=None, **changes) for part in parts[:-1]]
    chunks.append(response(*parts[-1:], finish=finish, **changes))
    return Answer(response(*parts, finish=finish, **changes), events(*chunks, done=False))


YES = answer(text("Y"), text("es"))
ERROR = {"error": {"code": 400, "message": R, "status": "INVALID_ARGUMENT"}}

ROWS: dict[str, Row] = {
    "an ordinary answer": Row((YES,)),
    "a call": Row((answer(call("add", ADD)), YES), requests=2),
    "a call with an id": Row((answer(call("add", ADD, id="c1")), YES), requests=2),
    "null arguments": Row((answer(call("ping", None)), YES), requests=2),
    "no arguments": Row((answer({"functionCall": {"name": "ping"}}), YES), requests=2),
    "two calls of one name": Row((answer(call("add", ADD), call("add", {"a": 2, "b": 2})), YES), requests=2),
    "a call that lacks an argument": Row((answer(call("add", {"a": 1})), YES), requests=2),
    "a name with a dot": Row((answer(call("functions.add", ADD)), YES), requests=2),
    "a call without a name": Row((answer(call("", ADD)), YES), requests=2),
    "a name of 70 characters": Row((answer(call("add" + "x" * 67, ADD)), YES), requests=2),
    "an unknown name": Row((answer(call("subtract", ADD)), YES), requests=2),
    "text and a call": Row((answer(text("I add."), call("add", ADD)), YES), requests=2),
    "thinking": Row((answer({"text": "Hm", "thought": True}, text("Yes")),)),
    "an empty part": Row((answer(text(""), text("Yes")),)),
    "more than the protocol has": Row((answer(text("Yes"), x_new={"a": 1}),)),
    "an unknown finish reason": Row((answer(text("Yes"), finish="EOS_TOKEN"),)),
    "absent usage": Row((answer(text("Yes"), usageMetadata=None),), warning="doesn't say how many tokens"),
    "null token counts": Row(
        (answer(text("Yes"), usageMetadata={"promptTokenCount": None}),), warning="doesn't say how many tokens"
    ),
    "null model and id": Row((answer(text("Yes"), modelVersion=None, responseId=None),)),
    "cut at the limit": Row((answer(text("Yes"), finish="MAX_TOKENS"),), warning="cut off at its output limit"),
    "filtered half-way": Row((answer(text("Yes"), finish="SAFETY"),), warning="content filter cut"),
    "empty and cut": Row(
        (answer(finish="MAX_TOKENS"),), "provider_failed", None, "output limit", hint="max_tokens", requests=1
    ),
    "empty and filtered": Row((answer(finish="SAFETY"),), "provider_failed", None, "refused", requests=1),
    "a blocked prompt": Row(
        (both({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}),),
        "provider_failed",
        None,
        "refused",
        requests=1,
    ),
    "no candidates": failed(both({"candidates": [], "usageMetadata": USAGE}), ""),
    "no content": Row((answer(), answer()), status="provider_failed", output=None, error="", requests=2),
    "a cut stream": Row(
        (Answer(YES.whole, (YES.stream or "")[:300], cut=True),),
        "provider_failed",
        None,
        "onnection",
        requests=2,
        partial="Y",
    ),
    "no stream from a server that can't": Row((both(YES.whole),)),
    "HTTP 200, error": failed(both(ERROR), f"HTTP 400: {R}", requests=1),
    "HTTP 200, error without a status": failed(both({"error": {"message": R}})),
    "HTTP 200, error as text": failed(both({"error": R})),
    "HTTP 200, a list": failed(both([ERROR]), R),
    "HTTP 200, error as an event": Row(
        (
            Answer(
                ERROR,
                events(response(text("Y"), finish=None), ERROR, done=False),
            ),
        ),
        "provider_failed",
        None,
        R,
        partial="Y",
    ),
    "HTTP 200, a page": failed(both(PAGE, kind="text/html"), "a web page: Sign in & go"),
    "HTTP 200, no JSON": failed(both("upstream said no"), "upstream said no"),
    "HTTP 200, nothing": failed(both("", kind="text/plain"), ""),
    "HTTP 200, an empty object": failed(both({}), ""),
    "HTTP 429": failed(both(ERROR, 429), f"HTTP 429: {R}", requests=2),
    "HTTP 503": failed(both(ERROR, 503), f"HTTP 503: {R}", requests=2),
    "no such model": failed(
        both({"error": {"code": 404, "message": "models/x is not found for API version v1beta"}}, 404),
        "there is no model",
        requests=1,
    ),
    "a refused key": failed(
        both({"error": {"code": 401, "message": R, "status": "UNAUTHENTICATED"}}, 401),
        "refused the key",
        hint="GOOGLE_API_KEY",
        requests=1,
    ),
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
