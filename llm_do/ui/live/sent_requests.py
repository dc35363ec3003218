"""A run's requests for people and for programs: what was sent and what came back, first what is new in each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from pydantic_ai.messages import BaseToolCallPart

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.canonical_messages import canonical_text, message_data
from llm_do.runtime.record.events.model_events import HookEvent
from llm_do.runtime.record.exchanges import Exchange
from llm_do.runtime.record.sent_request import SETUP
from llm_do.text.sanitizer import sanitize
from llm_do.text.text_diff import text_diff
from llm_do.text.words import with_count
from llm_do.ui.live.call_tree import seconds_text
from llm_do.ui.live.event_lines import usage_text
from llm_do.ui.terminal.screen import paint

__all__ = ["SentRequests", "answer_lines"]

_INDENT = "  "


@frozen
class _Numbered:
    """An exchange with its number in the run, and the request of the same call before it.

    Args:
        number: Its number, in the order in which requests were sent.
        exchange: The exchange.
        previous: The call's previous request.
        kept: How many of its messages the previous request had, its answer included.
    """

    number: int
    exchange: Exchange
    previous: _Numbered | None
    kept: int

    @property
    def title(self) -> str:
        """Where it was made."""
        place = self.exchange.place
        title = f"request {place.number} of {place.path}"
        if place.purpose != "step":
            title = f"the {place.purpose} before {title}"
        return f"{title}, attempt {place.attempt}" if place.attempt > 1 else title


class SentRequests:
    """The requests of one run.

    Args:
        exchanges: Its exchanges.
        events: Its events, as data; those of hooks say what was replaced.
        color: Use ANSI colours.
    """

    def __init__(
        self, exchanges: Sequence[Exchange], events: Iterable[Mapping[str, Any]] = (), *, color: bool = False
    ) -> None:
        self._color = color
        self._hooks: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
        for event in events:
            if event.get("type") == HookEvent.type:
                self._hooks.setdefault((event["call_id"], event["request"]), []).append(event)
        self._all: list[_Numbered] = []
        last: dict[tuple[str, str], _Numbered] = {}
        for number, exchange in enumerate(sorted(exchanges, key=lambda each: each.begun), 1):
            key = (exchange.place.call_id, exchange.place.purpose)
            previous = last.get(key)
            kept = _kept(previous.exchange, exchange) if previous is not None else 0
            last[key] = _Numbered(number, exchange, previous, kept)
            self._all.append(last[key])

    def __len__(self) -> int:
        return len(self._all)

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges in the order in which they were sent."""
        return [each.exchange for each in self._all]

    def lines(self) -> list[str]:
        """Every request, with what is new in it, and what came back."""
        found: list[str] = []
        for each in self._all:
            sent = [*self._head(each), *self._new(each), *self._replaced(each, response=False)]
            found += [*([""] if found else []), *sent, *self._answer(each), *self._replaced(each, response=True)]
        return found

    def lines_of(self, number: int) -> list[str]:
        """One request: what is new in it, then all that was sent, then what came back."""
        each = self._all[number - 1]
        came = [*self._answer(each), *self._replaced(each, response=True)]
        before = self._replaced(each, response=False)
        if each.previous is None:
            return [*self._head(each), *self._complete(each), *before, *came]
        sent = ["", *self._label("all that was sent:"), *self._complete(each), *before, ""]
        return [*self._head(each), *self._new(each), *sent, *came]

    def to_data(self) -> list[dict[str, Any]]:
        """Every request as JSON data: of messages those that are new, of the setup what has changed."""
        return [self._data(each) for each in self._all]

    def data_of(self, number: int) -> dict[str, Any]:
        """One request as JSON data, with all that was sent."""
        each = self._all[number - 1]
        sent = {"setup": dict(each.exchange.sent.setup), "messages": list(each.exchange.sent.messages)}
        return {**self._data(each), "sent": sent}

    # -- text

    def _head(self, each: _Numbered) -> list[str]:
        exchange = each.exchange
        used = exchange.outcome.usage
        facts = [exchange.model, seconds_text(exchange.ended - exchange.begun)]
        if exchange.first_token is not None:
            facts.append(f"first token after {seconds_text(exchange.first_token - exchange.begun)}")
        facts += usage_text(used.total_tokens, used.cost_usd)
        title = paint(sanitize(f"{each.number}. {each.title}"), "name", color=self._color)
        return [f"{title}  {paint(sanitize(', '.join(facts)), 'quiet', color=self._color)}"]

    def _label(self, text: str) -> list[str]:
        return [paint(sanitize(text), "quiet", color=self._color)]

    def _new(self, each: _Numbered) -> Iterator[str]:
        """What the call's previous request didn't have."""
        exchange, previous = each.exchange, each.previous
        if previous is None:
            yield from self._complete(each)
            return
        before = previous.exchange.sent
        yield from self._changed_setup(before.setup, exchange.sent.setup)
        if each.kept < len(before.messages):
            yield from self._label(
                f"without {_messages(len(before.messages) - each.kept)} of request {previous.number}"
            )
        if not exchange.sent.messages[each.kept :] and exchange.sent.setup == before.setup:
            yield from self._label(f"the same as request {previous.number}")
        for message in exchange.sent.messages[each.kept :]:
            yield from self._message(message)

    def _changed_setup(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
        for name in SETUP:
            if before[name] != after[name]:
                yield from self._label(f"{name} changed:")
                yield from (
                    f"{_INDENT}{sanitize(line)}" for line in text_diff(before[name], after[name], "before", "now")
                )

    def _complete(self, each: _Numbered) -> Iterator[str]:
        setup = each.exchange.sent.setup
        if setup["instructions"]:
            yield from self._label("instructions")
            yield from _text(setup["instructions"])
        for tool in setup["tools"]:
            yield from self._label(f"tool {tool['name']}" if "name" in tool else "tool of the provider")
            yield from _value({name: value for name, value in tool.items() if name != "name"})
        for name in ("output", "settings"):
            if setup[name]:
                yield from self._label(name)
                yield from _value(setup[name])
        for message in each.exchange.sent.messages:
            yield from self._message(message)
        if each.exchange.max_tokens is not None:
            yield from self._label(f"max_tokens {each.exchange.max_tokens}, since the budget allowed no more")

    def _message(self, message: Mapping[str, Any]) -> Iterator[str]:
        for part in message["parts"]:
            label, content = _part(part)
            yield from self._label(label)
            yield from _value(content)

    def _answer(self, each: _Numbered) -> Iterator[str]:
        outcome = each.exchange.outcome
        if outcome.response is not None:
            yield from self._label("answer")
            for part in _response(each.exchange)["parts"]:
                label, content = _part(part)
                yield from (f"{_INDENT}{line}" for line in [*self._label(label), *_value(content)])
            return
        if each.exchange.partial:
            yield from self._label("answer, which broke off")
            yield from _text(each.exchange.partial)
        yield paint(sanitize(f"failed: {outcome.failure}"), "bad", color=self._color)

    def _hooks_of(self, each: _Numbered) -> list[Mapping[str, Any]]:
        """What hooks replaced of a request that an agent made; they aren't called for compaction's."""
        place = each.exchange.place
        return self._hooks.get((place.call_id, place.number), []) if place.purpose == "step" else []

    def _replaced(self, each: _Numbered, *, response: bool) -> Iterator[str]:
        """What hooks replaced: of what was sent, or, where one came, of the response."""
        if response and each.exchange.outcome.response is None:
            return
        for event in self._hooks_of(each):
            if (event["replaced"] == "response") is not response:
                continue
            yield from self._label(f"the hook {event['hook']} replaced the {event['replaced']}{':' * response}")
            if response:
                for part in event["replacement"]["parts"]:
                    label, content = _part(part)
                    yield from (f"{_INDENT}{line}" for line in [*self._label(label), *_value(content)])

    # -- data

    def _data(self, each: _Numbered) -> dict[str, Any]:
        exchange, previous = each.exchange, each.previous
        place, outcome = exchange.place, exchange.outcome.to_dict()
        setup = exchange.sent.setup
        known: Mapping[str, Any] = previous.exchange.sent.setup if previous is not None else {}
        return {
            "number": each.number,
            "call_id": place.call_id,
            "path": place.path,
            "agent": place.agent,
            "request": place.number,
            "attempt": place.attempt,
            "purpose": place.purpose,
            "model": exchange.model,
            "begun": _moment(exchange.begun),
            "first_token": _moment(exchange.first_token),
            "ended": _moment(exchange.ended),
            "previous": previous.number if previous is not None else None,
            "kept": each.kept,
            "new": {
                "setup": {name: value for name, value in setup.items() if previous is None or known[name] != value},
                "messages": list(exchange.sent.messages[each.kept :]),
            },
            "max_tokens": exchange.max_tokens,
            "response": _response(exchange) if exchange.outcome.response is not None else None,
            "failure": outcome["failure"],
            "partial": exchange.partial or None,
            "usage": outcome["usage"],
            "hooks": [
                {name: event[name] for name in ("hook", "replaced", "replacement")} for event in self._hooks_of(each)
            ],
        }


def _kept(previous: Exchange, exchange: Exchange) -> int:
    """How many messages of a request the call's previous one had, its answer included."""
    count = 0
    for one, other in zip(previous.sent.digests, exchange.sent.digests, strict=False):
        if one != other:
            return count
        count += 1
    following = exchange.sent.messages[count : count + 1]
    if count < len(previous.sent.messages) or not following or previous.outcome.response is None:
        return count
    return count + (_unsigned(following[0]) == _unsigned(_response(previous)))


def _unsigned(message: Mapping[str, Any]) -> str:
    """A message as text, without a provider's signatures."""
    parts = [{name: value for name, value in part.items() if name != "signature"} for part in message["parts"]]
    return canonical_text(parts)


def _response(exchange: Exchange) -> dict[str, Any]:
    """The response as a later request sends it."""
    response = exchange.outcome.response
    assert response is not None
    calls = [part.tool_call_id for part in response.parts if isinstance(part, BaseToolCallPart)]
    names = dict(zip(calls, exchange.tool_calls, strict=False))
    return message_data(response, lambda id: names.get(id, id), str)


def _part(part: Mapping[str, Any]) -> tuple[str, Any]:
    """What a part is called, and its content."""
    call = f" ({part['tool_call_id']})" if "tool_call_id" in part else ""
    match part.get("part_kind"):
        case "user-prompt":
            return "user", part.get("content", "")
        case "system-prompt":
            return "system", part.get("content", "")
        case "text":
            return "text", part.get("content", "")
        case "thinking":
            return "thinking", part.get("content", "")
        case "tool-call":
            return f"calls {part['tool_name']}{call}", part.get("args", {})
        case "tool-return":
            return f"result of {part['tool_name']}{call}", part.get("content", "")
        case "retry-prompt":
            return f"retry{call}", part.get("content", "")
        case kind:
            return str(kind), {name: value for name, value in part.items() if name != "part_kind"}


def _value(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from _text(value)
    elif isinstance(value, list) and any(isinstance(each, str) for each in cast("list[object]", value)):
        for each in cast("list[object]", value):  # a prompt with attachments
            yield from _value(each)
    else:
        yield from _text(json.dumps(value, ensure_ascii=False))


def _text(text: str) -> Iterator[str]:
    for line in text.splitlines() or [""]:
        yield f"{_INDENT}{sanitize(line)}".rstrip()


def answer_lines(exchange: Exchange) -> list[str]:
    """What came back, as lines that are equal if two answers are."""
    outcome = exchange.outcome
    if outcome.response is None:
        return [*exchange.partial.splitlines(), f"failed: {outcome.failure}"]
    lines: list[str] = []
    for part in _response(exchange)["parts"]:
        label, content = _part({name: value for name, value in part.items() if name != "signature"})
        lines += [label, *_value(content)]
    return lines


def _messages(count: int) -> str:
    return with_count(count, "message")


def _moment(seconds: float | None) -> str | None:
    """A moment as an ISO time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds is not None else None
