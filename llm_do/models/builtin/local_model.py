"""`local`: a small model that runs in this process, without a key and without a network.

It is good for extracting, classifying and one forced call; not for several steps in a row. What it writes under a
schema fits the schema, because decoding admits nothing else. A request with tools takes two or three generations:
which tool, its arguments, or the answer. It ends by a rule, not by the model's judgement: after a round of tools, or
when it would repeat a call, it answers.
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
"""Rounds of tools before it must answer: of the built-in model, of a user's file."""

SAMPLING = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed", "stop_sequences": "stop"}

OnText = Callable[[str], None]


class LocalModel(Model[None]):
    """A model that generates in this process.

    Args:
        path: A GGUF file; None takes the built-in model's weights, wherever they are.
        notice: Told once, at the first request, that the built-in model is of demonstration quality.

    Raises:
        ModelUnavailableError: The file isn't there, or the package that runs it isn't installed.
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
            raise _missing()
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
            finish_reason="length" if answer.cut else "stop",
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
        """Choose a tool, or answer: by an output tool, under a schema, or in words."""
        past = past_calls(messages)
        tools = parameters.declared_function_tools if past.rounds < ROUNDS[self._built_in] else []
        if tool := await steps.choose(tools, FINAL):
            arguments = await steps.arguments(tool)
            if (tool.name, canonical_arguments(arguments)) not in past.calls:
                return steps.called(tool, arguments)
        if parameters.output_tools and not parameters.allow_text_output:
            output = await steps.choose(parameters.output_tools, None)
            tool = output or parameters.output_tools[0]
            text = await steps.write(steps.turns, tool.parameters_json_schema, JSON_TOKENS)
            return steps.called(tool, _parsed(text))
        schema = parameters.output_object.json_schema if parameters.output_object else None
        text = await steps.write(steps.turns, schema, JSON_TOKENS if schema else TEXT_TOKENS, on_text)
        return steps.text_answer(text)

    async def generate(self, prompt: Prompt, on_text: OnText | None = None) -> Generation:
        """Answer one prompt; see `Engine.generate`."""
        return await self._engine.generate(prompt, on_text)


@frozen
class Answer:
    """What a request came to.

    Args:
        part: Text or a tool call.
        usage: Tokens of all its generations.
        cut: Whether the last one was cut off.
    """

    part: TextPart | ToolCallPart
    usage: RequestUsage
    cut: bool


class _Steps:
    """The generations of one request, and what they cost together."""

    def __init__(self, model: LocalModel, settings: ModelSettings | None, turns: Turns) -> None:
        self.turns = turns
        self._model = model
        chosen = cast("dict[str, Any]", settings or {})
        self._options = {name: chosen[key] for key, name in SAMPLING.items() if chosen.get(key) is not None}
        self._max_tokens = cast("int | None", chosen.get("max_tokens"))
        self._usage = RequestUsage()
        self._cut = False

    async def write(
        self, turns: Turns, schema: JsonSchema | None, max_tokens: int, on_text: OnText | None = None
    ) -> str:
        prompt = Prompt(turns, self._max_tokens or max_tokens, schema, self._options)
        made = await self._model.generate(prompt, on_text)
        self._usage += RequestUsage(
            input_tokens=made.prompt_tokens,
            output_tokens=made.completion_tokens,
            cache_read_tokens=made.cached_tokens,
        )
        self._cut = made.cut
        return made.text

    async def choose(self, tools: list[ToolDefinition], final: str | None) -> ToolDefinition | None:
        """Let the model choose a tool; None is `final`, and where there is nothing to choose."""
        if not tools or (len(tools) == 1 and final is None):
            return None
        names = [tool.name for tool in tools]
        text = await self.write(
            choice_messages(self.turns, tools, final), {"enum": [*names, *([final] if final else [])]}, JSON_TOKENS
        )
        chosen = _parsed(text)
        return next((tool for tool in tools if tool.name == chosen), None)

    async def arguments(self, tool: ToolDefinition) -> Any:
        if not tool.parameters_json_schema.get("properties"):
            return {}
        text = await self.write(arguments_messages(self.turns, tool), tool.parameters_json_schema, JSON_TOKENS)
        return _parsed(text)

    def called(self, tool: ToolDefinition, arguments: Any) -> Answer:
        args = cast("dict[str, Any] | str", arguments if isinstance(arguments, dict) else json.dumps(arguments))
        return Answer(ToolCallPart(tool.name, args), self._usage, cut=False)

    def text_answer(self, text: str) -> Answer:
        return Answer(TextPart(text), self._usage, self._cut)


@dataclass
class LocalStream(OwnStream):
    """An answer as it is written."""

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
        self.finish_reason = "length" if answer.cut else "stop"

    async def close_stream(self) -> None:
        self.answering.cancel()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ModelError(
            f"the local model's answer was cut off before its JSON ended: {text[-60:]!r}",
            hint="raise `max_tokens` in `model_settings`, or ask for less",
        ) from error


def _missing() -> ModelUnavailableError:
    if chosen := weights.configured_model():
        return ModelUnavailableError(
            f"LLM_DO_LOCAL_MODEL names {chosen}, which is not a file", hint="name an existing GGUF file, or unset it"
        )
    return ModelUnavailableError(
        "the local model's weights are not on this machine",
        hint="`llm-do models pull` fetches them (93 MB), and `pip install 'llm-do[local]'` what runs them",
    )
