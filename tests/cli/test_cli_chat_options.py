"""The options that a chat shares with a run: its first message, and the format of stdout."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from llm_do.cli.commands import chat, run
from tests.cli.cli_processes import LLM_DO, environment, run_forked, run_many, write_project

ANSWERS = "- text: one\n- text: two\n- text: three\n"


def test_a_chat_takes_every_option_of_a_run() -> None:
    def options(app: object) -> set[str]:
        return {name for param in get_command(app).params for name in param.opts}  # type: ignore[arg-type]

    assert options(chat.app) - options(run.app) == {"--continue"}
    assert options(run.app) <= options(chat.app)


def test_json_output_is_one_object_per_turn_however_it_ends(project: Callable[..., Path]) -> None:
    root = project("- text: one\n- error: {status: 400, message: bad}\n- text: three")
    args = ["chat", ".", "first", "--output", "json", "--attach", "nosuch", "--no-record"]

    ended = run_forked(*args, cwd=root, stdin=b"second\nthird\n/state\n")

    turns = [json.loads(line) for line in ended.out.splitlines()]
    assert [turn["status"] for turn in turns] == ["invalid", "completed", "provider_failed"]
    assert turns[0]["errors"][0]["message"] == "can't attach 'nosuch': No such file or directory"
    assert (turns[1]["output"], ended.code) == ("one", 7)
    assert [line[:6] for line in ended.err.splitlines() if line[:1] not in ' {}"'] == ["error:", "error:"]


def test_events_are_numbered_per_turn(project: Callable[..., Path]) -> None:
    ended = run_forked("chat", ".", "first", "--output", "events", cwd=project(ANSWERS), stdin=b"second\n")

    events = [json.loads(line) for line in ended.out.splitlines()]
    first = [event for event in events if event["run_id"] == events[0]["run_id"]]
    second = events[len(first) :]
    for turn in (first, second):
        assert [event["seq"] for event in turn] == list(range(len(turn)))
        assert (turn[0]["type"], turn[-1]["type"]) == ("run_started", "run_finished")
        assert len({event["run_id"] for event in turn}) == 1
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", [["hello"], ["--input-json", '{"input": "hello"}'], ["--field", "input=hello"], []])
def test_the_first_message_may_be_fields_and_carries_the_attachments(
    project: Callable[..., Path], first: list[str]
) -> None:
    typed = b"again\n/undo\n/retry\n" if first else b"hello\nagain\n/undo\n/retry\n"

    ended = run_forked(
        "chat", ".", *first, "--attach", "tools.py", "--output", "json", cwd=project(ANSWERS), stdin=typed
    )

    turns = [json.loads(line) for line in ended.out.splitlines()]
    asked = [[message["parts"][0]["content"] for message in turn["messages"][::2]] for turn in turns]
    assert [len(each) for each in asked] == [1, 2, 1]
    assert asked[0][0][0] == asked[2][0][0] == "hello"
    assert asked[0][0][1]["media_type"].startswith("text/")
    assert asked[2][0][1] == asked[0][0][1]
    assert asked[1][1] == "again"


def test_a_dry_run_of_a_chat_shows_what_would_run_and_reads_nothing(project: Callable[..., Path]) -> None:
    root = project(ANSWERS)
    calls = {
        "nothing": ["chat", "--dry-run", "--output", "json"],
        "prompt": ["chat", ".", "hi", "--dry-run", "--output", "json", "--attach", "tools.py"],
    }

    ended = run_many({name: (args, root, b"never\n") for name, args in calls.items()})

    assert {name: each.code for name, each in ended.items()} == dict.fromkeys(calls, 0)
    assert ended["nothing"].json["input"] is None
    assert ended["prompt"].json["input"] == {"input": "hi", "attachments": ["tools.py"]}
    assert ended["prompt"].json["agents"]["main"]["origin"] == "agent"
    assert not (root / ".llm-do").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--attach", "-"], "a chat reads its messages from stdin, so --attach - can't"),
        ([".", "hi", "--input-json", "{}"], "a prompt and --input-json exclude each other"),
        (["--field", "inptu=x"], "the entry's input has no field 'inptu'"),
        (["--frobnicate"], "there is no option --frobnicate"),
    ],
)
def test_usage_errors_use_the_requested_output_format(
    project: Callable[..., Path], args: list[str], message: str
) -> None:
    ended = run_forked("chat", *args, "--output", "json", cwd=project())

    assert (ended.code, ended.json["status"]) == (2, "invalid")
    assert ended.json["errors"][0]["message"].startswith(message)
    assert ended.err.startswith(f"error: {message}")


@pytest.mark.slow
def test_a_closed_pipe_ends_a_chat_quietly(project: Callable[..., Path]) -> None:
    root = project(ANSWERS)
    command = " ".join(f"'{word}'" for word in LLM_DO)
    ended = subprocess.run(
        ["bash", "-c", f"yes | {command} chat . hi --output events | head -1; exit ${{PIPESTATUS[1]}}"],
        cwd=root,
        env=environment(),
        capture_output=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.sample(1)
@pytest.mark.parametrize("args", [["--thread", "t"], ["--continue"], []])
def test_a_run_that_has_stopped_on_the_thread_is_named_before_the_first_turn(tmp_path: Path, args: list[str]) -> None:
    answers = """\
    - tools: [{name: send, args: {to: Ada}}]
    - text: done
    """
    root = write_project(tmp_path, answers)
    assert run_forked("run", ".", "go", "--durable", "--run-id", "r", "--thread", "t", cwd=root).code == 5
    typed = b"" if args else b"/thread t\n"

    ended = run_forked("chat", ".", *args, cwd=root, stdin=typed)
    assert "run r on this thread waits for an answer" in ended.err
    assert "continue it with `llm-do resume r`, or drop it with `llm-do runs drop r`" in ended.err

    assert run_forked("runs", "drop", "r", cwd=root).code == 0
    assert "run r on this thread" not in run_forked("chat", ".", *args, cwd=root, stdin=typed).err
