"""`script:PATH`: a model that takes its answers from a file, turn by turn.

The number of answers in the history determines the next turn, so a script keeps no state between runs and can serve any
number of them at once.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.native_tools import SUPPORTED_NATIVE_TOOLS, AbstractNativeTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from llm_do.errors import ModelError
from llm_do.models.builtin.script_file import Script, ScriptedError, Turn
from llm_do.models.builtin.streamed_answer import OwnStream
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.settings import ModelSettings

__all__ = ["ScriptModel"]

MAX_EXCERPT = 200
AGENT_KEY = "agent"
"""The key of a response's details that names the agent."""

CATEGORIES = {
    401: ModelAuthenticationError,
    403: ModelAuthenticationError,
    404: ModelNotFoundError,
    429: ModelRateLimitError,
    503: ModelUnavailableError,
}


class ScriptModel(Model[None]):
    """A model that answers one agent's requests from a script."""

    def __init__(self, script: Script, agent: str) -> None:
        super().__init__(profile=ModelProfile(supports_json_schema_output=True, supports_json_object_output=True))
        self._script = script
        self._agent = agent
        self._failed: dict[tuple[str | None, int], int] = {}

    @property
    def provider(self) -> None:
        return None

    @property
    def model_name(self) -> str:
        return f"script:{self._script.path.name}"

    @property
    def system(self) -> str:
        return "script"

    @classmethod
    def supported_native_tools(cls) -> frozenset[type[AbstractNativeTool]]:
        return SUPPORTED_NATIVE_TOOLS

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        turn = await self._turn(messages)
        return ModelResponse(
            parts=_parts(turn, messages, parameters),
            usage=_usage(turn, messages),
            model_name=self.model_name,
            provider_name=self.system,
            provider_details={AGENT_KEY: self._agent},
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        turn = await self._turn(messages)
        yield ScriptedStream(
            model_request_parameters=parameters,
            name=self.model_name,
            system=self.system,
            parts=_parts(turn, messages, parameters),
            answer_usage=_usage(turn, messages),
            agent=self._agent,
        )

    async def _turn(self, messages: Sequence[ModelMessage]) -> Turn:
        """Find the next turn for this history; raise the scripted error that precedes it, if one is left."""
        prompt = _latest_prompt(messages)
        steps = self._script.steps(self._agent)
        if steps is None:
            raise self._mismatch(None, f"has no turns for agent {self._agent!r}", prompt)
        answered = sum(isinstance(message, ModelResponse) and self._is_own(message) for message in messages)
        if answered >= len(steps):
            problem = f"has {with_count(len(steps), 'turn')} for agent {self._agent!r}, which made another request"
            raise self._mismatch(None, problem, prompt)
        step = steps[answered]
        failed = (messages[-1].run_id, answered)
        count = self._failed.get(failed, 0)
        if error := _next_error(step.errors, count):
            self._failed[failed] = count + 1
            raise self._failure(error)
        self._failed.pop(failed, None)
        if step.turn is None:
            problem = f"ends with an error for agent {self._agent!r}, which made another request"
            raise self._mismatch(None, problem, prompt)
        cases = step.turn.cases or (step.turn,)
        turn = next((case for case in cases if case.expect in prompt), None)
        if turn is None:
            expected = " or ".join(repr(case.expect) for case in cases)
            raise self._mismatch(step.turn.line, f"expects {expected} from agent {self._agent!r}", prompt)
        await asyncio.sleep(turn.delay)
        return turn

    def _is_own(self, response: ModelResponse) -> bool:
        """Whether the response is this agent's; after a handoff the history also holds those of other agents."""
        return (response.provider_details or {}).get(AGENT_KEY, self._agent) == self._agent

    def _mismatch(self, line: int | None, problem: str, prompt: str) -> ModelError:
        excerpt = " ".join(prompt.split())[:MAX_EXCERPT]
        return ModelError(
            f"the script {self._script.path.name} {problem}; the prompt was {excerpt!r}",
            hint="add a turn to the script, or correct its `expect`",
            file=str(self._script.path),
            line=line,
        )

    def _failure(self, error: ScriptedError) -> ModelAPIError:
        if error.status is None:
            return ModelConnectionError(self.model_name, error.message)
        fallback = ModelServerError if error.status >= 500 else ModelRequestRejectedError
        return ModelHTTPError.for_category(
            CATEGORIES.get(error.status, fallback),
            status_code=error.status,
            model_name=self.model_name,
            body={"error": {"message": error.message}},
            retry_after=error.retry_after,
        )


@dataclass
class ScriptedStream(OwnStream):
    """A scripted answer, streamed word by word."""

    parts: list[ModelResponsePart]
    answer_usage: RequestUsage
    agent: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self.provider_details = {AGENT_KEY: self.agent}

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for number, part in enumerate(self.parts):
            if isinstance(part, TextPart):
                for piece in re.findall(r"\S+\s*|\s+", part.content):
                    for event in self._parts_manager.handle_text_delta(vendor_part_id=number, content=piece):
                        yield event
            else:
                yield self._parts_manager.handle_part(vendor_part_id=number, part=part)
        self._usage = self.answer_usage


def _next_error(errors: Sequence[ScriptedError], count: int) -> ScriptedError | None:
    """Return the error to raise after `count` failed requests; None if none is left."""
    for error in errors:
        if count < error.times:
            return error
        count -= error.times
    return None


def _parts(turn: Turn, messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> list[ModelResponsePart]:
    values = {"{input}": _last(messages, UserPromptPart), "{tool}": _last(messages, ToolReturnPart)}
    parts: list[ModelResponsePart] = []
    if turn.text is not None:
        parts.append(TextPart(_fill_in(turn.text, values)))
    for call in turn.tools:
        arguments = cast("dict[str, Any] | str", _fill_in(call.args, values))
        part = ToolCallPart(call.name, arguments)
        parts.append(ToolCallPart(call.name, arguments, tool_call_id=call.id) if call.id else part)
    if turn.has_output:
        parts.append(_output(_fill_in(turn.output, values), parameters))
    return parts


def _output(value: Any, parameters: ModelRequestParameters) -> ModelResponsePart:
    if not parameters.output_tools:
        return TextPart(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    tool = parameters.output_tools[0]
    arguments: object = {tool.outer_typed_dict_key: value} if tool.outer_typed_dict_key else value
    if isinstance(arguments, dict):
        return ToolCallPart(tool.name, cast("dict[str, Any]", arguments))
    return ToolCallPart(tool.name, json.dumps(arguments))


def _fill_in(value: Any, values: Mapping[str, str]) -> Any:
    """Fill in the placeholders in every text of a JSON-like value."""
    if isinstance(value, str):
        return re.sub(r"\{(?:input|tool)\}", lambda match: values[match[0]], value)
    if isinstance(value, list):
        return [_fill_in(item, values) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _fill_in(item, values) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _latest_prompt(messages: Sequence[ModelMessage]) -> str:
    """Return the text of the user prompts and tool results since the last response."""
    texts: list[str] = []
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            break
        texts[:0] = [_text(part) for part in message.parts if isinstance(part, UserPromptPart | ToolReturnPart)]
    return "\n".join(texts)


def _last(messages: Sequence[ModelMessage], kind: type[UserPromptPart] | type[ToolReturnPart]) -> str:
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, kind):
                return _text(part)
    return ""


def _text(part: UserPromptPart | ToolReturnPart) -> str:
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()
    if isinstance(part.content, str):
        return part.content
    return "\n".join(item for item in part.content if isinstance(item, str))


def _usage(turn: Turn, messages: Sequence[ModelMessage]) -> RequestUsage:
    tokens = turn.usage or (10 * len(messages), 10)
    return RequestUsage(input_tokens=tokens[0], output_tokens=tokens[1])
