"""Recordings that someone else has made or changed: they are refused with a reason, or replayed as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do import ToolError, UsageError
from llm_do.testing.cassettes.files import check_target, player_of, read_cassette, recorder_for
from llm_do.testing.cassettes.recorder import write_cassette
from tests.support.runs import agent, carry_out, project_of, runtime_of
from tests.support.scripted import call, script


def note(path: str) -> str:
    """Read a note."""
    if path == "missing":
        raise ToolError("there is none")
    return "a note"


def notes_project() -> Any:
    answers = script(call("note", {"path": "a"}, "n1"), call("note", {"path": "missing"}, "n2"), "Done.")
    return [agent("main", answers, tools=[note])]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cassette") / "c.json"
    recorder = recorder_for(project_of(notes_project()), tools=["note"])
    assert carry_out(runtime_of(notes_project(), options={"transport": recorder})).status == "completed"
    write_cassette(path, recorder.cassette())
    return path.read_text(encoding="utf-8")


def nested(levels: int) -> Any:
    found: Any = []
    for _ in range(levels):
        found = [found]
    return found


def put(value: Any, *keys: str | int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


ARGS = ("exchanges", 0, "response", "parts", 0, "args", "path")
INPUT_TOKENS = ("exchanges", 0, "usage", "input_tokens")

REFUSED = {
    "arguments of 300 levels": (put(nested(300), *ARGS), "nest deeper than 200"),
    "a message of 900 levels": (put(nested(900), "exchanges", 0, "new", 0, "parts", 0, "content"), "deeper than 200"),
    "a result of 300 levels": (put(nested(300), "tools", 0, "returned"), "nest deeper than 200"),
    "more tokens than a store can hold": (put(10**400, *INPUT_TOKENS), "`input_tokens` has to be at most"),
    "an infinite cost": (put(float("inf"), "exchanges", 0, "usage", "cost_usd"), "`cost_usd` has to be at most"),
    "a cost that is no number": (put(float("nan"), "exchanges", 0, "usage", "cost_usd"), "has to be a number, not NaN"),
    "an error's class with a NUL": (put("\0", "tools", 1, "failed", "type"), "`type` has to be a name"),
    "an error's class with escapes": (put("\x1b[31m", "tools", 1, "failed", "type"), "`type` has to be a name"),
    "an error's class without a name": (put("", "tools", 1, "failed", "type"), "`type` has to be a name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_recorder_writes_is_refused(tmp_path: Path, recorded: str, name: str) -> None:
    change, reason = REFUSED[name]
    data = json.loads(recorded)
    change(data)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data), encoding="utf-8")

    with pytest.raises(UsageError, match=reason):
        read_cassette(path)


@pytest.mark.parametrize("call_id", ["²", "٣", "9" * 5000, "1.²", ""])
def test_calls_may_have_any_id(tmp_path: Path, recorded: str, call_id: str) -> None:
    """Ids are sorted by the numbers in them, if there are any."""
    data = json.loads(recorded)
    for each in (*data["exchanges"], *data["tools"]):
        each["call"] = call_id
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data), encoding="utf-8")

    player = player_of(path, project_of(notes_project()), again="again", tools=["note"])
    result = carry_out(runtime_of(notes_project(), options={"transport": player}))

    assert (result.status, result.output) == ("completed", "Done.")
    assert read_cassette(path).to_text()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_recording_is_an_ordinary_file_of_bounded_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "device.json").symlink_to("/dev/zero")
    with (tmp_path / "sparse.json").open("wb") as file:
        file.truncate(2**40)

    for name, reason in {"pipe": "ordinary", "device": "ordinary", "sparse": "larger than 64 MiB"}.items():
        with pytest.raises(UsageError, match=reason):
            read_cassette(tmp_path / f"{name}.json")
        with pytest.raises(UsageError, match="can't be written"):
            check_target(tmp_path / f"{name}.json")
