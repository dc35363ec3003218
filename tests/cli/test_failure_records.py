"""What `--output events` prints when nothing ran, or when a run was killed."""

from __future__ import annotations

from dataclasses import fields

import pytest

from llm_do import LinkError, UsageError
from llm_do.cli.actions.failure import event_record
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.runtime.record.events.event_base import EventBase
from llm_do.runtime.record.events.model_events import TextDoneEvent
from llm_do.runtime.record.events.run_events import RunStartedEvent
from tests.cli.cli_processes import run

COMMON = {"type", *(field.name for field in fields(EventBase))}


def make_event(kind: type[EventBase] = RunStartedEvent, seq: int = 0, **data: object) -> EventBase:
    place = {"path": "main/helper", "agent_name": "helper", "depth": 2, "call_id": "r.1"} if seq else {}
    base = {"run_id": "r", "call_id": "r", "parent_call_id": None, "agent_name": "main", "path": "main", "depth": 0}
    return kind(seq=seq, time=1.0, **{**base, **place}, **data)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (UsageError("no such option"), "invalid", "UsageError"),
        (
            LinkError("no", [Diagnostic("LD101", "error", "is wrong", Location("a.agent", 3, 1))]),
            "invalid",
            "LinkError",
        ),
        (KeyboardInterrupt(), "interrupted", "RunInterruptedError"),
    ],
    ids=["usage", "link", "interrupt"],
)
def test_the_failure_record_has_every_field_of_an_event(error: BaseException, status: str, kind: str) -> None:
    record = event_record(error)

    assert set(record) == COMMON | {"status", "error", "errors"}
    assert (record["type"], record["seq"], record["run_id"], record["depth"]) == ("run_failed", 0, "", 0)
    assert record["time"] > 1.7e9
    assert (record["status"], record["error"]["type"]) == (status, kind)
    assert record["errors"] == [record["error"]]


def test_the_failure_record_of_a_killed_run_continues_its_events() -> None:
    started = make_event(entry="main", input={})
    record = event_record(KeyboardInterrupt(), [started, make_event(TextDoneEvent, 7, text="so far")])

    assert (record["seq"], record["run_id"], record["call_id"]) == (8, "r", "r")
    assert (record["agent_name"], record["path"], record["depth"]) == ("main", "main", 0)


def test_a_usage_error_prints_a_failure_record() -> None:
    import json

    ended = run("run", "--output", "events", "--nonsense")

    (line,) = ended.out.splitlines()
    assert ended.code == 2
    assert set(json.loads(line)) >= COMMON
