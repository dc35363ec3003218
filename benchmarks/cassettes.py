"""The processor time of a request's key: early in a conversation, and late in one."""

from __future__ import annotations

import time

from pydantic_ai import ToolDefinition
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters

from benchmarks.measure import Figure
from llm_do.runtime.record.sent_request import RequestReader

STEPS = 200
TARGET_US = 100.0
TARGET_RATIO = 3.0

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def costs(steps: int, tools: int = 10) -> list[float]:
    """The microseconds that each request of a conversation costs."""
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=f"read_{number}", description="Read a file.", parameters_json_schema=_SCHEMA)
            for number in range(tools)
        ]
    )
    reader = RequestReader()
    messages: list[ModelMessage] = [ModelRequest([UserPromptPart("Read all files.")])]
    found: list[float] = []
    for step in range(steps):
        start = time.process_time_ns()
        reader.read("openai:gpt-5", messages, {"temperature": 0.1}, parameters)
        found.append((time.process_time_ns() - start) / 1000)
        name = f"{step}"
        messages.append(ModelResponse([ToolCallPart("read_1", {"path": f"{step}.txt"}, name)]))
        messages.append(ModelRequest([ToolReturnPart("read_1", "some text " * 20, name)]))
    return found


def main() -> list[Figure]:
    """Measure the key of the second request and of the last of a long conversation."""
    runs = [costs(STEPS) for _ in range(20)]
    early = min(sum(run[1:6]) / 5 for run in runs)
    late = min(sum(run[-5:]) / 5 for run in runs)
    return [
        Figure(f"key of a request at step {STEPS}", late, TARGET_US, " us"),
        Figure(f"key at step {STEPS}, against step 2", late / early, TARGET_RATIO, ""),
    ]
