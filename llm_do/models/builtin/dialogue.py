"""Prompts for a small model: the conversation as plain text, and the questions which tool to call with what arguments.

Small models have no template for tools, so calls and results become plain sentences.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from llm_do._startup.frozen import frozen
from llm_do.models.builtin.grammar import bounded_schema, schema_line

__all__ = ["Turns", "arguments_messages", "canonical_arguments", "choice_messages", "conversation", "past_calls"]

Turns = list[tuple[str, str]]
"""Role and text of each message, in order; after the system message, user and assistant alternate."""


@frozen
class PastCalls:
    """The tool calls since the last user message."""

    rounds: int
    """Responses that called tools."""

    calls: frozenset[tuple[str, str]]
    """The name and arguments of each call, the arguments as canonical JSON."""


def conversation(
    messages: Sequence[ModelMessage], parameters: ModelRequestParameters, persona: str | None = None
) -> Turns:
    """Convert a message history to turns of text."""
    system = [persona] if persona else []
    system += [part.content for part in parameters.instruction_parts or ()]
    if not parameters.instruction_parts:
        last = next((m for m in reversed(messages) if isinstance(m, ModelRequest) and m.instructions), None)
        system += [last.instructions] if last and last.instructions else []
    turns: Turns = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, SystemPromptPart):
                system.append(part.content)
            elif isinstance(part, UserPromptPart):
                _add(turns, "user", _user_text(part))
            elif isinstance(part, ToolReturnPart):
                _add(turns, "user", f"Result of {part.tool_name}: {part.model_response_str()}")
            elif isinstance(part, TextPart):
                _add(turns, "assistant", part.content)
            elif isinstance(part, ToolCallPart):
                _add(turns, "assistant", f"I call {part.tool_name}.")
    return [("system", "\n".join(system)), *turns] if system else turns


def past_calls(messages: Sequence[ModelMessage]) -> PastCalls:
    """Collect the tool calls since the last user message."""
    rounds, calls = 0, set[tuple[str, str]]()
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            tool_calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            rounds += bool(tool_calls)
            calls.update((part.tool_name, canonical_arguments(part.args_as_dict())) for part in tool_calls)
        elif any(isinstance(part, UserPromptPart) for part in message.parts):
            break
    return PastCalls(rounds, frozenset(calls))


def canonical_arguments(arguments: Any) -> str:
    """Serialize arguments to JSON so that equal arguments give equal text."""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def choice_messages(turns: Turns, tools: Sequence[ToolDefinition], final: str | None) -> Turns:
    """Ask the model which tool to use."""
    lines = [f"- {tool.name}: {_first_line(tool.description)}" for tool in tools]
    if final:
        lines.append(f"- {final}: answer without a tool")
    question = "Tools:\n{}\n\nWhich one answers the request? Write its name.".format("\n".join(lines))
    messages = list(turns)
    _add(messages, "user", question)
    return messages


def arguments_messages(turns: Turns, tool: ToolDefinition) -> Turns:
    """Ask the model to extract a tool's arguments from the user's messages and earlier results."""
    text = "\n".join(content for role, content in turns if role == "user")
    shape = schema_line(bounded_schema(tool.parameters_json_schema))
    what = _first_line(tool.description)
    task = f"Extract the arguments of {tool.name}{f' ({what})' if what else ''} from the request as JSON: {shape}"
    return [*[turn for turn in turns[:1] if turn[0] == "system"], ("user", f"{text}\n\n{task}")]


def _add(turns: Turns, role: str, text: str) -> None:
    """Append a message, joining it to the last one if both have the same role: templates need alternating roles."""
    if turns and turns[-1][0] == role:
        turns[-1] = (role, f"{turns[-1][1]}\n\n{text}")
    else:
        turns.append((role, text))


def _user_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(item if isinstance(item, str) else f"[{type(item).__name__} left out]" for item in part.content)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
