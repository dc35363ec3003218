"""A cassette: recorded requests and answers, and the JSON file that they are kept in.

The file is made to be read in a review: each agent's instructions, tools and output schema stand once, an exchange has
only what is new since its call's last one, and nothing in it depends on a clock or a machine. Keys are not in it; they
are computed when it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.runtime.record.exchanges import ModelFacts, Purpose
from llm_do.runtime.record.request_outcome import RequestFailure, RequestOutcome
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.sent_request import SentRequest, canonical_text, message_data

__all__ = ["VERSION", "Cassette", "Recorded"]

VERSION = 1
"""The version of the file's format."""


@frozen
class Recorded:
    """One recorded attempt of a request.

    Args:
        call: The id of its call without that of the run, with tool calls numbered.
        path: The call's path.
        agent: The call's agent.
        number: The number of the request in its call.
        attempt: The attempt.
        purpose: Who made it.
        sent: What was sent.
        outcome: How it ended.
        partial: The text of an answer that broke off.
    """

    call: str
    path: str
    agent: str
    number: int
    attempt: int
    purpose: Purpose
    sent: SentRequest
    outcome: RequestOutcome
    partial: str = ""

    @property
    def order(self) -> tuple[object, ...]:
        """Where it stands in the file: by call, as in a tree, not by when it happened."""
        return _natural(self.call), self.number, self.purpose, self.attempt


@frozen
class Cassette:
    """Recorded exchanges.

    Args:
        exchanges: The exchanges, in the order of the tree of calls.
        models: What is known of each model, by the name that it was requested by.
        made: When and by which version it was recorded.
    """

    exchanges: Sequence[Recorded] = ()
    models: Mapping[str, ModelFacts] = field(default_factory=dict[str, ModelFacts])
    made: str = ""

    @property
    def usage(self) -> Usage:
        """What recording it has used."""
        return sum((each.outcome.usage for each in self.exchanges), Usage())

    def to_text(self) -> str:
        """The file's text."""
        setups: dict[str, Mapping[str, Any]] = {}
        rows: list[dict[str, Any]] = []
        last: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for each in sorted(self.exchanges, key=lambda each: each.order):
            name = _setup_name(setups, each)
            row: dict[str, Any] = {"call": each.call, "path": each.path, "request": each.number}
            row |= {"agent": each.agent} if each.agent != each.path.rpartition("/")[2] else {}
            row |= {"attempt": each.attempt} if each.attempt > 1 else {}
            row |= {"purpose": each.purpose} if each.purpose != "step" else {}
            row |= {"setup": name} if name != each.agent else {}
            before = last.get((each.call, each.purpose), [])
            kept = _shared(before, each.sent.messages)
            row |= {"kept": kept} if kept != len(before) else {}
            row["new"] = list(each.sent.messages[kept:])
            row |= _outcome_data(each.outcome, each.partial)
            last[each.call, each.purpose] = [*each.sent.messages, *_response_message(each.outcome)]
            rows.append(row)
        models = {
            name: {"system": facts.system, "name": facts.name, "profile": dict(facts.profile)}
            for name, facts in sorted(self.models.items())
        }
        data = {"cassette": VERSION, "made": self.made, "models": models, "agents": setups, "exchanges": rows}
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def parse(cls, text: str, file: str = "the cassette") -> Cassette:
        """The cassette of a file's text.

        Raises:
            UsageError: The text isn't that of a cassette of this version; the error says where.
        """
        data = _json(text, file)
        version = data.get("cassette")
        if version != VERSION:
            raise UsageError(
                f"{file} is not a cassette of version {VERSION}: it says {json.dumps(version)}",
                hint="Record it again, or use the version of llm-do that recorded it.",
                file=file,
                line=1,
            )
        try:
            return _read(data)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{file} is damaged: {_reason(error)}",
                hint="Undo what was changed in it by hand, or record it again.",
                file=file,
            ) from error


def _json(text: str, file: str) -> dict[str, Any]:
    conflict = re.search(r"^(<<<<<<<|=======|>>>>>>>)", text, re.MULTILINE)
    try:
        data: object = json.loads(text)
    except ValueError as error:
        line = text.count("\n", 0, conflict.start()) + 1 if conflict else getattr(error, "lineno", 1)
        fault = "has a merge conflict" if conflict else f"is not JSON: {getattr(error, 'msg', error)}"
        raise UsageError(
            f"{file} {fault}",
            hint="Take one side of the conflict, or record the cassette again." if conflict else "Record it again.",
            file=file,
            line=line,
        ) from error
    if not isinstance(data, dict):
        raise UsageError(f"{file} is not a cassette", hint="Record one with `--record`.", file=file, line=1)
    return cast("dict[str, Any]", data)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _read(data: Mapping[str, Any]) -> Cassette:
    models = {name: ModelFacts(**facts) for name, facts in data["models"].items()}
    last: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    exchanges: list[Recorded] = []
    for row in data["exchanges"]:
        path: str = row["path"]
        agent: str = row.get("agent", path.rpartition("/")[2])
        purpose: Purpose = row.get("purpose", "step")
        before = last.get((row["call"], purpose), [])
        kept: int = row.get("kept", len(before))
        messages = [*before[:kept], *row["new"]]
        outcome = _outcome(row)
        sent = SentRequest.of(data["agents"][row.get("setup", agent)], messages)
        partial: str = row.get("partial", "")
        exchanges.append(
            Recorded(row["call"], path, agent, row["request"], row.get("attempt", 1), purpose, sent, outcome, partial)
        )
        last[row["call"], purpose] = [*messages, *_response_message(outcome)]
    return Cassette(exchanges, models, data.get("made", ""))


def _setup_name(setups: dict[str, Mapping[str, Any]], each: Recorded) -> str:
    """The name of an exchange's setup, which is added if it is new."""
    number, name = 1, each.agent
    while name in setups and setups[name] != each.sent.setup:
        number += 1
        name = f"{each.agent}#{number}"
    setups[name] = each.sent.setup
    return name


def _shared(before: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> int:
    count = 0
    for one, other in zip(before, messages, strict=False):
        if one is not other and canonical_text(one) != canonical_text(other):
            break
        count += 1
    return count


def _response_message(outcome: RequestOutcome) -> list[Mapping[str, Any]]:
    """The response as the next request of its call sends it."""
    return [message_data(outcome.response, str)] if outcome.response is not None else []


def _outcome_data(outcome: RequestOutcome, partial: str) -> dict[str, Any]:
    data = outcome.to_dict()
    usage = {name: value for name, value in data["usage"].items() if value and name not in ("requests", "total_tokens")}
    found: dict[str, Any] = {"usage": usage}
    if data["response"] is not None:
        found["response"] = _without_clock(data["response"])
    else:
        found["failure"] = data["failure"]
    return found | ({"partial": partial} if partial else {})


_CLOCK = frozenset({"timestamp", "run_id", "conversation_id", "provider_url", "provider_response_id", "usage", "kind"})
"""What of a response depends on when and where it came, or is written elsewhere."""


def _without_clock(response: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in response.items() if name not in _CLOCK and value not in (None, {}, "")}
    found["parts"] = [
        {name: value for name, value in part.items() if value not in (None, {}, "")} for part in response["parts"]
    ]
    details = cast("dict[str, Any]", found.get("provider_details") or {})
    details = {name: value for name, value in details.items() if name not in ("timestamp", "created")}
    found.pop("provider_details", None)
    found.pop("state", None)
    return found | ({"provider_details": details} if details else {})


def _outcome(row: Mapping[str, Any]) -> RequestOutcome:
    usage = Usage.from_dict({"requests": 1, **row["usage"]})
    if "response" not in row:
        return RequestOutcome(usage, failure=RequestFailure.from_dict(row["failure"]))
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    response = {"kind": "response", "timestamp": _EPOCH, "usage": tokens, **row["response"]}
    data = {"usage": usage.to_dict(), "response": response, "failure": None}
    return RequestOutcome.from_dict(data)


_EPOCH = "1970-01-01T00:00:00Z"
"""The time of a response that has none."""


def _natural(call: str) -> tuple[tuple[int, str], ...]:
    """A call's id with its numbers as numbers."""
    words: Iterable[str] = re.findall(r"\d+|\D+", call)
    return tuple((int(word), "") if word.isdigit() else (0, word) for word in words)
