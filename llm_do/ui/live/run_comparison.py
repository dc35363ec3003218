"""Two recorded runs side by side: where they diverge, and how each ended."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.run_events import RunFailedEvent, RunFinishedEvent
from llm_do.runtime.record.events.tool_events import ToolCallEvent
from llm_do.runtime.record.exchanges import Exchange
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.runtime.request.request_differences import RequestDifference, request_differences
from llm_do.text.generated_ids import short_run_id
from llm_do.text.text_diff import text_diff
from llm_do.text.words import with_count
from llm_do.ui.live.call_tree import seconds_text
from llm_do.ui.live.sent_requests import answer_lines

__all__ = ["ComparedRun", "Parting", "RunComparison"]

Step = tuple[int, str]
"""The number of a request in its call, and who made it."""


@frozen
class ComparedRun:
    """One of the two runs.

    Args:
        record: The run.
        exchanges: Its exchanges; empty if they aren't kept.
        events: Its events.
    """

    record: RunRecord
    exchanges: Sequence[Exchange]
    events: Sequence[Event]

    @property
    def name(self) -> str:
        """The beginning of its id."""
        return short_run_id(self.record.id)

    @property
    def usage(self) -> Usage:
        """What it has used."""
        return self.record.usage or Usage()

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return self.record.finished - self.record.started if self.record.finished is not None else None

    @property
    def output(self) -> Any:
        """What it returned; the message of the error that ended it."""
        for event in reversed(self.events):
            if isinstance(event, RunFinishedEvent):
                return event.output
            if isinstance(event, RunFailedEvent):
                return event.error.get("message")
        return None

    @property
    def tools(self) -> Counter[str]:
        """How often each tool was called."""
        return Counter(event.tool_name for event in self.events if isinstance(event, ToolCallEvent))

    @property
    def paths(self) -> Mapping[str, Usage]:
        """What the calls of each path have used themselves."""
        found: dict[str, Usage] = {}
        for each in self.exchanges:
            found[each.place.path] = found.get(each.place.path, Usage()) + each.outcome.usage
        return found


@frozen
class Parting:
    """Where two runs diverge.

    Args:
        where: The request, such as `request 2 of lead`, or the answer to it.
        what: What happened to it, such as `instructions changed`.
        differences: What differs in what was sent; empty if it was the same.
        block: The first difference as a diff.
    """

    where: str
    what: str
    differences: Sequence[RequestDifference] = ()
    block: Sequence[str] = ()


class RunComparison:
    """Two runs, compared by call path and step.

    Args:
        first: The run that is compared.
        second: The run that it is compared with.
    """

    def __init__(self, first: ComparedRun, second: ComparedRun) -> None:
        self.first = first
        self.second = second
        self.parting = _parting(first, second)

    @property
    def same_output(self) -> bool:
        """Whether both returned the same."""
        return self.first.output == self.second.output

    def output_diff(self) -> list[str]:
        """The outputs as a diff."""
        return text_diff(self.first.output, self.second.output, self.first.name, self.second.name)

    def rows(self) -> list[list[str]]:
        """What each run came to, a row each with a name and the values of both."""
        runs = (self.first, self.second)
        tools = [each.tools for each in runs]
        rows = [
            ["", *(each.name for each in runs)],
            ["status", *(each.record.status for each in runs)],
            ["output", *(["the same"] * 2 if self.same_output else ["differs"] * 2)],
            ["requests", *(f"{each.usage.requests:,}" for each in runs)],
            ["tokens", *(f"{each.usage.total_tokens:,}" for each in runs)],
            ["cost", *(f"${each.usage.cost_usd:.4f}" if each.usage.cost_usd is not None else "-" for each in runs)],
            ["time", *(seconds_text(each.seconds) if each.seconds is not None else "-" for each in runs)],
        ]
        rows += [[f"calls of {name}", *(f"{each[name]:,}" for each in tools)] for name in {**tools[0], **tools[1]}]
        paths = [each.paths for each in runs]
        if len({*paths[0], *paths[1]}) > 1:
            for path in sorted({*paths[0], *paths[1]}):
                rows.append([f"in {path}", *(_used(each.get(path)) for each in paths)])
        return rows

    def to_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        parting = self.parting
        return {
            "runs": [_data(self.first), _data(self.second)],
            "same_output": self.same_output,
            "parting": None
            if parting is None
            else {
                "where": parting.where,
                "what": parting.what,
                "differences": [
                    {"part": each.part, "name": each.name, "values": [each.before, each.after]}
                    for each in parting.differences
                ],
                "diff": list(parting.block),
            },
        }


def _data(run: ComparedRun) -> dict[str, Any]:
    return {
        "run_id": run.record.id,
        "status": run.record.status,
        "output": run.output,
        "usage": run.usage.to_dict(),
        "seconds": run.seconds,
        "tools": dict(run.tools),
        "calls": {path: usage.to_dict() for path, usage in run.paths.items()},
    }


def _used(usage: Usage | None) -> str:
    if usage is None:
        return "-"
    cost = f", ${usage.cost_usd:.4f}" if usage.cost_usd is not None else ""
    return f"{with_count(usage.requests, 'request')}, {with_count(usage.total_tokens, 'token')}{cost}"


# -- where they diverge


def _parting(first: ComparedRun, second: ComparedRun) -> Parting | None:
    """The first difference, in the order in which things happened."""
    found: list[tuple[int, Parting]] = []
    ours, others = _moments(first), _moments(second)
    for one, other in _pairs(first, second):
        for step in {**one, **other}:
            mine, theirs = one.get(step), other.get(step)
            if mine is not None and theirs is not None:
                moments = ours[id(mine)]
                found += zip(moments, _differences(mine, theirs, first.name, second.name), strict=True)
            elif mine is not None:
                found.append((ours[id(mine)][0], Parting(_name(mine), f"only {first.name} made it")))
            elif theirs is not None:
                found.append((others[id(theirs)][0], Parting(_name(theirs), f"only {second.name} made it")))
    parted = [(moment, parting) for moment, parting in found if parting.what]
    return min(parted, key=lambda each: each[0])[1] if parted else None


def _moments(run: ComparedRun) -> Mapping[int, tuple[int, int]]:
    """When each of a run's exchanges began and ended, as positions in the order of all that happened."""
    times = sorted(moment for each in run.exchanges for moment in (each.begun, each.ended))
    return {id(each): (bisect_left(times, each.begun), bisect_left(times, each.ended)) for each in run.exchanges}


def _pairs(
    first: ComparedRun, second: ComparedRun
) -> Iterator[tuple[Mapping[Step, Exchange], Mapping[Step, Exchange]]]:
    """The calls of both runs by twos: of a path those that began with the same request, then the others in order."""
    ours, theirs = _calls(first), _calls(second)
    for path in {**ours, **theirs}:
        mine, others = list(ours.get(path, ())), list(theirs.get(path, ()))
        rest: list[Mapping[Step, Exchange]] = []
        for call in mine:
            fitting = next((each for each in others if _first_key(each) == _first_key(call)), None)
            if fitting is None:
                rest.append(call)
            else:
                others.remove(fitting)
                yield call, fitting
        for number in range(max(len(rest), len(others))):
            yield (rest[number] if number < len(rest) else {}), (others[number] if number < len(others) else {})


def _calls(run: ComparedRun) -> Mapping[str, Sequence[Mapping[Step, Exchange]]]:
    """A run's calls by path, each with its steps; of several attempts the last counts."""
    calls: dict[str, dict[Step, Exchange]] = {}
    for each in sorted(run.exchanges, key=lambda each: each.begun):
        calls.setdefault(each.place.call_id, {})[each.place.number, each.place.purpose] = each
    paths: dict[str, list[Mapping[Step, Exchange]]] = {}
    for call in calls.values():
        paths.setdefault(next(iter(call.values())).place.path, []).append(call)
    return paths


def _first_key(call: Mapping[Step, Exchange]) -> str:
    return next(iter(call.values())).sent.key


def _differences(mine: Exchange, theirs: Exchange, first: str, second: str) -> tuple[Parting, Parting]:
    """How a step of one run differs from that of the other: in what was sent, and in the answer."""
    sent = request_differences(mine.sent, theirs.sent) if mine.sent.key != theirs.sent.key else []
    block = text_diff(sent[0].before, sent[0].after, first, second) if sent else []
    answered = text_diff("\n".join(answer_lines(mine)), "\n".join(answer_lines(theirs)), first, second)
    return (
        Parting(_name(mine), ", ".join(map(_words, sent)), sent, block),
        Parting(f"the answer to {_name(mine)}", "changed" if answered else "", (), answered),
    )


def _name(exchange: Exchange) -> str:
    place = exchange.place
    name = f"request {place.number} of {place.path}"
    return name if place.purpose == "step" else f"the {place.purpose} before {name}"


def _words(difference: RequestDifference) -> str:
    """What happened to a part of a request."""
    match difference.part:
        case "tools":
            return "order of tools changed"
        case "output":
            return "output schema changed"
        case "prompt":
            return "a later prompt changed"
        case "result":
            return f"result of {difference.name} changed"
        case "length":
            return f"conversation {'shorter' if difference.after is None else 'longer'}"
        case "tool" | "setting" as part if difference.before is None or difference.after is None:
            return f"{part} {difference.name} {'added' if difference.before is None else 'removed'}"
        case part:
            return f"{part} {difference.name} changed".replace("  ", " ")
