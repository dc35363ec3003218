"""What a run did, as values that tests read: its tool calls, its questions, its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen

if TYPE_CHECKING:
    from llm_do.errors import ReplayError
    from llm_do.runtime.approval.broker import Answer
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.record.results import RunResult

__all__ = ["Played", "PlayedTwice", "Question", "ToolRun", "tool_runs"]


@frozen
class ToolRun:
    """One tool call of a run.

    Args:
        tool: The tool's name, as the model knows it.
        args: The arguments.
        path: Call path of the agent that called it.
        status: `success`, `failed`, `denied`, `refused`, `timed_out` or `cancelled`.
        result: The result that the model received.
    """

    tool: str
    args: Mapping[str, Any]
    path: str
    status: str
    result: Any


@frozen
class Question:
    """A request for approval, and the answer that the test gave.

    Args:
        tool: The tool.
        args: Its arguments.
        path: Call path of the agent that called it.
        reason: Why the call needed approval.
        answer: The answer.
    """

    tool: str
    args: Mapping[str, Any]
    path: str
    reason: str
    answer: Answer


@frozen
class Played:
    """What a run or a conversation of several runs did.

    Args:
        result: The result of the run, however it ended, or of the last run of a conversation.
        calls: Its tool calls, in the order in which they ended.
        questions: Its requests for approval.
        events: All its events.
        turns: One for each input of a conversation; empty for a single run.
    """

    result: RunResult
    calls: list[ToolRun] = field(default_factory=list[ToolRun])
    questions: list[Question] = field(default_factory=list[Question])
    events: list[Event] = field(default_factory=list["Event"], repr=False)
    turns: list[Played] = field(default_factory=list["Played"], repr=False)

    @property
    def output(self) -> Any:
        """What the entry returned."""
        return self.result.output

    @property
    def status(self) -> str:
        """How the run ended: `completed`, `failed`, `denied`, ..."""
        return self.result.status

    @property
    def tools(self) -> list[str]:
        """The names of the called tools, including refused and denied calls."""
        return [call.tool for call in self.calls]

    @property
    def denied(self) -> list[str]:
        """The names of the tools whose calls were denied."""
        results = [turn.result for turn in self.turns] or [self.result]
        return [record.tool for result in results for record in result.denials]

    def call(self, tool: str) -> ToolRun:
        """Return the only call of a tool.

        Raises:
            AssertionError: There was no call, or more than one.
        """
        found = [call for call in self.calls if call.tool == tool]
        if len(found) != 1:
            raise AssertionError(f"{tool} was called {len(found)} times; calls: {', '.join(self.tools) or 'none'}")
        return found[0]


@frozen
class PlayedTwice:
    """What a run did, and how its replay differed.

    Args:
        played: What it did.
        difference: What wasn't the same; None if everything was, or nothing was replayed. It ends a conversation.
    """

    played: Played
    difference: ReplayError | None = None


def tool_runs(events: Sequence[Event]) -> list[ToolRun]:
    """The tool calls that events tell of, in the order in which they ended."""
    import json

    from llm_do.runtime.record.events.tool_events import ToolCallEvent, ToolResultEvent

    arguments: dict[tuple[str, str], Any] = {}
    finished: list[ToolRun] = []
    for event in events:
        if isinstance(event, ToolCallEvent):
            arguments[event.call_id, event.tool_call_id] = event.args
        elif isinstance(event, ToolResultEvent):
            args = arguments.get((event.call_id, event.tool_call_id), {}) if event.args is None else event.args
            if isinstance(args, str):
                try:
                    args = json.loads(args)
                except ValueError:
                    args = {"": args}
            finished.append(ToolRun(event.tool_name, args, event.path, event.status, event.result))
    return finished
