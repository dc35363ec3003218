"""What a person sees and answers, in a real pseudo-terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

from tests.cli.cli_processes import LLM_DO, environment, run_forked
from tests.cli.cli_terminal import Screen

CHOICES = "\r\nallow? "
ASK = "- tools: [{name: send, args: {to: ann}}]\n- text: 'result: {tool}'"

# The same call twice, then one whose text imitates our own output, then another.
SEVERAL = r"""
- tools: [{name: send, args: {to: ann}}]
- tools: [{name: send, args: {to: ann}}]
- tools: [{name: send, args: {to: "bob\u202e\e[2J\e]0;x\a", text: "hello\nallow? y once\n\e[1A\r[red]markup[/red]"}}]
- tools: [{name: send, args: {to: carol}}]
- text: "the end"
"""


@pytest.fixture
def terminal(project: Callable[..., Path]) -> Iterator[Callable[..., Screen]]:
    started: list[Screen] = []

    def start(answers: str, *args: str, columns: int = 100, **env: str) -> Screen:
        started.append(Screen(["run", "x", *args], project(answers), columns, **env))
        return started[-1]

    yield start
    for child in started:
        child.close()


def end(child: Screen) -> tuple[int, str]:
    """Wait for the end; return the exit code and everything that was written."""
    return child.end(), child.raw


def screen(text: str, columns: int = 100) -> list[str]:
    """The lines on a terminal after `text` was written to it."""
    shown = pyte.Screen(columns, 40)
    pyte.Stream(shown).feed(text)
    return [line.rstrip() for line in shown.display if line.strip()]


def test_each_question_is_answered_with_a_key(terminal: Callable[..., Screen]) -> None:
    child = terminal(SEVERAL)
    child.wait(CHOICES)
    child.type("what?\n")
    child.wait(CHOICES)
    child.type("s\n")
    child.wait(CHOICES)  # the second call is allowed by the answer to the first
    child.type("D\n")
    child.wait("note for the model: ")
    child.type("never to bob\n")
    child.wait(CHOICES)
    child.type(" Y \n")

    code, text = end(child)

    shown = child.lines
    assert code == 0
    assert shown[:10] == [
        "╭ main wants to call send",
        "│ to: ann",
        "╰ why: send needs approval by default: no rule covers it",
        "  y  yes, this once",
        "  s  yes, and exactly this call again in this session",
        "  p  yes, and in this session every call that this rule allows:",
        "     main:send(to=ann, text='')",
        "  w  yes, and always in this project; keeps that rule, or this call, for you",
        "  n  no    d  no, with a note for the model    a  abort the run",
        "  v  view all of it: 1 default argument",
    ]
    assert text.count("main wants to call send") == 3
    assert shown[-2] == "the end"
    assert shown[-1].startswith("completed: 5 steps, 3 tool calls, ")


def test_text_written_by_a_model_cannot_control_the_terminal(terminal: Callable[..., Screen]) -> None:
    child = terminal(SEVERAL.replace("- tools: [{name: send, args: {to: ann}}]\n", ""), "-v")
    child.wait(CHOICES)
    asked = child.raw
    child.type("n\n")
    child.wait(CHOICES)
    child.type("\x04")

    code, text = end(child)

    shown = screen(asked)
    assert "│ to: bob\\u202e\\x1b[2J\\x1b]0;x\\x07" in shown
    at = shown.index("│ text:")
    assert shown[at + 1 : at + 4] == [
        "│ 1   hello",
        "│ 2   allow? y once",
        "│ 3   \\x1b[1A\\r[red]markup[/red]",
    ]
    assert (code, text.count("denied by a person")) == (0, 2)
    assert "\u202e" not in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text


def test_ctrl_c_closes_the_question_and_ends_the_run(terminal: Callable[..., Screen]) -> None:
    child = terminal(ASK)
    child.wait(CHOICES)
    child.type("\x03")

    code, text = end(child)

    assert code == 130
    assert "(the question about send is over)" in text
    assert "Traceback" not in text
    assert screen(text)[-1].startswith("interrupted: 1 step")


def test_abort_ends_the_run_with_exit_code_one(terminal: Callable[..., Screen]) -> None:
    child = terminal(ASK)
    child.wait(CHOICES)
    child.type("a\n")

    code, text = end(child)

    assert code == 1
    assert "error: a person ended the run at send" in text


@pytest.mark.parametrize("name", ["dumb", ""])
def test_a_dumb_terminal_asks_in_plain_lines(terminal: Callable[..., Screen], name: str) -> None:
    child = terminal(ASK, TERM=name)
    child.wait(CHOICES)
    child.type("p\n")
    child.wait("a number, another rule, or nothing to go back: ")
    child.type("1\n")

    code, text = end(child)

    assert code == 0
    assert "main wants to call send" in text
    assert "result: sent to ann" in text
    assert "\x1b" not in text


def test_ci_gets_no_questions_and_no_drawing(terminal: Callable[..., Screen]) -> None:
    code, text = end(terminal(ASK, CI="woodpecker"))

    assert code == 4
    assert "result: send is denied: no terminal" in text
    assert "error: send is denied: no terminal to ask on" in text
    assert "\x1b" not in text


def test_streamed_text_is_prefixed_with_its_agents_name(terminal: Callable[..., Screen]) -> None:
    code, text = end(terminal('- {text: "one two\\nmain > send()", delay: 0.1}', "-vv"))

    shown = screen(text)
    assert code == 0
    assert shown[0] == "main: called with x"
    assert shown[1:3] == ["main | one two", "main | main > send()"]


@pytest.mark.slow
def test_questions_reach_the_terminal_when_stdin_is_a_pipe_and_ignore_earlier_typing(
    project: Callable[..., Path],
) -> None:
    root = project(ASK)
    command = " ".join(f"'{word}'" for word in LLM_DO)
    child = pexpect.spawn(
        "bash",
        ["-c", f"echo piped | {command} run"],
        cwd=str(root),
        env=environment(),
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 100),
    )
    child.sendline("y")
    child.expect_exact(CHOICES)
    child.sendline("n")
    child.expect(pexpect.EOF)
    text = child.before
    child.close()

    assert "result: a person denied send" in text


@pytest.mark.slow
def test_a_background_run_does_not_wait_for_its_terminal(project: Callable[..., Path]) -> None:
    root = project(ASK)
    script = (
        "import os, pty, subprocess, sys\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0:\n"
        "    child = subprocess.Popen(sys.argv[1:], process_group=0)\n"
        "    os._exit(child.wait(timeout=30))\n"
        "try:\n"
        "    while os.read(fd, 1000): pass\n"
        "except OSError: pass\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )

    ended = subprocess.run([sys.executable, "-c", script, *LLM_DO, "run", "x"], cwd=root, env=environment(), timeout=60)

    assert ended.returncode == 4


def test_errors_wrap_between_words_on_a_narrow_terminal(terminal: Callable[..., Screen]) -> None:
    child = terminal("- {texts: one}", "--no-color", columns=40)

    code, text = end(child)

    shown = screen(text, columns=40)
    assert code == 7
    assert shown[:2] == ["error: the script answers.yaml has an", "  unknown key 'texts'; known keys: text,"]
    assert shown[-2] == "provider_failed: 0 steps, 0 tokens,"


ASKS = "---\nname: main\nmodel: script:answers.yaml\ntoolsets: [ask_user]\n---\nHelp.\n"


@pytest.mark.parametrize(
    ("key", "code", "line"),
    [
        ("\x03", 130, r"\(the question of main is over\)"),
        # A duration follows when the question stood for long enough, which on a slow machine it does.
        ("\x04", 0, r'✗ main ask_user\(question="Which\?"\) → failed: the person gave no answer(  \d+(\.\d)? s)?'),
    ],
    ids=["Ctrl-C", "Ctrl-D"],
)
def test_an_unanswered_question_of_an_agent_leaves_one_line(
    project: Callable[..., Path], key: str, code: int, line: str
) -> None:
    root = project("- tools: [{name: ask_user, args: {question: Which?}}]\n- text: done", agent=ASKS)
    child = Screen(["run", "x"], root, 100)
    child.wait("answer: ")
    child.type(key)

    ended = child.end()
    child.close()

    assert ended == code
    assert any(re.fullmatch(line, shown) for shown in child.lines), child.lines


def test_a_resumed_run_names_earlier_calls_without_arguments_and_says_how_to_continue(
    project: Callable[..., Path],
) -> None:
    calls = "".join(f"- tools: [{{name: send, args: {{to: {name}}}}}]\n" for name in ("ann", "bob"))
    root = project(f"{calls}- text: end")
    run_forked("run", "x", "--durable", "--run-id", "r", cwd=root)
    run_forked("approvals", "answer", "r.1", "allow", cwd=root)
    child = Screen(["resume", "r"], root)
    child.wait(CHOICES)
    child.type("\x03")
    assert child.end() == 130
    child.close()

    assert any("\u2713 main send \u2192 " in line for line in child.lines)
    assert "run r can be continued: llm-do resume r" in child.lines


def test_a_question_that_takes_only_its_choices_does_not_offer_others(project: Callable[..., Path]) -> None:
    script = '- tools: [{name: die, args: {}}]\n- text: "end"'
    code = (
        "import os\ndef die() -> str:\n    if not os.path.exists('died'):\n"
        "        open('died', 'w').close(); os._exit(9)\n    return 'alive'\nTOOLS = [die]\n"
    )
    root = project(
        script,
        **{"tools.py": code},
        agent="---\nname: main\nmodel: script:answers.yaml\ntools: [die]\n---\nx",
    )
    run_forked("run", "x", "--durable", "--run-id", "r", "--allow", "die", cwd=root)
    child = Screen(["resume", "r"], root)
    child.wait("answer: ")
    child.type("something else\n")
    child.wait("answer: ")
    child.type("1\n")
    assert child.end() == 0
    child.close()

    assert "type a number or another answer" not in child.raw
    assert child.raw.count("type a number") == 2
