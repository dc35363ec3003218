"""The pages about what a run reports while it is running and when it has ended: events, results, statuses."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import llm_do.errors
from llm_do.errors import EXIT_CODES, LlmDoError, Status
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.event_base import EventBase
from llm_do.runtime.record.events.run_events import HANDOFF_ATTRIBUTES
from llm_do.runtime.record.results import (
    ApprovalRecord,
    CallRecord,
    ErrorRecord,
    ExecutionContext,
    RunResult,
    Usage,
    WarningRecord,
)
from llm_do.runtime.record.store.stored_questions import PendingQuestion
from scripts.pages import MissingExampleError, samples
from scripts.pages.docstrings import parts_of
from scripts.pages.markdown import anchor, code, fenced, joined, json_text, table

__all__ = ["EVENT_CLASSES", "STATUSES", "events", "results"]

EVENT_CLASSES: tuple[type[EventBase], ...] = get_args(Event)

EVENTS_HEAD = """\
# Events

What a run reports while it is running. `llm-do run --format events` prints one JSON object per line for each event;
`runtime.stream(...)` yields them and `runtime.on(...)` subscribes to them, as frozen records whose `to_dict()` is that
object. [Events and hooks](../events-and-hooks.md) is the guide. `seq` counts a run's events without gaps, and the
events of a called agent come between its caller's `tool_call` and `tool_result`. Later versions may add fields; a
program should ignore those it doesn't know.

The examples come from real runs. Their ids and times are replaced, and the fields that every event has are left out.
"""

EVENTS_END = """\
## Without a run

`--format events` ends with `run_failed` even if nothing could run because of a wrong option, invalid input, or a
project with errors. Its ids and names are then empty, and `errors` lists every problem as objects like `error`. A
process that is ended by a signal during a run also prints this line, with the run's ids.
"""

RESULTS_HEAD = """\
# Results

How a run ended and what it did: the object that `llm-do run --format json` prints, no matter how the run ends. In
Python it is a [`RunResult`](python-running.md#runresult), whose `to_dict()` returns that object; if the run ended
early, the exception carries it. [Running](../running.md) and [Embedding](../embedding.md) are the guides. Later
versions may add keys; a program should ignore those it doesn't know.

## The object
"""

STATUSES: Mapping[Status, str] = {
    "completed": "The run completed, even if some of its calls were denied.",
    "failed": "The project's code raised, a guard refused, a tool failed under `on_tool_error: raise`, or a person "
    "aborted the run.",
    "invalid": "Nothing ran: an option, a path or the input is invalid (2), or the project has errors (3).",
    "denied": "A call needed approval, and there was no one to ask. The output is what the agent then answered.",
    "suspended": "Reserved.",
    "limited": "A limit was reached: steps, a loop, depth, handoffs, budget, or time.",
    "provider_failed": "The model or its provider failed, or its answers stayed invalid.",
    "interrupted": "Ctrl-C (130) or SIGTERM (143).",
}
"""The description of each status."""

_CODES: Mapping[Status, str] = {"invalid": "2, 3", "interrupted": "130, 143"}

_RECORDS: Mapping[str, type] = {
    "usage": Usage,
    "calls[]": CallRecord,
    "errors[]": ErrorRecord,
    "denials[], approvals[]": ApprovalRecord,
    "warnings[]": WarningRecord,
    "questions[]": PendingQuestion,
    "execution_context": ExecutionContext,
}
"""Objects in a result, with their Python types."""

_VALUES: Mapping[str, str] = {
    "str": "text",
    "str | None": "text or `null`",
    "int": "whole number",
    "int | None": "whole number or `null`",
    "float": "number",
    "float | None": "number or `null`",
    "Any": "data",
    "Status": "[status](#statuses)",
    "Mapping[str, Any]": "object",
    "Mapping[str, Any] | None": "object or `null`",
    "Usage": "[object](#usage)",
    "ErrorRecord | None": "[object](#errors) or `null`",
    "ExecutionContext": "[object](#execution_context)",
    "list[ModelMessage]": "list of messages",
    "tuple[ModelMessage, ...]": "list of messages",
    "list[CallRecord]": "list of [objects](#calls)",
    "list[ErrorRecord]": "list of [objects](#errors)",
    "list[ApprovalRecord]": "list of [objects](#denials-approvals)",
    "list[WarningRecord]": "list of [objects](#warnings)",
    "list[PendingQuestion]": "list of [objects](#questions)",
    "QuestionKind": "`approval`, `ask` or `in_flight`",
    "tuple[str, ...]": "list of texts",
    "Mapping[str, ToolkitState]": "object, name to `context` and `unlocked_states`",
}
"""Python types of fields and their JSON counterparts."""


def events() -> str:
    """The page `events.md`."""
    shown = samples.events()
    common = _fields(EventBase, tuple(field.name for field in dataclasses.fields(EventBase)))
    example = json_text(shown["tool_call"])  # before any streamed text, whose number of pieces varies
    parts = [EVENTS_HEAD, _summary(), "## Fields of every event\n"]
    parts += [table(["field", "value", "meaning"], [["`type`", "text", "The event's type."], *common])]
    parts += ["A complete event:\n", fenced(example, "json")]
    for kind in EVENT_CLASSES:
        if kind.type not in shown:
            raise MissingExampleError(f"no run emits `{kind.type}`: add one to scripts/pages/samples.py")
        parts += _event(kind, shown[kind.type])
    return "\n".join([*parts, EVENTS_END])


def results() -> str:
    """The page `results.md`."""
    shown = samples.results()
    completed, denied = shown["calculator"], shown["approvals"]
    parts = [RESULTS_HEAD, _object(RunResult, completed)]
    parts += [
        "Messages are PydanticAI's, as its `ModelMessagesTypeAdapter` writes and reads them;"
        " `runtime.run(messages=...)` continues\nfrom them.\n"
    ]
    found = {
        "usage": completed["usage"],
        "calls[]": completed["calls"][0],
        "errors[]": ErrorRecord("", "", None, "", 1).to_dict(),
        "denials[], approvals[]": denied["denials"][0],
        "warnings[]": WarningRecord("").to_dict(),
        "questions[]": PendingQuestion("", "", "approval", "", "", "").to_dict(),
        "execution_context": completed["execution_context"],
    }
    for place, kind in _RECORDS.items():
        heading = ", ".join(code(each) for each in place.split(", "))
        parts += [f"### {heading}\n", f"{parts_of(kind).text}\n", _object(kind, found[place])]
    parts += ["## Statuses\n", _statuses(), _after_statuses()]
    parts += ["## Examples\n", "`examples/calculator`, where one agent calls another; messages are left out:\n"]
    parts += [fenced(json_text(completed), "json")]
    parts += ["`examples/approvals`, with no one to ask:\n"]
    parts += [fenced(json_text(denied), "json")]
    return "\n".join(parts)


def _summary() -> str:
    rows = [
        [f"[{code(kind.type)}](#{anchor(kind.type)})", parts_of(kind).text.partition("\n\n")[0]]
        for kind in EVENT_CLASSES
    ]
    return table(["type", "when"], rows)


def _event(kind: type[EventBase], data: Mapping[str, Any]) -> Iterator[str]:
    common = {field.name for field in dataclasses.fields(EventBase)}
    own = {name: value for name, value in data.items() if name not in common}
    yield f"## {code(kind.type)}\n"
    yield f"{parts_of(kind).text}\n"
    yield table(["field", "value", "meaning"], _fields(kind, tuple(name for name in own if name != "type")))
    yield fenced(json_text(own), "json")


def _fields(kind: type, names: tuple[str, ...]) -> list[list[str]]:
    """The rows of a record's fields, by their JSON names."""
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    meanings = parts_of(kind).arguments
    rows: list[list[str]] = []
    for name in names:
        attribute = HANDOFF_ATTRIBUTES.get(name, name)
        attribute = attribute if attribute in types else name
        rows.append([code(name), _VALUES[types[attribute]], _in_json(meanings[attribute])])
    return rows


def _in_json(text: str) -> str:
    return re.sub(r"\bNone\b", "`null`", text)


def _object(kind: type, data: Mapping[str, Any]) -> str:
    """The table of a record's JSON keys; a key that is not a field is a property."""
    own = {field.name for field in dataclasses.fields(kind)}
    rows: list[list[str]] = []
    for name in data:
        if name in own:
            rows += _fields(kind, (name,))
        else:
            rows.append([code(name), "whole number", parts_of(getattr(kind, name)).text])
    return table(["key", "value", "meaning"], rows)


def _statuses() -> str:
    raised: dict[Status, list[str]] = {}
    public = {name: getattr(llm_do.errors, name) for name in llm_do.errors.__all__}
    classes = {kind for kind in public.values() if isinstance(kind, type)}
    for name, kind in public.items():
        # Subclasses that aren't public don't matter: whether they exist depends on what has been imported.
        if isinstance(kind, type) and issubclass(kind, LlmDoError) and not set(kind.__subclasses__()) & classes:
            raised.setdefault(kind.status, []).append(f"[{code(name)}](python-errors.md#{anchor(name)})")
    rows = [
        [code(status), _CODES.get(status, str(number)), STATUSES[status], ", ".join(raised.get(status, ()))]
        for status, number in EXIT_CODES.items()
    ]
    return table(["status", "exit code", "when", "errors"], rows)


def _after_statuses() -> str:
    codes = joined([str(number) for number in sorted({*EXIT_CODES.values(), 3, 143})], "and")
    return (
        f"The exit code is one of {codes}, or 141 if the reader of the output has gone. A\n"
        "`PermissionDeniedError` ends a run as `denied` if there was no one to ask.\n"
    )
