from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.cli_processes import LLM_DO, environment, run_many
from tests.cli.cli_terminal import Screen

ANSWERS = """
- text: "first: {input}"
- text: "second, **bold**: {input}"
- text: "third: {input}"
- {text: "slow", delay: 20}
"""

PROMPT = "\x1b[?2004h"
"""What the line editor writes when it starts to read: it asks the terminal to mark pasted text."""


@pytest.fixture
def terminal(project: Callable[..., Path]) -> Iterator[Callable[..., Screen]]:
    root = project(ANSWERS)
    started: list[Screen] = []

    def start(*args: str, **options: object) -> Screen:
        started.append(Screen(["chat", *args], root, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for screen in started:
        screen.close()


def test_piped_lines_are_turns_of_one_conversation(project: Callable[..., Path], tmp_path: Path) -> None:
    root = project(ANSWERS)
    lines = b"one\n\n  two  \n/undo\nagain\n/state\n/save out.json\n/nonsense\n/quit\nnever\n"

    ended = run_many(
        {
            "first": (["chat"], root, lines),
            "continued": (["chat", "--continue"], root, b"three\n"),
            "unkept": (["chat", "--no-record"], root, b"a\nb\n/undo\nb\n"),
            "prompt": (["chat", ".", "hello"], root, b""),
        }
    )

    first = ended["first"]
    assert first.code == 0
    assert first.out == "first: one\nsecond, **bold**: two\nsecond, **bold**: again\n"
    assert "undone: two\n" in first.err
    assert '"messages": 4' in first.err
    assert "error: there is no command /nonsense. See /help.\n" in first.err
    assert len(json.loads((root / "out.json").read_text())) == 4
    assert ended["continued"].out == "third: three\n"
    assert ended["unkept"].out == "first: a\nsecond, **bold**: b\nsecond, **bold**: b\n"
    assert ended["prompt"].out == "first: hello\n"


def test_an_invalid_model_name_leaves_the_model_unchanged(project: Callable[..., Path]) -> None:
    root = project(ANSWERS)
    lines = b"one\n/model gpt-5\n/model opnai:gpt-5\n/model\ntwo\n/model main=test\n"

    ended = run_many({"chat": (["chat"], root, lines)})["chat"]

    assert ended.out == "first: one\nsecond, **bold**: two\n"
    assert ended.err.splitlines() == [
        "error: the model 'gpt-5' names no provider. Did you mean `openai:gpt-5`?",
        "error: the model 'opnai:gpt-5' names an unknown provider. Did you mean `openai:gpt-5`?",
        "model: as each agent declares",
        "model: as each agent declares",
        "model of main: test",
    ]


def test_a_failed_turn_sets_the_exit_code_and_the_conversation_continues(project: Callable[..., Path]) -> None:
    root = project('- {error: {status: 400, message: "no"}}\n- text: "{input}"')

    ended = run_many({"chat": (["chat", "--no-record"], root, b"one\ntwo\n")})["chat"]

    assert ended.code == 7
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") <= 2


def test_a_terminal_chat_takes_typed_turns_and_renders_answers(terminal: Callable[..., Screen]) -> None:
    screen = terminal()
    screen.wait(PROMPT)
    screen.type("hello\r")
    screen.wait("completed")
    screen.wait(PROMPT)
    screen.type("one\\\rtwo\r")
    screen.wait("completed")
    screen.wait(PROMPT)
    screen.type("/too\t")
    screen.wait_until_shown("/tools")
    screen.type("\r")
    screen.wait("send(")
    screen.wait(PROMPT)
    screen.type("\x04")

    assert screen.end() == 0
    assert "first: hello" in screen.lines
    assert "second, bold: one two" in screen.lines


def test_ctrl_c_stops_the_turn_and_pressed_twice_ends_the_chat(terminal: Callable[..., Screen], tmp_path: Path) -> None:
    screen = terminal("--no-record")
    for number in range(3):
        screen.wait(PROMPT)
        screen.type(f"turn {number}\r")
        screen.wait("completed")
    screen.wait(PROMPT)
    screen.type("turn 3\r")
    screen.wait_for_match(r"\x1b\[2m\d+\.[1-9] s")
    screen.type("\x03")
    screen.wait("you can continue the conversation")
    screen.wait(PROMPT)
    screen.type("\x03")
    screen.wait("Ctrl-C again")
    screen.wait(PROMPT)
    screen.type("\x03")

    assert screen.end() == 130
    assert "Traceback" not in screen.raw


@pytest.mark.slow
def test_the_next_session_continues_the_conversation(terminal: Callable[..., Screen], tmp_path: Path) -> None:
    first = terminal()
    first.wait(PROMPT)
    first.type("remember me\r")
    first.wait("completed")
    first.wait(PROMPT)
    first.type("\x04")
    assert first.end() == 0
    second = terminal("--continue")
    second.wait("2 messages")
    second.wait(PROMPT)
    second.type("\x1b[A")
    second.wait("remember me")
    second.type("\r")
    second.wait("completed")
    second.wait(PROMPT)
    second.type("\x04")

    assert second.end() == 0
    assert "second, bold: remember me" in second.lines


def test_a_chat_is_refused_up_front_when_the_entry_takes_fields(project: Callable[..., Path]) -> None:
    model = "from llm_do import AgentArgs\n\n\nclass Visit(AgentArgs):\n    bike: int\n"
    root = project(ANSWERS)
    (root / "visit.py").write_text(model)
    (root / "main.agent").write_text("---\nname: main\ninput_model_ref: visit.py:Visit\n---\nHelp.\n")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["visit.py"]}
    (root / "project.json").write_text(json.dumps(manifest))

    ended = run_many({"chat": (["chat", "."], root, b"hello\n")})["chat"]

    assert ended.code == 2
    assert ended.err == (
        "error: a chat sends text, and the entry takes bike: int. "
        "Name an agent with --entry, or give fields to `llm-do run` with --field.\n"
    )


def test_on_a_narrow_terminal_descriptions_are_below_their_commands(terminal: Callable[..., Screen]) -> None:
    screen = terminal("--no-record", columns=40)
    screen.wait(PROMPT)
    screen.type("/help\r")
    screen.wait("/quit")
    screen.wait(PROMPT)
    shown = screen.lines

    at = shown.index("/model [[AGENT=]MODEL]")
    assert shown[at + 1 : at + 3] == ["    show the models, or change them from", "    now on"]
    screen.type("\x04")
    assert screen.end() == 0


def test_on_a_wide_terminal_the_help_has_two_columns(terminal: Callable[..., Screen]) -> None:
    screen = terminal("--no-record", columns=80)
    screen.wait(PROMPT)
    screen.type("/help\r")
    screen.wait("/quit")
    screen.wait(PROMPT)

    assert "/undo                   undo the last turn; what its tools did stays done" in screen.lines
    assert f"{'':24}ones, or revoke one" in screen.lines
    screen.type("\x04")
    assert screen.end() == 0


def test_save_writes_the_current_conversation(project: Callable[..., Path]) -> None:
    root = project("\n".join(f"- text: answer {number}" for number in range(5)))
    kept = "one\ntwo\n/undo\n/save undone.md\n/thread other\n/save empty.md\nthree\n/save\tother.md\n"

    ended = run_many(
        {
            "kept": (["chat", "--thread", "t"], root, kept.encode()),
            "later": (["chat", "--thread", "t"], root, b"/save later.md\n"),
            "unkept": (["chat", "--no-record"], root, b"one\ntwo\n/undo\n/save unkept.md\n"),
        }
    )

    assert [each.code for each in ended.values()] == [0, 0, 0]
    texts = {path.stem: path.read_text(encoding="utf-8") for path in root.glob("*.md")}
    conversation = "## system\n\nHelp.\n\n## user\n\none\n\n## assistant\n\nanswer 0\n\n"
    assert texts["undone"] == texts["later"] == texts["unkept"] == conversation
    assert texts["empty"] == ""
    assert "three" in texts["other"]
    assert "one" not in texts["other"]


@pytest.mark.slow
def test_ctrl_z_suspends_the_chat_and_what_was_typed_is_there_again(project: Callable[..., Path]) -> None:
    import pexpect

    command = shlex.join([*LLM_DO, "chat"])
    shell = pexpect.spawn(
        "bash",
        ["--norc", "--noediting", "-i"],
        cwd=str(project(ANSWERS)),
        env=environment(LLM_DO_TRUST="1", TERM="xterm"),
        encoding="utf-8",
        timeout=30,
    )
    try:
        shell.sendline(command)
        shell.expect_exact(PROMPT)
        shell.send("hel")
        shell.expect_exact("hel")
        shell.send("\x1a")
        shell.expect_exact("Stopped")
        shell.sendline("fg")
        shell.expect_exact("hel")
        shell.send("lo\r")
        shell.expect_exact("first: hello")
    finally:
        shell.close(force=True)
