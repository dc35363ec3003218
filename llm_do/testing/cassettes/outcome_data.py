"""How a recorded attempt ended, as it is written in a cassette, and back.

What a provider adds to every answer (ids, clocks, addresses) is left out, and so is what the cassette says elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter

from llm_do.runtime.record.canonical_messages import ordered_part, without_provider_ids
from llm_do.runtime.record.request_outcome import RequestFailure, RequestOutcome
from llm_do.runtime.record.results import Usage

if TYPE_CHECKING:
    from llm_do.runtime.record.sent_request import RequestReader

__all__ = ["InvalidAnswerError", "outcome_data", "outcome_of", "portable_outcome"]

EPOCH = "1970-01-01T00:00:00Z"
"""The time of an answer that was recorded."""

ELSEWHERE = frozenset((
    "conversation_id", "failed_attempts", "history_digest", "kind", "provider_response_id", "provider_url", "run_id",
    "timestamp", "usage", "workspace_ref",
))  # fmt: skip
"""Keys of a response that depend on when, where and by whom it was asked for, or are written beside it."""

SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "spaced": lambda data: json.dumps(data, ensure_ascii=False),
    "compact": lambda data: json.dumps(data, ensure_ascii=False, separators=(",", ":")),
    "spaced ascii": json.dumps,
    "compact ascii": lambda data: json.dumps(data, separators=(",", ":")),
}
"""How providers spell a tool call's arguments: they are data in the cassette, and text to the run."""


_FIELD_NAME = re.compile("[a-z_]*")
"""What isn't really an id: the name of the field that an answer's thinking came in."""


class InvalidAnswerError(ValueError):
    """An answer that a run couldn't use; `path` leads to what is wrong in it."""

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path = path


def portable_outcome(outcome: RequestOutcome, reader: RequestReader, clean: Callable[[str], str]) -> RequestOutcome:
    """An outcome without secrets and machine, its tool calls and signatures numbered as `reader` will number them."""
    data = outcome.to_dict()
    response: dict[str, Any] = data["response"] or {"parts": []}
    for part in response["parts"]:
        if part.get("tool_call_id") is not None:
            part["tool_call_id"] = reader.number(part["tool_call_id"])
        if part.get("signature"):
            part["signature"] = reader.sign(part["signature"])
    return RequestOutcome.from_dict(json.loads(clean(json.dumps(data, ensure_ascii=False))))


def outcome_data(outcome: RequestOutcome) -> dict[str, Any]:
    """What is written of an outcome: `usage`, and either `response` or `failure`."""
    data = outcome.to_dict()
    found: dict[str, Any] = {"usage": _usage_data(outcome.usage)}
    if data["response"] is None:
        return found | {"failure": data["failure"]}
    response = data["response"]
    written: dict[str, Any] = {"parts": [_part_data(part) for part in response["parts"]]}
    written |= {name: value for name, value in response.items() if name not in ELSEWHERE and name not in written}
    written["provider_details"] = without_provider_ids(response.get("provider_details"))
    written["usage"] = _reported(response["usage"], outcome.usage)
    if written.get("state") == "complete":
        del written["state"]
    return found | {"response": {name: value for name, value in written.items() if value not in (None, {})}}


def outcome_of(usage: Usage, row: Mapping[str, Any]) -> RequestOutcome:
    """The outcome that `outcome_data` wrote.

    Raises:
        InvalidAnswerError: It can't be read.
    """
    if "response" not in row:
        return RequestOutcome(usage, failure=RequestFailure.from_dict(row["failure"]))
    response = dict(row["response"])
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    response["usage"] = tokens | response.get("usage", {})
    response["parts"] = [_part_of(part) for part in response["parts"]]
    data = {"kind": "response", "timestamp": EPOCH, **response}
    try:
        (message,) = ModelMessagesTypeAdapter.validate_python([data])
    except ValidationError as error:
        raise _invalid(error) from error
    return RequestOutcome(usage, cast("Any", message))


def _usage_data(usage: Usage) -> dict[str, Any]:
    """Usage without what is the same for almost every request."""
    data = usage.to_dict()
    usual = {"requests": 1, "total_tokens": usage.input_tokens + usage.output_tokens, "cost_usd": None}
    return {name: value for name, value in data.items() if value != usual.get(name, 0)}


def _reported(reported: Mapping[str, Any], usage: Usage) -> dict[str, Any]:
    """What a response itself says of its tokens, as far as it isn't what was counted."""
    counted = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {
        name: value for name, value in reported.items() if value != counted.get(name, 0) and value not in (None, {})
    }


def _part_data(part: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in part.items() if name != "timestamp" and value is not None}
    if not _FIELD_NAME.fullmatch(str(found.get("id", ""))):
        del found["id"]
    if (details := found.pop("provider_details", None)) and (kept := without_provider_ids(details)):
        found["provider_details"] = kept
    if found.get("metadata") == {}:
        del found["metadata"]
    args = found.get("args")
    if isinstance(args, str) and (spelling := _spelling(args)) is not None:
        found["args"], found["args_text"] = json.loads(args), spelling
    return ordered_part(found)


def _spelling(args: str) -> str | None:
    """How a text spells JSON data that isn't itself a text; None if it does in no usual way."""
    try:
        data = json.loads(args)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    return next((name for name, spell in SPELLINGS.items() if spell(data) == args), None)


def _part_of(part: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(part)
    spelling = found.pop("args_text", None)
    if spelling is not None:
        found["args"] = SPELLINGS[spelling](found["args"])
    return found


def _invalid(error: ValidationError) -> InvalidAnswerError:
    """The first fault that PydanticAI's reader finds, with the way to it."""
    fault = error.errors(include_url=False)[0]
    path = tuple(step for step in fault["loc"][2:])
    place = [step for at, step in enumerate(path) if not (at == 2 and path[0] == "parts")]
    name = str(place[-1]) if place else "response"
    if fault["type"] == "missing":
        return InvalidAnswerError(f"`{name}` is missing", ("response", *place[:-1]))
    if fault["type"].startswith("union_tag"):
        return InvalidAnswerError("a part of this kind isn't known", ("response", *place, "part_kind"))
    return InvalidAnswerError(f"`{name}` can't be {_shown(fault['input'])}", ("response", *place))


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
