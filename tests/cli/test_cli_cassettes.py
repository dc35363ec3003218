"""`--record` and `--replay`: a run without a model, and what the command line says when a recording no longer fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked

AGENT = "---\nname: main\nmodel: script:answers.yaml\n---\nAnswer briefly.\n"
MANIFEST = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}
ANSWERS = "- text: 'You said {input}'\n- text: 'You said {input}'\n"


@pytest.fixture
def desk(project: Callable[..., Path]) -> Path:
    root = project(agent=AGENT, manifest=json.dumps(MANIFEST), **{"answers.yaml": ANSWERS})
    recorded = run_forked("run", ".", "Hello", "--record", "c.json", cwd=root)
    assert recorded.code == 0, recorded.err
    assert "recorded 1 request in c.json" in recorded.err
    return root


def test_a_replay_prints_what_was_recorded_without_a_model(desk: Path) -> None:
    (desk / "answers.yaml").unlink()

    ended = run_forked("run", ".", "Hello", "--replay", "c.json", cwd=desk)

    assert (ended.code, ended.out) == (0, "You said Hello\n")


def test_a_miss_shows_place_command_and_diff(desk: Path) -> None:
    (desk / "main.agent").write_text(AGENT.replace("briefly", "at length"))

    ended = run_forked("run", ".", "Hello", "--replay=c.json", cwd=desk)

    assert ended.code == 7
    assert ended.out == ""
    assert "main's instructions have changed since the recording (main.agent:5)" in ended.err
    assert "llm-do run . Hello --record=c.json" in ended.err
    assert "  -Answer briefly.\n  +Answer at length." in ended.err


@pytest.mark.slow
def test_a_chat_is_recorded_and_replayed_turn_by_turn(desk: Path) -> None:
    turns = b"Hello\nAnd now?\n/quit\n"
    recorded = run_forked("chat", ".", "--record", "chat.json", cwd=desk, stdin=turns)
    replayed = run_forked("chat", ".", "--replay", "chat.json", cwd=desk, stdin=turns)

    assert "recorded 2 requests" in recorded.err
    assert replayed.code == 0
    assert "You said And now?" in replayed.out


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--record", "a.json", "--replay", "c.json"], "--record and --replay exclude each other"),
        (["--replay", "none.json"], "there is no cassette none.json"),
        (["--replay", "main.agent"], "main.agent is not JSON"),
        (["--record", ""], "the cassette's file name is empty"),
        (["--record", "main.agent/c.json"], "can't be written"),
    ],
)
def test_what_can_not_be_used_is_refused(desk: Path, args: list[str], message: str) -> None:
    ended = run_forked("run", ".", "Hello", *args, cwd=desk)

    assert ended.code == 2
    assert message in ended.err
