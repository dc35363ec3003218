"""The first signal ends a run cleanly within two seconds, a second one immediately; the runs are concurrent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.cli.process.signals import PATIENCE
from tests.cli.cli_processes import write_project
from tests.cli.cli_terminal import start_process

MODEL = "- {text: late, delay: 60}"
TOOL = "- tools: [{name: NAME, args: {ARGS}}]\n- text: never"


def tool(name: str, args: str = "") -> str:
    return TOOL.replace("NAME", name).replace("ARGS", args)


# name: (answers, options, signals, file that says the run can be signalled, exit code)
CASES: dict[str, tuple[str, list[str], list[int], str, int]] = {
    "model": (MODEL, [], [signal.SIGINT], "", 130),
    "model, terminated": (MODEL, [], [signal.SIGTERM], "", 143),
    "tool": (tool("sleep", "seconds: 60"), [], [signal.SIGINT], "begun", 130),
    "tool, terminated": (tool("sleep", "seconds: 60"), ["--output", "events"], [signal.SIGTERM], "begun", 143),
    "blocked tool": (tool("block", "seconds: 60"), [], [signal.SIGTERM], "begun", 143),
    "blocked tool, twice": (tool("block", "seconds: 60"), [], [signal.SIGINT, signal.SIGINT], "begun", 130),
    "blocked tool, twice, events": (
        tool("block", "seconds: 60"),
        ["--output", "events"],
        [signal.SIGINT, signal.SIGINT],
        "begun",
        130,
    ),
    "child process": (tool("spawn"), [], [signal.SIGTERM], "begun", 143),
}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, float, Path]]:
    runs: dict[str, tuple[subprocess.Popen[str], Path]] = {}
    for number, (name, (answers, options, *_)) in enumerate(CASES.items()):
        root = write_project(tmp_path_factory.mktemp("signals") / str(number), answers)
        runs[name] = (
            start_process(["run", "x", "--approve-all", "-v", *(options or ["--output", "json"])], root),
            root,
        )
    return {name: _send_signals(process, root, *CASES[name][2:4]) for name, (process, root) in runs.items()}


def _send_signals(
    process: subprocess.Popen[str], root: Path, signals: list[int], mark: str
) -> tuple[int, str, float, Path]:
    assert process.stderr is not None
    assert process.stderr.readline() == "main: called with x\n"
    deadline = time.monotonic() + 30
    while mark and not (root / mark).exists() and time.monotonic() < deadline:
        os.sched_yield()
    since = time.monotonic()
    for number in signals:
        process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    return process.returncode, out, time.monotonic() - since, root


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_a_signal_ends_the_run_with_its_exit_code_within_two_seconds(
    ended: dict[str, tuple[int, str, float, Path]], name: str
) -> None:
    code, _, seconds, _ = ended[name]

    assert code == CASES[name][4]
    assert PATIENCE <= 2
    assert seconds < 20  # the tools sleep 60; how long the rest takes depends on the machine


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name][1]])
def test_an_interrupted_run_prints_one_json_object(ended: dict[str, tuple[int, str, float, Path]], name: str) -> None:
    assert json.loads(ended[name][1])["status"] == "interrupted"


def test_events_report_the_interruption(ended: dict[str, tuple[int, str, float, Path]]) -> None:
    events = [json.loads(line) for line in ended["tool, terminated"][1].splitlines()]

    assert (events[-1]["type"], events[-1]["status"]) == ("run_failed", "interrupted")
    assert [event["status"] for event in events if event["type"] == "tool_result"] == ["cancelled"]


def test_a_killed_run_writes_its_own_last_event(ended: dict[str, tuple[int, str, float, Path]]) -> None:
    events = [json.loads(line) for line in ended["blocked tool, twice, events"][1].splitlines()]

    assert [event["seq"] for event in events] == list(range(len(events)))
    assert (events[-1]["type"], events[-1]["status"]) == ("run_failed", "interrupted")
    assert {event["run_id"] for event in events} == {events[0]["run_id"]}


def test_tools_clean_up_and_child_processes_are_killed(ended: dict[str, tuple[int, str, float, Path]]) -> None:
    assert (ended["tool"][3] / "cleaned").exists()
    child = int((ended["child process"][3] / "child").read_text())
    assert not _alive(child)


def _alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


@pytest.mark.slow
def test_a_signal_before_the_run_starts_prints_no_error(project: Callable[..., Path]) -> None:
    root = project()
    process = start_process(["run", "--output", "json"], root, stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("waiting for input on stdin")

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, err) == (130, "")
    assert json.loads(out)["status"] == "interrupted"
