"""The live view without a process: events go in, a screen comes out."""

from __future__ import annotations

import re
import time
from typing import Any

import pyte
import pytest
from hypothesis import given, strategies as st

from llm_do.runtime.record.events.model_events import TextDoneEvent, TextEvent, UsageEvent
from llm_do.runtime.record.events.run_events import CallFinishedEvent, CallStartedEvent, RunStartedEvent, WarningEvent
from llm_do.runtime.record.events.tool_events import ToolCallEvent, ToolResultEvent
from llm_do.ui.live.block import Block
from llm_do.ui.live.call_tree import CallTree, seconds_text
from llm_do.ui.live.display import Display
from llm_do.ui.terminal.screen import draws_lines
from llm_do.ui.terminal.text_width import text_width
from tests.support.tables import each_row


class Terminal:
    """A screen, and a display that draws on it."""

    def __init__(self, columns: int = 60, rows: int = 30) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.screen.set_mode(pyte.modes.LNM)
        self.stream = pyte.Stream(self.screen)
        self.display = Display(self.stream.feed, animate=True, color=True, size=lambda: (columns, rows))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]


def event(kind: type[Any], path: str = "main", call_id: str = "c", parent: str | None = "r", **data: Any) -> Any:
    return kind(
        seq=0,
        time=1000.0,
        run_id="r",
        call_id=call_id,
        parent_call_id=parent,
        agent_name=path.rpartition("/")[2],
        path=path,
        depth=path.count("/") + 1,
        **data,
    )


def tool_call(tool: str, call: str = "t", path: str = "main", call_id: str = "c", **args: Any) -> Any:
    return event(ToolCallEvent, path, call_id, tool_name=tool, tool_call_id=call, args=args)


def tool_result(tool: str, result: Any, status: str = "success", call: str = "t") -> Any:
    return event(
        ToolResultEvent,
        tool_name=tool,
        tool_call_id=call,
        status=status,
        result=result,
        duration=0.01,
        size=1,
    )


def test_a_finished_call_moves_from_the_tree_to_the_transcript() -> None:
    terminal = Terminal()
    for each in (event(CallStartedEvent, input={}), tool_call("send", to="ann")):
        terminal.display.on_event(each)
    assert [line.split("  ")[0] for line in terminal.lines] == ["main", '└─ send(to="ann")']

    terminal.display.on_event(tool_result("send", "sent"))

    assert [line.split("  ")[0] for line in terminal.lines] == ['✓ main send(to="ann") → sent', "main"]
    terminal.display.end()
    assert terminal.lines == ['✓ main send(to="ann") → sent']


@each_row("status, mark", [("failed", "✗"), ("denied", "✗"), ("refused", "✗"), ("timed_out", "✗"), ("success", "✓")])
def test_a_finished_call_is_marked_with_its_outcome(status: str, mark: str) -> None:
    terminal = Terminal()
    for each in (event(CallStartedEvent, input={}), tool_call("send"), tool_result("send", "why", status)):
        terminal.display.on_event(each)
    terminal.display.end()

    shown = "" if status == "success" else f"{status}: "
    assert terminal.lines == [f"{mark} main send() → {shown}why"]


@each_row(
    "path, arg, result",
    [
        (f"main/{'long_name_' * 12}", "x", "done"),
        ("main", "日本" * 3, "結果" * 9),
        ("main", "日本" * 9, "結果です"),
        ("main/言語", "日本" * 20, "結果" * 40),
    ],
)
def test_a_finished_call_takes_two_lines_at_most_and_its_tool_is_named(path: str, arg: str, result: str) -> None:
    terminal = Terminal()
    done = {"tool_call_id": "t", "status": "success", "result": result, "duration": 0.01, "size": 1}
    for each in (
        event(CallStartedEvent, path, input={}),
        tool_call("send", path=path, to=arg),
        event(ToolResultEvent, path, tool_name="send", **done),
    ):
        terminal.display.on_event(each)
    terminal.display.end()

    assert [line.startswith("  → ") for line in terminal.lines[1:]] in ([], [True])
    assert " send(to=" in terminal.lines[0]


def test_streamed_text_is_below_its_agent_and_the_result_is_not_repeated() -> None:
    terminal = Terminal()
    terminal.display.on_event(event(CallStartedEvent, input={}))
    for piece in ("one\n", "two ", "**three**"):
        terminal.display.on_event(event(TextEvent, text=piece))
    terminal.display.tick()
    assert terminal.lines[1:] == ["│  one", "│  two **three**"]

    terminal.display.on_event(event(TextDoneEvent, text="one\ntwo **three**"))
    terminal.display.on_event(event(CallFinishedEvent, status="completed", output="one\ntwo **three**"))
    terminal.display.end(output="one\ntwo **three**")

    assert terminal.lines == []


def test_a_failed_run_leaves_the_text_so_far() -> None:
    terminal = Terminal()
    terminal.display.on_event(event(CallStartedEvent, input={}))
    terminal.display.on_event(event(TextDoneEvent, text="half"))
    terminal.display.end()

    assert terminal.lines == ["main", "half"]


def test_nothing_is_drawn_while_a_question_is_open() -> None:
    terminal = Terminal()
    terminal.display.on_event(event(CallStartedEvent, input={}))
    terminal.display.hold()
    terminal.display.on_event(event(CallStartedEvent, "main/b", "d", "c", input={}))
    terminal.display.foreign("a print\n")
    assert terminal.lines == []

    terminal.display.release()

    assert [line.split("  ")[0] for line in terminal.lines] == ["a print", "main", "└─ b"]


def test_calls_that_do_not_fit_the_rows_are_counted() -> None:
    tree = CallTree()
    tree.update(event(CallStartedEvent, input={}))
    for number in range(50):
        tree.update(event(CallStartedEvent, f"main/w{number}", f"d{number}", "c", input={}))

    drawn = tree.draw(1001.0, 40, 10)

    assert len(drawn) == 10
    assert drawn[-1] == "… 42 more"


def test_parallel_calls_of_one_agent_are_told_apart_and_counted() -> None:
    terminal = Terminal(60, 40)
    terminal.display.on_event(event(CallStartedEvent, input={"input": "all of them", "attachments": []}))
    for number in range(30):
        data = {"input": {"input": f"file {number} of the folder"}, "label": "the last" if number == 29 else ""}
        terminal.display.on_event(event(CallStartedEvent, "main/w", f"d{number}", "c", **data))
    for number in range(2):
        ended = event(CallFinishedEvent, "main/w", f"d{number}", "c", status="completed", output="read")
        terminal.display.on_event(ended)
    terminal.display.tick()

    lines = [line.split("  ")[:2] for line in terminal.lines]
    assert lines[:4] == [
        ["✓ main/w", "file 0 of the folder"],
        ["", "→ read"],
        ["✓ main/w", "file 1 of the folder"],
        ["", "→ read"],
    ]
    assert "2 of 30 done" in terminal.lines[4]
    assert lines[5] == ["├─ w", "file 2 of the folder"]
    assert lines[-1] == ["└─ w", "the last"]
    assert len(lines) == 4 + 1 + 28


def began(name: str, call_id: str, parent: str = "c", text: str = "") -> Any:
    return event(CallStartedEvent, name, call_id, parent, input={"input": text})


def ended(name: str, call_id: str, parent: str = "c", output: str = "done", status: str = "completed") -> Any:
    return event(CallFinishedEvent, name, call_id, parent, status=status, output=output)


def used(name: str, call_id: str, parent: str = "c", cost: float | None = None) -> Any:
    usage = {"input_tokens": 900, "output_tokens": 100} | ({"cost_usd": cost} if cost is not None else {})
    return event(UsageEvent, name, call_id, parent, usage=usage)


def inside(kind: type[Any], tool: str, status: str = "success", **data: Any) -> Any:
    """A tool call of the worker `a`, or its result."""
    data = {"status": status, "result": "seen", "duration": 1.0, "size": 1} if kind is ToolResultEvent else {"args": {}}
    return event(kind, "main/a", "a", "c", tool_name=tool, tool_call_id=tool, **data)


def test_calls_beside_each_other_fold_to_a_line_with_all_that_they_used() -> None:
    terminal = Terminal(80)
    for each in (
        began("main", "c", "r"),
        began("main/a", "a", text="one"),
        began("main/b", "b", text="two"),
        inside(ToolCallEvent, "look"),
        inside(ToolResultEvent, "look"),
        inside(ToolCallEvent, "fail"),
        inside(ToolResultEvent, "fail", "failed"),
        began("main/a/deep", "deep", "a"),
        used("main/a/deep", "deep", "a", 0.5),
        ended("main/a/deep", "deep", "a"),
        used("main/a", "a"),
        event(TextDoneEvent, "main/a", "a", text="a text on the way"),
        inside(ToolCallEvent, "again"),
        ended("main/a", "a", output="all seen"),
    ):
        terminal.display.on_event(each)

    assert terminal.lines[:3] == [
        "✗ main/a fail() → failed: seen  1.0 s",
        "✓ main/a  one  0.0 s · 2,000 tokens · $0.5000 · 2 tool calls",
        "  → all seen",
    ]
    assert "2,000 tokens · $0.5000 · 1 of 2 done" in terminal.lines[3]
    terminal.display.end()
    assert len(terminal.lines) == 3


def test_a_call_that_runs_alone_leaves_its_steps() -> None:
    terminal = Terminal(80)
    for each in (
        began("main", "c", "r"),
        began("main/a", "a"),
        inside(ToolCallEvent, "look"),
        inside(ToolResultEvent, "look"),
        ended("main/a", "a"),
        began("main/b", "b"),
        ended("main/b", "b", output="the end"),
    ):
        terminal.display.on_event(each)
    terminal.display.end(output="another end")

    assert terminal.lines == [
        "✓ main/a look() → seen  1.0 s",
        "✓ main/a  0.0 s",
        "  → done",
        "✓ main/b  0.0 s",
        "  → the end",
    ]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_result_that_the_entry_returns_is_shown_once(status: str) -> None:
    terminal = Terminal(80)
    for each in (began("main", "c", "r"), began("main/a", "a"), ended("main/a", "a", output="# It is\n**done**")):
        terminal.display.on_event(each)
    assert terminal.lines[0] == "✓ main/a  0.0 s"
    assert not any("It is" in line for line in terminal.lines)

    terminal.display.end(output="# It is\n**done**" if status == "completed" else None)

    assert terminal.lines == ["✓ main/a  0.0 s", *(["  → # It is\\n**done**"] if status == "failed" else [])]


@pytest.mark.parametrize("other", ["print", "line", "warning", "question"])
def test_a_result_held_back_comes_before_whatever_is_shown_next(other: str) -> None:
    terminal = Terminal(80)
    for each in (began("main", "c", "r"), began("main/a", "a"), ended("main/a", "a", output="seen")):
        terminal.display.on_event(each)
    match other:
        case "print":
            terminal.display.foreign("other\n")
        case "line":
            terminal.display.line("other")
        case "warning":
            terminal.display.on_event(event(WarningEvent, message="other"))
        case _:
            terminal.display.hold()
    terminal.display.end(output="seen")

    assert terminal.lines[:2] == ["✓ main/a  0.0 s", "  → seen"]
    assert len(terminal.lines) == (2 if other == "question" else 3)


def test_the_end_of_a_run_of_several_agents_says_what_each_did() -> None:
    terminal = Terminal(80)
    started = event(RunStartedEvent, input="go", entry="main")
    for each in (
        started,
        began("main", "c", "r"),
        *(one for n in range(2) for one in (began("main/w", f"w{n}"), used("main/w", f"w{n}", cost=0.25))),
        used("main/w", "w0", cost=0.25),
        *(ended("main/w", f"w{n}") for n in range(2)),
        used("main", "c", "r"),
        ended("main", "c", "r"),
    ):
        terminal.display.on_event(each)

    assert terminal.display.agent_lines() == [
        "  \x1b[1mw   \x1b[0m  \x1b[2m2 calls  up to 0.0 s  3,000 tokens  $0.7500\x1b[0m",
        "  \x1b[1mmain\x1b[0m  \x1b[2m1 call         0.0 s  1,000 tokens\x1b[0m",
    ]
    terminal.display.on_event(started)
    assert terminal.display.agent_lines() == []


@pytest.mark.parametrize("columns", [30, 40, 60])
def test_what_each_agent_did_fits_the_terminal(columns: int) -> None:
    terminal = Terminal(columns)
    for number in range(20):
        path = f"main/agent_number_{number}"
        for each in (began(path, f"a{number}"), used(path, f"a{number}", cost=number), ended(path, f"a{number}")):
            terminal.display.on_event(each)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in terminal.display.agent_lines()]

    assert len(lines) == 13
    assert lines[-1] == "  … 8 more agents"
    assert all(text_width(line) < columns for line in lines)


def test_a_tree_that_is_too_high_has_one_line_a_call_before_it_hides_any() -> None:
    tree = CallTree()
    tree.update(event(CallStartedEvent, input={}))
    for number in range(8):
        data = {"input": {"input": f"Read the file notes-{number}.txt.", "attachments": []}}
        tree.update(event(CallStartedEvent, "main/w", f"d{number}", "c", **data))
        tree.update(tool_call("look", f"t{number}", "main/w", f"d{number}", at=number))

    assert len(tree.draw(1001.0, 80, 40)) == 1 + 2 * 8
    drawn = tree.draw(1001.0, 80, 9)
    assert len(drawn) == 9
    assert drawn[1].startswith("├─ w  …notes-0.txt. · look(at=0)  ")
    assert tree.draw(1001.0, 80, 5)[-1] == "… 5 more"


def test_thousands_of_calls_are_drawn_quickly() -> None:
    tree = CallTree()
    tree.update(event(CallStartedEvent, input={}))
    for number in range(5000):
        tree.update(event(CallStartedEvent, "main/w", f"d{number}", "c", input={"input": f"file {number}"}))
    started = time.process_time()

    assert tree.draw(1001.0, 80, 20)[-1] == "… 4982 more"
    assert time.process_time() - started < 0.25


def test_narrowing_the_terminal_removes_the_old_block() -> None:
    columns = 40
    written: list[str] = []
    block = Block(written.append, lambda: columns)
    block.show(["x" * 39, "y"])
    columns = 20

    block.show(["z"])

    assert written[-1].startswith("\r\x1b[3A")


@given(st.lists(st.text(max_size=60), max_size=6), st.integers(20, 90))
def test_the_tree_always_fits_the_terminal(texts: list[str], columns: int) -> None:
    tree = CallTree()
    tree.update(event(CallStartedEvent, input={}))
    for number, text in enumerate(texts):
        tree.update(tool_call("t", str(number), text=text))
        tree.update(event(TextEvent, text=text))

    drawn = tree.draw(1001.0, columns, 12)

    assert len(drawn) <= 12
    assert all(text_width(line) < columns and "\n" not in line and "\x1b" not in line for line in drawn)


@each_row(
    "environ, expected",
    [
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({}, False),
    ],
)
def test_the_locale_decides_whether_trees_use_box_characters(environ: dict[str, str], expected: bool) -> None:
    assert draws_lines(environ) is expected


def test_durations_are_short() -> None:
    assert [seconds_text(value) for value in (-1, 0.04, 9.94, 59.4, 61)] == ["0.0 s", "0.0 s", "9.9 s", "59 s", "1:01"]
    assert [seconds_text(value) for value in (59.6, 119.7, 3599.5)] == ["1:00", "2:00", "60:00"]
