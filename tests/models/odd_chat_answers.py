"""Odd answers of servers that speak OpenAI's chat protocol, each with how a run that gets it ends."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.raw_server import Answer, events

__all__ = ["ROWS", "Row"]

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
HEAD = {"id": "c-1", "created": 1_700_000_000, "model": "m"}


@dataclass(frozen=True)
class Row:
    """Answers, and the ending of a run that gets them.

    Args:
        answers: What the server answers, request by request.
        status: The run's status.
        output: Its output.
        error: Part of its error's message.
        hint: Part of its error's hint.
        warning: Part of its only warning; None if there is none.
        requests: How many requests are made.
        partial: The output of a run that failed, where its text was streamed.
    """

    answers: tuple[Answer, ...]
    status: str = "completed"
    output: object = "Yes"
    error: str = ""
    hint: str = ""
    warning: str | None = None
    requests: int | None = None
    partial: object = None

    @property
    def falls_back(self) -> bool:
        """Whether the request fails, rather than what the model says."""
        return "refused" not in self.error and "limit" not in self.error and "invalidly" not in self.error


def whole(message: Any, finish: Any = "stop", /, **changes: Any) -> dict[str, Any]:
    """A complete answer."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE, **changes}


def chunks(*deltas: Any, finish: Any = "stop", usage: Any = USAGE, **changes: Any) -> list[dict[str, Any]]:
    """A streamed answer."""
    head = {**HEAD, "object": "chat.completion.chunk", **changes}
    found = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish is not None:
        found.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*found, {**head, "choices": [], "usage": usage}] if usage else found


def text(*pieces: str, finish: Any = "stop", done: bool = True, usage: Any = USAGE, **changes: Any) -> Answer:
    """An answer of text alone."""
    found = chunks(*({"content": piece} for piece in pieces), finish=finish, usage=usage, **changes)
    content = {"role": "assistant", "content": "".join(pieces)}
    return Answer(whole(content, finish, usage=usage, **changes), events(*found, done=done))


def calls(complete: list[Any], pieces: list[Any] | None = None, **changes: Any) -> Answer:
    """An answer that calls tools; `pieces` are those of the streamed one, each in a chunk of its own."""
    if pieces is None:
        pieces = [{"index": at, **call} for at, call in enumerate(complete)]
    found = chunks(*({"tool_calls": [piece]} for piece in pieces), finish="tool_calls", **changes)
    return Answer(whole({"role": "assistant", "tool_calls": complete}, "tool_calls", **changes), events(*found))


def call(id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def both(body: Any, status: int = 200, kind: str = "application/json", **fields: Any) -> Answer:
    """An answer that is the same whether it should be streamed or not."""
    return Answer(body, None, status, kind, **fields)


YES = text("Y", "es")
ADD = '{"a": 1, "b": 2}'
PAGE = "<!DOCTYPE html><html><head><title>Sign in &amp; go</title></head><body>...</body></html>"
OTHER_TYPES = {"annotations": [1], "audio": {"x": 1}, "reasoning": ["hm"], "reasoning_content": 5, "refusal": {"a": 1}}
BOTH = ("Yes", "No")
PIECES = (("Y", 0), ("N", 1), ("o", 1), ("es", 0))


def choice(message: Any, name: str = "message") -> dict[str, Any]:
    """A choice whose log probabilities aren't any."""
    return {"index": 0, name: message, "finish_reason": "stop", "logprobs": {"content": [1]}}


GOOD: dict[str, Row] = {
    "an ordinary answer": Row((YES,)),
    "null id, model, usage and created": Row(
        (text("Y", "es", usage=None, id=None, model=None, created=None, object=None, system_fingerprint=None),),
        warning="doesn't say how many tokens",
    ),
    "absent usage": Row((text("Yes", usage=None),), warning="doesn't say how many tokens"),
    "null token counts": Row(
        (text("Yes", usage={"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}),),
        warning="doesn't say how many tokens",
    ),
    "usage in each chunk": Row(
        (Answer(YES.whole, events(*(c | {"usage": USAGE} for c in chunks({"content": "Yes"})))),)
    ),
    "null arguments": Row((calls([call("c", "ping", None)]), YES), requests=2),
    "arguments as an object": Row((calls([call("c", "add", {"a": 1, "b": 2})]), YES), requests=2),
    "a null call id": Row((calls([call(None, "add", ADD)]), YES), requests=2),
    "an empty call id": Row((calls([call("", "add", ADD)]), YES), requests=2),
    "no type, no role": Row((calls([{"id": "c", "function": {"name": "add", "arguments": ADD}}]), YES), requests=2),
    "duplicated call ids": Row(
        (
            calls(
                [call("c", "add", ADD), call("c", "add", '{"a": 2, "b": 2}')],
                [{"index": 0, **call("c", "add", ADD)}, {"index": 1, **call("c", "add", '{"a": 2, "b": 2}')}],
            ),
            YES,
        ),
        requests=2,
    ),
    "calls that share a number": Row(
        (
            calls(
                [call("c", "add", ADD), call("d", "add", '{"a": 2, "b": 2}')],
                [{"index": 0, **call("c", "add", ADD)}, {"index": 0, **call("d", "add", '{"a": 2, "b": 2}')}],
            ),
            YES,
        ),
        requests=2,
    ),
    "a name repeated with each piece": Row(
        (
            calls(
                [call("c", "add", ADD)],
                [{"index": 0, **call("c", "add", piece)} for piece in ("", '{"a": 1,', ' "b": 2}')],
            ),
            YES,
        ),
        requests=2,
    ),
    "a new id with each piece of a call": Row(
        (
            calls(
                [call("c", "add", ADD)],
                [
                    {"index": 0, **call("c", "add", "")},
                    {"index": 0, **call("d", None, '{"a": 1,')},
                    {"index": 0, **call("e", None, ' "b": 2}')},
                ],
            ),
            YES,
        ),
        requests=2,
    ),
    "a call without a name": Row((calls([call("c", "", ADD)]), YES), requests=2),
    "a call with a null name": Row((calls([call("c", None, ADD)]), YES), requests=2),
    "a name with a dot": Row((calls([call("c", "functions.add", ADD)]), YES), requests=2),
    "a name of 70 characters": Row((calls([call("c", "add" + "x" * 67, ADD)]), YES), requests=2),
    "a name in other letters": Row((calls([call("c", "добавить 数", ADD)]), YES), requests=2),
    "an unknown name": Row((calls([call("c", "subtract", ADD)]), YES), requests=2),
    "an id of 200 characters": Row(
        (calls([call("c" * 200, "add", ADD), call("c" * 201, "ping", "{}")]), YES), requests=2
    ),
    "arguments that aren't JSON": Row((calls([call("c", "add", '{"a": 1,')]), YES), requests=2),
    "arguments that aren't an object": Row((calls([call("c", "add", "[1, 2]")]), YES), requests=2),
    "calls without numbers and ids": Row(
        (
            calls(
                [call(None, "add", ADD), call(None, "ping", "{}")], [call(None, "add", ADD), call(None, "ping", "{}")]
            ),
            YES,
        ),
        requests=2,
    ),
    "a function call as it was at first": Row(
        (
            Answer(
                whole({"role": "assistant", "function_call": {"name": "add", "arguments": ADD}}, "function_call"),
                events(
                    *chunks(
                        {"function_call": {"name": "add", "arguments": ""}},
                        {"function_call": {"arguments": ADD}},
                        finish="function_call",
                    )
                ),
            ),
            YES,
        ),
        requests=2,
    ),
    "thinking in the text": Row((text("<th", "ink>Let me", " see.</thi", "nk>\n\nYes"),)),
    "thinking that begins after a line": Row((text("\n", "<think>", "Hm", "</think>", "\n", "Yes"),)),
    "a tag in the middle": Row((text("Use <thi", "nk> and `a <", " b`"),), output="Use  and `a < b`"),
    "a complete tag in the middle": Row((text("Y", "<think>h", "m</think>", "es"),), output="Yes"),
    "an unknown finish reason": Row((text("Y", "es", finish="eos_token"),)),
    "end_turn as finish reason": Row((text("Y", "es", finish="end_turn"),)),
    "no finish reason but [DONE]": Row((text("Y", "es", finish=None),)),
    "calls without finish reason": Row(
        (
            Answer(
                calls([call("c", "add", ADD)]).whole,
                events(*chunks({"tool_calls": [call("c", "add", ADD)]}, finish="")),
            ),
            YES,
        ),
        requests=2,
    ),
    "cut at the limit": Row((text("Ye", "s", finish="length"),), warning="cut off at its output limit"),
    "cut at the limit, in other words": Row((text("Yes", finish="MAX_TOKENS"),), warning="cut off at its output limit"),
    "filtered half-way": Row((text("Ye", "s", finish="content_filter"),), warning="content filter cut"),
    "no stream from a server that can't": Row((both(whole({"role": "assistant", "content": "Yes"})),)),
    "calls from a server that can't stream": Row(
        (both(whole({"tool_calls": [call("c", "add", ADD)]}, "tool_calls")), both(YES.whole)), requests=2
    ),
    "JSON as text/plain": Row((Answer(YES.whole, YES.stream, kind="text/plain"),)),
    "content as a list of parts": Row(
        (
            Answer(
                whole({"content": [{"type": "text", "text": "Yes"}]}),
                events(*chunks({"content": [{"type": "text", "text": "Yes"}]})),
            ),
        )
    ),
    "text where the message should be": Row(
        (
            Answer(
                {"choices": [{"text": "Yes"}], "usage": USAGE}, events({"choices": [{"text": "Yes"}], "usage": USAGE})
            ),
        )
    ),
    "an empty answer, then one": Row(
        (text(""), text("")), status="provider_failed", output=None, error="invalidly", requests=2
    ),
    "separators of lines in the text": Row((text("Y\u2028\u0085e", "s"),), output="Y\u2028\u0085es"),
    "times and names of other types": Row(
        (text("Y", "es", id=5, model=["m"], created="now", service_tier=7, system_fingerprint=[1], moderation=[1]),)
    ),
    "a time that is no number": Row((text("Y", "es", created=[1]),)),
    "token details of other types": Row(
        (
            text(
                "Yes",
                usage=USAGE
                | {
                    "prompt_tokens_details": "x",
                    "completion_tokens_details": [1],
                    "own": {"deep": {"er": 1}},
                    "odd_details": {"some_tokens": "many"},
                },
            ),
        )
    ),
    "optional parts of other types": Row(
        (
            Answer(
                whole({"content": "Yes", **OTHER_TYPES}) | {"choices": [choice({"content": "Yes", **OTHER_TYPES})]},
                events({**HEAD, "choices": [choice({"content": "Yes", **OTHER_TYPES}, "delta")], "usage": USAGE}),
            ),
        )
    ),
    "a refusal after text": Row(
        (
            Answer(
                whole({"content": "Yes", "refusal": "no more"}),
                events(*chunks({"content": "Yes"}, {"refusal": "no more"})),
            ),
        ),
        warning="content filter cut",
    ),
    "several choices, a piece of each in turn": Row(
        (
            Answer(
                whole({}) | {"choices": [{"index": at, "message": {"content": each}} for at, each in enumerate(BOTH)]},
                events(
                    *({**HEAD, "choices": [{"index": at, "delta": {"content": each}}]} for each, at in PIECES),
                    {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
                ),
            ),
        )
    ),
    "a mark of the byte order": Row(
        (Answer("\ufeff" + json.dumps(YES.whole), "\ufeff" + events(*chunks({"content": "Yes"}))),)
    ),
    "more than the protocol has": Row((text("Y", "es", x_groq={"id": 1}, citations=["u"], choices_note=None),)),
}

R = "no GPU is free"


def failed(answer: Answer, error: str = R, requests: int | None = None, hint: str = "") -> Row:
    return Row((answer,), "provider_failed", None, error, hint=hint, requests=requests)


def nested(levels: int) -> Any:
    """An object in an object, and so on."""
    return json.loads('{"a": ' * levels + "1" + "}" * levels)


FORMS: dict[str, Any] = {
    "error object": {"error": {"message": R, "type": "x", "code": None}},
    "detail": {"detail": R},
    "error text": {"error": R},
    "list of errors": [{"error": {"message": R}}],
    "errors": {"errors": [{"message": R}]},
    "errors as text": {"errors": [R]},
    "message": {"object": "error", "message": R, "code": 1},
    "detail with places": {"detail": [{"loc": ["body", "model"], "msg": R, "type": "value_error"}]},
    "behind a router": {
        "error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": {"message": R}})}}
    },
    "text": R,
    "page": f"<html><head><title>502 {R}</title></head><body>nginx</body></html>",
    "oauth": {"error": {"type": "unavailable", "error_description": R}},
    "odd keys": {"Message": R},
    "problem": {"title": "Bad", "detail": R, "status": 400},
    "unknown form": {"success": False, "because": R},
}

BAD: dict[str, Row] = {
    **{
        f"HTTP 400, {name}": failed(
            both(body, 400, "text/plain" if name == "text" else "text/html" if name == "page" else "application/json"),
            requests=1,
        )
        for name, body in FORMS.items()
    },
    "HTTP 400, deeply nested": failed(both({"error": nested(300)}, 400), "HTTP 400", requests=1),
    "HTTP 200, an error that is deeply nested": failed(both({"error": nested(300)}), '{"a": {"a"'),
    "a redirect": failed(
        both("", 308, "text/html", headers={"location": "https://u:p@other.test/v1/chat/completions?key=1"}),
        "redirects to https://other.test/v1/chat/completions (HTTP 308)",
        requests=1,
        hint="base_url",
    ),
    "HTTP 400, nothing": failed(both("", 400), "HTTP 400", requests=1),
    "HTTP 500, a page": failed(both(FORMS["page"], 500, "text/html"), f"502 {R}", requests=2),
    "HTTP 200, error": failed(both({"error": {"message": R}})),
    "HTTP 200, error as text": failed(both({"error": R})),
    "HTTP 200, error that says its status": failed(both({"error": {"message": R, "code": 401}}), R, requests=1),
    "HTTP 200, error as an event": Row(
        (
            Answer(
                {"error": {"message": R}},
                events(*chunks({"content": "Y"}, finish=None, usage=None), {"error": {"message": R}}),
            ),
        ),
        "provider_failed",
        None,
        R,
        partial="Y",
    ),
    "HTTP 200, message": failed(both({"object": "error", "message": R, "code": 50_000})),
    "HTTP 200, empty choices": failed(both(whole({}) | {"choices": []}), "no choices"),
    "HTTP 200, null choices": failed(both(whole({}) | {"choices": None}), "no choices"),
    "HTTP 200, a page": failed(both(PAGE, kind="text/html"), "a web page: Sign in & go"),
    "HTTP 200, broken JSON": failed(both('{"choices": [', kind="application/json"), "JSON"),
    "HTTP 200, null": failed(both("null"), "no choices"),
    "HTTP 200, nothing": failed(both("", kind="text/plain"), "the "),
    "HTTP 200, no JSON": failed(both("upstream said no"), "isn't JSON: upstream said no"),
    "a cut stream": Row(
        (Answer(YES.whole, events(*chunks({"content": "Ye"}, finish=None, usage=None), done=False), cut=True),),
        "provider_failed",
        None,
        "onnection",
        hint="check the address",
        requests=2,
        partial="Ye",
    ),
    "a stream that ends in the middle": Row(
        (Answer("", events(*chunks({"content": "Ye"}, finish=None, usage=None), done=False)),),
        "provider_failed",
        None,
        "the ",
        requests=2,
        partial="Ye",
    ),
    "refusal": Row(
        (
            Answer(
                whole({"role": "assistant", "content": None, "refusal": "I can't help with that."}),
                events(*chunks({"refusal": "I can't help"}, {"refusal": " with that."})),
            ),
        ),
        "provider_failed",
        None,
        "refused: I can't help with that.",
        requests=1,
    ),
    "empty and filtered": Row((text("", finish="content_filter"),), "provider_failed", None, "refused", requests=1),
    "empty and cut": Row(
        (text("", finish="length"),), "provider_failed", None, "output limit", hint="max_tokens", requests=1
    ),
    "control characters in an error": failed(
        both({"error": {"message": f"{R}\x1b[2J\x07\u202e"}}, 400), rf"{R}\x1b[2J\x07\u202e", requests=1
    ),
}

ROWS = {**GOOD, **BAD}
