"""Models that follow a test's script, streamed or not, and keep the requests."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

__all__ = ["Asked", "Script", "Turn", "call", "script"]

Turn: TypeAlias = (
    "str | ToolCallPart | Sequence[ToolCallPart | TextPart] | ModelResponse | Exception | Callable[..., Any]"
)
"""A text; tool calls; a response; an exception; or a function `(messages, info)`, sync or async, that returns one."""


@dataclass(frozen=True)
class Asked:
    """One request that the model received."""

    messages: list[ModelMessage]
    info: AgentInfo

    @property
    def tools(self) -> list[str]:
        return [tool.name for tool in self.info.function_tools]

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.info.model_settings or {})

    @property
    def prompt(self) -> Any:
        """The content of the last user part."""
        return [
            part.content for message in self.messages for part in message.parts if isinstance(part, UserPromptPart)
        ][-1]


@dataclass
class Script:
    """Answers by the number of responses since the last prompt, so that any number of runs may share it.

    Past the last turn it repeats the last one. An exception stands before the turn that answers after it, once.
    """

    turns: list[Any]
    failures: dict[int, list[Exception]]
    asked: list[Asked] = field(default_factory=list)

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(Asked(list(messages), info))
        index = 0
        for message in messages:
            if message.kind == "response":
                index += 1
            elif any(isinstance(part, UserPromptPart) for part in message.parts):
                index = 0
        index = min(index, len(self.turns) - 1)
        if self.failures.get(index):
            raise self.failures[index].pop(0)
        turn = self.turns[index]
        while callable(turn):
            turn = turn(messages, info)
            if inspect.isawaitable(turn):
                turn = await turn
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, ModelResponse):
            return turn
        if isinstance(turn, str):
            return ModelResponse([TextPart(turn)] if turn else [])
        return ModelResponse([turn] if isinstance(turn, ToolCallPart) else list(turn))

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        response = await self.answer(messages, info)
        yielded = False
        for index, part in enumerate(response.parts):
            yielded = True
            if isinstance(part, TextPart):
                middle = len(part.content) // 2
                for piece in (part.content[:middle], part.content[middle:]):
                    if piece:
                        yield piece
            elif isinstance(part, ToolCallPart):
                args = part.args if isinstance(part.args, str) else json.dumps(part.args)
                yield {index: DeltaToolCall(part.tool_name, args, tool_call_id=part.tool_call_id)}
        if not yielded:
            yield ""


class ScriptedModel(FunctionModel):
    """A `FunctionModel` that exposes its script."""

    def __init__(self, script: Script) -> None:
        super().__init__(script.answer, stream_function=script.stream, model_name="scripted")
        self.script = script

    @property
    def asked(self) -> list[Asked]:
        return self.script.asked


def script(*turns: Turn) -> ScriptedModel:
    """Create a model that answers with these turns in order."""
    answers: list[Any] = []
    failures: dict[int, list[Exception]] = {}
    for turn in turns:
        if isinstance(turn, Exception):
            failures.setdefault(len(answers), []).append(turn)
        else:
            answers.append(turn)
    if not answers:
        answers = [turns[-1]]
        failures = {0: list(turns[:-1])}  # type: ignore[arg-type]
    elif isinstance(turns[-1], Exception):
        answers.append(turns[-1])
        failures.pop(len(answers) - 1, None)
    return ScriptedModel(Script(answers, failures))


def call(name: str, args: Any = None, id: str | None = None, /, **fields: Any) -> ToolCallPart:
    """Create a tool call; arguments may be keywords, data, or raw JSON text."""
    arguments = fields if args is None else args
    if id is None:
        return ToolCallPart(name, arguments)
    return ToolCallPart(name, arguments, tool_call_id=id)
