"""Runs of an agent with toolkits in one line, with what the model was sent and how its calls ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ToolReturnPart

from llm_do import RunResult, Runtime
from tests.support.history import strict
from tests.support.runs import Heard, agent, carry_out, heard, runtime_of
from tests.support.scripted import Turn, script

__all__ = ["Played", "play"]


@dataclass
class Played:
    """A run: its result, its requests and its events."""

    result: RunResult
    asked: list[Any]
    ear: Heard
    runtime: Runtime

    @property
    def shown(self) -> list[list[str]]:
        """The tools that the model was shown, request by request."""
        return [each.tools for each in self.asked]

    def schema(self, tool: str, request: int = -1) -> dict[str, Any]:
        """The schema that the model was shown."""
        tools = {each.name: each for each in self.asked[request].info.function_tools}
        return tools[tool].parameters_json_schema

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Tool and status of each call, in the order of their results."""
        return [(event.tool_name, event.status) for event in self.ear.of("tool_result")]

    @property
    def statuses(self) -> list[str]:
        return [status for _, status in self.ends]

    @property
    def outputs(self) -> list[str]:
        """The tool outputs that the model read, in the order of its calls."""
        parts = [part for message in self.result.messages for part in message.parts]
        return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def play(*turns: Turn, kits: Sequence[Any] = (), run: dict[str, Any] | None = None, **fields: Any) -> Played:
    """Run an agent with these toolkits and a scripted model; fields may be those of the agent or the project."""
    model = script(*turns)
    own = {
        key: fields.pop(key)
        for key in list(fields)
        if key in ("tools", "states", "gate", "hooks", "max_steps", "loop_threshold")
    }
    runtime = runtime_of([agent("main", model, toolsets=list(kits), **own)], **fields)
    ear = heard(runtime)
    result = carry_out(runtime, **(run or {}))
    strict(result.messages)
    return Played(result, model.asked, ear, runtime)
