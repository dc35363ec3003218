"""Exchanges as rows and back.

What requests have in common is an object that is stored once, by its digest: a message, a part of a setup, a setup.
A history is an object too, of its last message and the history before it, so a run's rows grow by what is new in each
request.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from llm_do.runtime.record.exchanges import Exchange, ModelFacts, RequestPlace
from llm_do.runtime.record.store.store_writes import StoredObject
from llm_do.text.json_data import json_text
from llm_do.threads.store.codec import message_text

if TYPE_CHECKING:
    from llm_do.runtime.record.sent_request import SentRequest

__all__ = ["answer_text", "data_object", "exchange_from", "facts_and_setup", "setup_object"]

_encode = json.JSONEncoder(ensure_ascii=False).encode


def data_object(data: object) -> StoredObject:
    """JSON data as an object."""
    from llm_do.runtime.record.canonical_messages import canonical_text  # heavy, as requests are

    return _object(canonical_text(data))


def _object(body: str, links: Sequence[StoredObject] = ()) -> StoredObject:
    digest = hashlib.sha256(body.encode("utf-8", "backslashreplace"))
    for link in links:
        digest.update(link.digest)
    return StoredObject(digest.digest(), body, tuple(links))


def setup_object(setup: Mapping[str, Any], facts: ModelFacts | None) -> StoredObject:
    """A setup as an object: its instructions and each of its tools are objects of their own."""
    rest = {name: value for name, value in setup.items() if name not in ("instructions", "tools")}
    body = json_text({"setup": rest, "facts": asdict(facts) if facts is not None else None})
    return _object(body, [data_object(setup["instructions"]), *map(data_object, setup["tools"])])


def facts_and_setup(body: str, links: Sequence[str]) -> tuple[ModelFacts | None, dict[str, Any]]:
    """The model's facts and the setup that an object was made of, from its body and those of its links."""
    from llm_do.runtime.record.sent_request import SETUP  # heavy, as requests are

    data: Mapping[str, Any] = json.loads(body)
    instructions, *tools = map(json.loads, links)
    facts = ModelFacts(**data["facts"]) if data["facts"] is not None else None
    setup = {**data["setup"], "instructions": instructions, "tools": tools}
    return facts, {name: setup[name] for name in SETUP}


def answer_text(exchange: Exchange) -> str:
    """What came back, and what a budget changed, as JSON text."""
    outcome = exchange.outcome
    response = message_text(outcome.response) if outcome.response is not None else "null"
    failure = outcome.failure.to_dict() if outcome.failure is not None else None
    rest = {"partial": exchange.partial, "tool_calls": exchange.tool_calls, "max_tokens": exchange.max_tokens}
    # Joined as text: the response is the largest part, and written as text at once.
    outer = _encode({"usage": outcome.usage.to_dict(), "failure": failure})
    return f'{{"outcome": {outer[:-1]}, "response": {response}}}, {_encode(rest)[1:]}'


def exchange_from(
    place: RequestPlace,
    model: str,
    sent: SentRequest,
    answer: str,
    times: tuple[float, float, float | None],
    facts: ModelFacts | None,
) -> Exchange:
    """The exchange that was stored."""
    from llm_do.runtime.record.request_outcome import RequestOutcome

    data: Mapping[str, Any] = json.loads(answer)
    outcome = RequestOutcome.from_dict(data["outcome"])
    tool_calls = tuple(data["tool_calls"])
    return Exchange(place, model, sent, outcome, *times, data["partial"], tool_calls, data["max_tokens"], facts)
