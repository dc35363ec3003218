"""A recorded run as a tree."""

from __future__ import annotations

from typing import Any

from llm_do.runtime.record.events.model_events import TextDoneEvent, UsageEvent
from llm_do.runtime.record.events.run_events import CallFinishedEvent, CallStartedEvent, RunFailedEvent, WarningEvent
from llm_do.runtime.record.events.tool_events import ToolCallEvent, ToolResultEvent
from llm_do.ui.live.run_tree import RunTree
from llm_do.ui.terminal.text_width import text_width


class Journal:
    """Events as a run records them, a second apart."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def add(
        self, kind: type[Any], path: str = "main", call_id: str = "m", parent: str | None = "r", **data: Any
    ) -> None:
        count = len(self.events)
        common = {"run_id": "r", "call_id": call_id, "parent_call_id": parent, "agent_name": path, "depth": 1}
        self.events.append(kind(seq=count, time=100.0 + count, path=path, **common, **data))

    def call(self, path: str, call_id: str, parent: str, text: str, **data: Any) -> None:
        self.add(CallStartedEvent, path, call_id, parent, input={"input": text, "attachments": []}, **data)

    def tool(self, tool: str, result: Any, status: str = "success", key: str = "t", **args: Any) -> None:
        self.add(ToolCallEvent, tool_name=tool, tool_call_id=key, args=args)
        self.add(
            ToolResultEvent,
            tool_name=tool, tool_call_id=key, status=status, result=result, duration=0.01, size=1,
        )  # fmt: skip

    def finish(self, path: str, call_id: str, output: Any, status: str = "completed") -> None:
        self.add(CallFinishedEvent, path, call_id, status=status, output=output)


def journal() -> Journal:
    made = Journal()
    made.call("main", "m", "r", "Sum up the notes")
    made.tool("read_file", "milk", path="notes.txt")
    made.tool("send", "no terminal to ask on", "denied", "u", to="ann")
    made.add(ToolCallEvent, tool_name="judge", tool_call_id="j", args={"input": "milk"})
    made.call("main/judge", "m.j", "m", "milk", label="first")
    made.add(UsageEvent, "main/judge", "m.j", usage={"input_tokens": 1000, "output_tokens": 200, "cost_usd": 0.002})
    made.finish("main/judge", "m.j", "good")
    made.add(
        ToolResultEvent,
        tool_name="judge", tool_call_id="j", status="success", result="good", duration=2.0, size=4,
    )  # fmt: skip
    made.add(WarningEvent, message="the answer was cut")
    made.add(TextDoneEvent, text="Milk is good.")
    made.finish("main", "m", "Milk is good.")
    return made


def test_a_run_is_a_tree_of_calls_with_input_result_time_tokens_and_cost() -> None:
    tree = RunTree(journal().events)

    assert tree.draw(100) == [
        "main  Sum up the notes  12 s",
        '├─ ✓ read_file(path="notes.txt") → milk',
        '├─ ✗ send(to="ann") → denied: no terminal to ask on',
        "├─ judge  first  2.0 s · 1,200 tokens · $0.0020",
        "│  └─ → good",
        "├─ warning: the answer was cut",
        "└─ → Milk is good.",
    ]
    assert (tree.tokens, tree.cost) == (1200, 0.002)


def test_the_block_of_a_failed_run_is_below_the_tree() -> None:
    made = journal()
    error = {"type": "CassetteMissError", "message": "the input has changed", "block": "-Go\n+Go\x1b[2J!"}
    made.add(RunFailedEvent, status="provider_failed", error=error)

    assert RunTree(made.events).draw(100)[-3:] == [
        "✗ provider_failed: the input has changed",
        "  -Go",
        "  +Go\\x1b[2J!",
    ]


def test_the_same_tree_is_json_data() -> None:
    root = RunTree(journal().events).to_data()[0]

    assert (root["path"], root["input"]["input"], root["output"]) == ("main", "Sum up the notes", "Milk is good.")
    assert [(each["path"], each["label"], each["seconds"]) for each in root["calls"]] == [("main/judge", "first", 2.0)]


def test_every_line_of_a_tree_fits_the_terminal() -> None:
    for columns in (20, 40, 80):
        drawn = RunTree(journal().events).draw(columns)
        assert all(text_width(line) < columns for line in drawn)
    assert all(line.isascii() for line in RunTree(journal().events, lines=False).draw(200))


def test_a_failed_run_ends_with_its_reason_and_a_running_one_is_unfinished() -> None:
    made = Journal()
    made.call("main", "m", "r", "go")
    assert RunTree(made.events).draw(80) == ["main  go  unfinished"]

    made.finish("main", "m", None, "failed")
    made.add(RunFailedEvent, "", "r", None, status="failed", error={"type": "EntryError", "message": "it broke"})

    assert RunTree(made.events).draw(80) == ["main  go  failed · 1.0 s", "✗ failed: it broke"]
