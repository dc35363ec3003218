"""What a person sees of a run, on the screen of a real pseudo-terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.cli_terminal import Screen

PARALLEL = """
agents:
  main:
    - {text: "I ask **two**.", tools: [{name: worker, args: {input: one}}, {name: helper, args: {input: two}}]}
    - {text: "# All done\\n\\nIt is `well`.", delay: 0.2}
  worker: [{tools: [{name: wait, args: {sign: first}}]}, {text: worked}]
  helper: [{tools: [{name: wait, args: {sign: second}}]}, {text: helped}]
"""
TOOLS = '''
import asyncio
from pathlib import Path

async def wait(sign: str) -> str:
    """Wait for a file."""
    print(f"waiting for {sign}")
    while not Path(sign).exists():
        await asyncio.sleep(0.01)
    return "slept " * 40

def send(to: str, text: str = "") -> str:
    """Send."""
    return f"sent to {to}"


TOOLS = [wait, send]
'''
MANIFEST = """
{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"],
 "model": "script:answers.yaml", "approvals": {"allow": ["wait"]}}
"""
ASK = "- tools: [{name: send, args: {to: ann, text: hello}}]\n- text: 'result: {tool}'"


def agent(name: str, **keys: str) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\nname: {name}\ndescription: {name}\n{head}---\nHelp.\n"


@pytest.fixture
def team(project: Callable[..., Path]) -> Callable[[str], Path]:
    return lambda answers: project(
        answers,
        manifest=MANIFEST,
        **{
            "tools.py": TOOLS,
            "agent": agent("main", tools="[send, wait]", toolsets="[worker, helper]"),
            "worker.agent": agent("worker", tools="[wait]"),
            "helper.agent": agent("helper", tools="[wait]"),
        },
    )


@pytest.fixture
def sign(tmp_path: Path) -> Callable[..., None]:
    """Give the signs that tool calls wait for."""

    def give(*names: str) -> None:
        for name in names:
            (tmp_path / "project" / name).touch()

    return give


@pytest.fixture
def terminal(team: Callable[[str], Path]) -> Iterator[Callable[..., Screen]]:
    started: list[Screen] = []

    def start(answers: str, *args: str, columns: int = 80, **env: str | None) -> Screen:
        started.append(Screen(["run", ".", "x", *args], team(answers), columns, **env))
        return started[-1]

    yield start
    for screen in started:
        screen.close()


def test_parallel_agents_are_drawn_as_a_tree_and_leave_a_transcript(
    terminal: Callable[..., Screen], sign: Callable[..., None]
) -> None:
    screen = terminal(PARALLEL)
    screen.wait('wait(sign="second")')
    sign("first")
    screen.wait("✓")
    screen.wait('wait(sign="second")')
    during = screen.lines
    sign("second")
    code = screen.end()

    assert code == 0
    assert any(line.startswith(("├─ worker ", "└─ helper ")) for line in during)
    assert any('wait(sign="second")  ' in line and line.endswith(" s") for line in during)
    shown = screen.lines
    assert shown[:2] == ["main", "I ask two."]
    assert sorted(line for line in shown if line.startswith("waiting")) == [
        "waiting for first",
        "waiting for second",
    ]
    ended = [line for line in shown if line.startswith("✓ main/")]
    assert sorted(line.split("  ")[0] for line in ended) == ["✓ main/helper", "✓ main/worker"]
    assert all(line.endswith(" · 1 tool call") for line in ended)
    assert not any("slept" in line for line in shown)
    assert {"  → helped", "  → worked"} < set(shown)
    assert shown[-6:-4] == ["All done", "It is well."]
    assert [line.split()[:3] for line in shown[-4:-1]] == [[name, "1", "call"] for name in ("main", "worker", "helper")]
    assert shown[-1].startswith("completed: 6 steps, 4 tool calls, ")
    assert not any("─" in line for line in shown)


@pytest.mark.parametrize("columns", [40, 200])
def test_every_line_fits_the_terminal(terminal: Callable[..., Screen], sign: Callable[..., None], columns: int) -> None:
    waits = "{name: wait, args: {sign: first}}, {name: wait, args: {sign: second}}"
    screen = terminal(f"- tools: [{waits}]\n- text: It is `well`.", columns=columns)
    sign("first", "second")

    assert screen.end() == 0

    results = [line for line in screen.lines if line.startswith("  → slept")]
    assert len(results) == 2
    assert all(line.endswith("…") and len(line) <= columns for line in results)
    assert "It is well." in screen.lines


def test_typing_and_resizing_do_not_break_the_tree(terminal: Callable[..., Screen], sign: Callable[..., None]) -> None:
    screen = terminal(PARALLEL)
    screen.wait('wait(sign="second")')
    screen.type("\n\nabc\n")
    screen.resize(60, 40)
    sign("first", "second")

    assert screen.end() == 0

    assert not any("─" in line for line in screen.lines)
    assert "abc" not in " ".join(screen.lines)


def test_the_tree_is_readable_without_colours_or_unicode(
    terminal: Callable[..., Screen], sign: Callable[..., None]
) -> None:
    screen = terminal(PARALLEL, NO_COLOR="1", LANG=None, LC_ALL="C")
    screen.wait('wait(sign="second")')
    sign("first")
    screen.wait("+ ")
    screen.wait('wait(sign="second")')
    during = screen.lines
    sign("second")
    assert screen.end() == 0

    assert any(line.startswith(("|- worker", "`- helper")) for line in during)
    assert not re.search(r"\x1b\[3[0-8]m", screen.raw)


@pytest.mark.slow
def test_a_permanent_answer_is_saved_and_prevents_further_questions(terminal: Callable[..., Screen]) -> None:
    first = terminal(ASK)
    first.wait("\r\nallow? ")
    first.type("w\n")
    first.wait("rule: ")
    first.type("send(to=bob)\n")
    first.wait("rule: ")
    first.type("1\n")
    assert first.end() == 0
    second = terminal(ASK)
    assert second.end() == 0

    assert "send(to=bob) does not allow this call" in first.lines
    assert any(line.startswith("  1 main:send(to=ann, text=hello)") for line in first.lines)
    assert second.lines[-2] == "result: sent to ann"
    assert "wants to call" not in second.raw


def test_a_rule_for_the_session_covers_the_next_call(terminal: Callable[..., Screen]) -> None:
    calls = "".join(f"- tools: [{{name: send, args: {{to: ann, text: {text}}}}}]\n" for text in ("a", "b"))
    screen = terminal(calls + "- text: over")
    screen.wait("\r\nallow? ")
    screen.type("p\n")
    screen.wait("rule: ")
    screen.type("main:send(to=ann)\n")

    assert screen.end() == 0
    assert screen.raw.count("wants to call") == 1
    assert screen.lines[-2] == "over"


@pytest.mark.slow
def test_the_proposed_rule_is_prefilled_and_can_be_edited(terminal: Callable[..., Screen]) -> None:
    calls = "".join(f"- tools: [{{name: send, args: {{to: ann, text: {text}}}}}]\n" for text in ("a", "b", "c"))
    screen = terminal(calls + "- text: over", columns=120)
    screen.wait("\r\nallow? ")
    screen.type("p\n")
    screen.wait("text=a)")
    screen.wait("rule: ")
    screen.type("\x04")  # Ctrl-D goes back
    screen.wait("allow? ")
    screen.type("p\n")
    screen.wait("rule: ")
    screen.wait("text=a)")
    screen.type("\x1b[C\x7f\x7f*)\n")  # to the end of the line, and another end for it

    assert screen.end() == 0
    assert screen.raw.count("wants to call") == 1
    assert "rule: main:send(to=ann, text=*)" in screen.lines
    assert screen.lines[-2] == "over"


@pytest.mark.slow
def test_enter_accepts_the_proposed_rule_and_ctrl_c_ends_the_run(terminal: Callable[..., Screen]) -> None:
    first = terminal(ASK)
    first.wait("\r\nallow? ")
    first.type("p\n")
    first.wait("rule: ")
    first.wait("text=hello)")
    first.type("\n")
    assert first.end() == 0
    second = terminal(ASK)
    second.wait("\r\nallow? ")
    second.type("p\n")
    second.wait("rule: ")
    second.wait("text=hello)")
    second.type("\x03")

    assert second.end() == 130
    assert "(the question about send is over)" in second.raw


def test_model_output_cannot_move_the_cursor(terminal: Callable[..., Screen], team: Callable[..., Path]) -> None:
    screen = terminal('- tools: [{name: wait, args: {sign: .}}]\n- text: "a\\e[2Jb"')

    assert screen.end() == 0
    assert "a\\x1b[2Jb" in screen.lines
    assert "\x1b[2J" not in screen.raw


def test_a_plain_answer_wraps_between_words(terminal: Callable[..., Screen]) -> None:
    answer = "Hello! I am here to help with any kind of creative writing, whatever it may be about."
    screen = terminal(f'- text: "{answer}"', columns=40)

    assert screen.end() == 0
    assert [line for line in screen.lines if "|" not in line][-4:-1] == [
        "Hello! I am here to help with any kind",
        "of creative writing, whatever it may be",
        "about.",
    ]
