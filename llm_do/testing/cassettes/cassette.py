"""A cassette: recorded requests and answers, and the JSON file that they are kept in.

The file is made to be read in a review: each agent's instructions, tools and output schema stand once, an exchange has
only what is new since its call's last one, and nothing in it depends on a clock or a machine. Keys are not in it; they
are computed when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.formats.server_listings import ListedTool
from llm_do.runtime.record.canonical_messages import canonical_text, message_data
from llm_do.runtime.record.exchanges import ModelFacts, Purpose
from llm_do.runtime.record.request_outcome import RequestOutcome
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.sent_request import SentRequest
from llm_do.testing.cassettes.outcome_data import outcome_data
from llm_do.testing.cassettes.recorded_tools import RecordedTool, natural
from llm_do.testing.cassettes.text_lines import with_lines

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
    def what(self) -> str:
        """What was recorded, in a few words."""
        return f"request {self.number} of {self.path}"

    @property
    def order(self) -> tuple[object, ...]:
        """Where it stands in the file: by call, as in a tree, not by when it happened."""
        return natural(self.call), self.number, self.purpose, self.attempt


@frozen
class Cassette:
    """Recorded exchanges.

    Args:
        exchanges: The exchanges, in the order of the tree of calls.
        models: What is known of each model, by the name that it was requested by.
        made: When and by which version it was recorded.
        tools: The recorded calls of tools, in the same order.
        servers: The tools of servers, by the names of the servers.
    """

    exchanges: Sequence[Recorded] = ()
    models: Mapping[str, ModelFacts] = field(default_factory=dict[str, ModelFacts])
    made: str = ""
    tools: Sequence[RecordedTool] = ()
    servers: Mapping[str, Sequence[ListedTool]] = field(default_factory=dict[str, "Sequence[ListedTool]"])

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
            row |= outcome_data(each.outcome) | ({"partial": each.partial} if each.partial else {})
            last[each.call, each.purpose] = [*each.sent.messages, *_response_message(each.outcome)]
            rows.append(row)
        models = {
            name: {"system": facts.system, "name": facts.name, "profile": dict(facts.profile)}
            for name, facts in sorted(self.models.items())
        }
        data: dict[str, Any] = {"models": models, "agents": setups, "exchanges": rows}
        if self.servers:
            data["servers"] = {name: [_listed(tool) for tool in tools] for name, tools in sorted(self.servers.items())}
        if self.tools:
            data["tools"] = [each.to_dict() for each in sorted(self.tools, key=lambda each: each.order)]
        return (
            json.dumps({"cassette": VERSION, "made": self.made, **with_lines(data)}, indent=1, ensure_ascii=False)
            + "\n"
        )


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
    return [message_data(outcome.response, str, str)] if outcome.response is not None else []


def _listed(tool: ListedTool) -> dict[str, Any]:
    """What a model sees of a server's tool."""
    return {"name": tool.name, "description": tool.description, "schema": tool.schema}
