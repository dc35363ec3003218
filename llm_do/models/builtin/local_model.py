"""`local`: a small model that runs in this process, without a key and without a network.

It can extract, classify and make a single tool call, but not work through several steps. Constrained decoding makes
sure that an answer with a schema matches it. A request with tools takes two or three generations: the choice of a tool,
then its arguments or the answer. A rule, not the model, decides when it is done: after a round of tools, or when it
would repeat a call, it answers.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.exceptions import ModelTimeoutError
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, check_allow_model_requests
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from llm_do._extras import has_extra, install_command
from llm_do._startup.frozen import frozen
from llm_do.errors import ModelError, ModelUnavailableError
from llm_do.models.builtin import weights
from llm_do.models.builtin.dialogue import (
    Turns,
    arguments_messages,
    canonical_arguments,
    choice_messages,
    conversation,
    past_calls,
)
from llm_do.models.builtin.engine import Generation, Prompt, check_runtime, engine_for
from llm_do.models.builtin.grammar import JsonSchema
from llm_do.models.builtin.streamed_answer import OwnStream
from llm_do.models.providers.model_names import expand_user

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

__all__ = ["LocalModel"]

PERSONA = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
NOTICE = "the local model (SmolLM2, 135M parameters) is of demonstration quality: expect wrong answers"
FINAL = "final"
TEXT_TOKENS = 400
JSON_TOKENS = 800
ROUNDS = {True: 1, False: 4}
"""Rounds of tools before it must answer, by whether it is the built-in model."""

SAMPLING = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed", "stop_sequences": "stop"}

OnText = Callable[[str], None]


class LocalModel(Model[None]):
    """A model that generates in this process, from the GGUF file at `path` or else from the built-in model's weights.

    Each request to the built-in model calls `notice` with a sentence about its quality.
    """

    def __init__(self, path: str | None = None, *, notice: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(
            profile=ModelProfile(
                supports_json_schema_output=True,
                supports_json_object_output=True,
                supports_image_input=False,
            )
        )
        found = expand_user(path) if path else weights.find_weights()
        if found is None:
            raise _no_weights_error()
        if not os.path.isfile(found):
            raise ModelUnavailableError(
                f"there is no file {found} for the model `local:{path}`",
                hint="name an existing GGUF file: `local:PATH.gguf`",
            )
        check_runtime()
        self._built_in = found.name == weights.NAME
        self._engine = engine_for(found)
        self._notice = notice

    @property
    def provider(self) -> None:
        return None

    @property
    def model_name(self) -> str:
        return self._engine.path.stem

    @property
    def system(self) -> str:
        return "local"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        check_allow_model_requests()
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        answer = await self._answer(messages, settings, parameters, None)
        return ModelResponse(
            parts=[answer.part],
            usage=answer.usage,
            model_name=self.model_name,
            provider_name=self.system,
            finish_reason="length" if answer.truncated else "stop",
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        check_allow_model_requests()
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        answering = asyncio.create_task(self._answer(messages, settings, parameters, pieces.put_nowait))
        answering.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            yield LocalStream(parameters, self.model_name, self.system, answering, pieces)
        finally:
            answering.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await answering

    async def _answer(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        on_text: OnText | None,
    ) -> Answer:
        if self._built_in:
            self._notice(NOTICE)
        steps = _Steps(self, settings, conversation(messages, parameters, PERSONA if self._built_in else None))
        timeout = (settings or {}).get("timeout")
        limit = asyncio.timeout(timeout if isinstance(timeout, int | float) else None)
        try:
            async with limit:
                return await self._part(steps, messages, parameters, on_text)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ModelTimeoutError(self.model_name, f"no answer within {timeout} s") from error

    async def _part(
        self, steps: _Steps, messages: list[ModelMessage], parameters: ModelRequestParameters, on_text: OnText | None
    ) -> Answer:
        """Call a tool, or answer: with an output tool, as JSON by a schema, or as text."""
        past = past_calls(messages)
        tools = parameters.declared_function_tools if past.rounds < ROUNDS[self._built_in] else []
        if tool := await steps.choose(tools, FINAL):
            arguments = await steps.arguments(tool)
            if (tool.name, canonical_arguments(arguments)) not in past.calls:
                return steps.call_answer(tool, arguments)
        if parameters.output_tools and not parameters.allow_text_output:
            tool = await steps.choose(parameters.output_tools, None) or parameters.output_tools[0]
            text = await steps.write(steps.turns, tool.parameters_json_schema, JSON_TOKENS)
            return steps.call_answer(tool, _parse_json(text))
        schema = parameters.output_object.json_schema if parameters.output_object else None
        text = await steps.write(steps.turns, schema, JSON_TOKENS if schema else TEXT_TOKENS, on_text)
        return steps.text_answer(text)

    async def generate(self, prompt: Prompt, on_text: OnText | None = None) -> Generation:
        """Answer one prompt with the model's engine."""
        return await self._engine.generate(prompt, on_text)


@frozen
class Answer:
    """The answer to a request, and the tokens of all its generations."""

    part: TextPart | ToolCallPart
    usage: RequestUsage
    truncated: bool
    """Whether the last generation was cut off."""


class _Steps:
    """The generations of one request, and their total usage."""

    def __init__(self, model: LocalModel, settings: ModelSettings | None, turns: Turns) -> None:
        self.turns = turns
        self._model = model
        values = cast("dict[str, Any]", settings or {})
        self._options = {name: values[key] for key, name in SAMPLING.items() if values.get(key) is not None}
        self._max_tokens = cast("int | None", values.get("max_tokens"))
        self._usage = RequestUsage()
        self._truncated = False

    async def write(
        self, turns: Turns, schema: JsonSchema | None, max_tokens: int, on_text: OnText | None = None
    ) -> str:
        prompt = Prompt(turns, self._max_tokens or max_tokens, schema, self._options)
        generation = await self._model.generate(prompt, on_text)
        self._usage += RequestUsage(
            input_tokens=generation.prompt_tokens,
            output_tokens=generation.completion_tokens,
            cache_read_tokens=generation.cached_tokens,
        )
        self._truncated = generation.truncated
        return generation.text

    async def choose(self, tools: list[ToolDefinition], final: str | None) -> ToolDefinition | None:
        """Let the model choose a tool; None if it chooses `final` or there is no choice to make."""
        if not tools or (len(tools) == 1 and final is None):
            return None
        names = [tool.name for tool in tools]
        text = await self.write(
            choice_messages(self.turns, tools, final), {"enum": [*names, *([final] if final else [])]}, JSON_TOKENS
        )
        name = _parse_json(text)
        return next((tool for tool in tools if tool.name == name), None)

    async def arguments(self, tool: ToolDefinition) -> Any:
        if not tool.parameters_json_schema.get("properties"):
            return {}
        text = await self.write(arguments_messages(self.turns, tool), tool.parameters_json_schema, JSON_TOKENS)
        return _parse_json(text)

    def call_answer(self, tool: ToolDefinition, arguments: Any) -> Answer:
        args = cast("dict[str, Any] | str", arguments if isinstance(arguments, dict) else json.dumps(arguments))
        return Answer(ToolCallPart(tool.name, args), self._usage, truncated=False)

    def text_answer(self, text: str) -> Answer:
        return Answer(TextPart(text), self._usage, self._truncated)


@dataclass
class LocalStream(OwnStream):
    """An answer, streamed as it is generated."""

    answering: asyncio.Task[Answer]
    pieces: asyncio.Queue[str | None]

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        while (piece := await self.pieces.get()) is not None:
            for event in self._parts_manager.handle_text_delta(vendor_part_id="text", content=piece):
                yield event
        answer = await self.answering
        if isinstance(answer.part, ToolCallPart):
            yield self._parts_manager.handle_part(vendor_part_id="call", part=answer.part)
        self._usage = answer.usage
        self.finish_reason = "length" if answer.truncated else "stop"

    async def close_stream(self) -> None:
        self.answering.cancel()


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ModelError(
            f"the local model's answer was cut off before its JSON ended: {text[-60:]!r}",
            hint="raise `max_tokens` in `model_settings`, or ask for less",
        ) from error


def _no_weights_error() -> ModelUnavailableError:
    if chosen := weights.configured_model():
        return ModelUnavailableError(
            f"LLM_DO_LOCAL_MODEL names {chosen}, which is not a file", hint="name an existing GGUF file, or unset it"
        )
    return ModelUnavailableError(
        "the local model's weights are not on this machine",
        hint="run `llm-do models pull` to download them (93 MB)"
        + ("" if has_extra("local") else f", and `{install_command('local')}` to run them"),
    )
