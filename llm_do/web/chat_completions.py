"""`ChatCompletions`: agents as models of OpenAI's chat protocol. A client sees what an agent says, not its tool calls.

This protocol has no way to ask a person, so a call that needs approval is denied with the reason.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from llm_do.errors import InputError, LlmDoError
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import RunResult, Usage
from llm_do.runtime.record.run_stream import RunStream
from llm_do.runtime.runtime import Runtime
from llm_do.text.output_text import output_text
from llm_do.web.requests import BadRequestError, json_body, user_of
from llm_do.web.served_project import ServedProject

__all__ = ["ChatCompletions"]

NOT_HERE = ("audio", "function_call", "functions", "modalities", "prediction", "tool_choice", "tools")
"""What a client may ask of a model and not of an agent, which has its own tools and output."""


class ChatCompletions:
    """The routes below `/v1`.

    Args:
        projects: The projects. If there are several, the name of a model begins with that of its project.
    """

    def __init__(self, projects: Sequence[ServedProject]) -> None:
        prefix = len(projects) > 1
        self._models = {
            f"{project.name}/{entry}" if prefix else entry: (project, entry)
            for project in projects
            for entry in project.entries()
        }
        self.routes = [
            Route("/v1/models", self.models, methods=["GET"]),
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
        ]

    async def models(self, request: Request) -> Response:
        """List what can be run as models."""
        found = [{"id": name, "object": "model", "created": 0, "owned_by": "llm-do"} for name in self._models]
        return JSONResponse({"object": "list", "data": found})

    async def complete(self, request: Request) -> Response:
        """Run an agent, a flow or a function with the last message as its input."""
        asked = _Asked.read(await json_body(request))
        if asked.model not in self._models:
            raise BadRequestError(f"there is no model {asked.model!r}; GET /v1/models lists those there are", 404)
        project, entry = self._models[asked.model]
        chosen = None if entry == project.project.entry.name else entry
        runtime = Runtime(project.project, approvals=RunApprovalPolicy(), record=True)
        stream = runtime.stream(asked.prompt, entry=chosen, messages=asked.history or None, user_id=user_of(request))
        events = aiter(stream)
        try:
            first = await anext(events)
        except InputError as error:
            await runtime.aclose()
            raise BadRequestError(error.message, 400) from error
        except BaseException:
            await runtime.aclose()
            raise
        answer = _Answer(asked, runtime, stream, first, events)
        if asked.stream:
            return StreamingResponse(answer.chunks(), media_type="text/event-stream")
        result = await answer.result()
        if result.error is not None:
            return _failed(result)
        return JSONResponse(answer.completion(result))


@dataclass(frozen=True)
class _Asked:
    """What a client asks for."""

    model: str
    prompt: str
    history: list[dict[str, Any]]
    stream: bool
    usage: bool

    @classmethod
    def read(cls, body: dict[str, Any]) -> _Asked:
        """Read a request.

        Raises:
            BadRequestError: It can't be carried out.
        """
        model, messages = body.get("model"), body.get("messages")
        if not isinstance(model, str):
            raise BadRequestError("`model` has to be a text", 400)
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in cast("list[object]", messages)):
            raise BadRequestError("`messages` has to be a list of objects", 400)
        found = [_with_text(each) for each in cast("list[dict[str, Any]]", messages)]
        if not found or found[-1].get("role") != "user":
            raise BadRequestError("the last message has to be the user's", 400)
        if missing := _without_result(found[:-1]):
            calls = ", ".join(map(repr, missing))
            raise BadRequestError(
                f"the results of calls are missing: {calls}; add a message with role 'tool' for each", 400
            )
        for name in NOT_HERE:
            if body.get(name):
                raise BadRequestError(f"an agent doesn't take {name!r}: it has its own tools and output", 400)
        if body.get("n", 1) not in (None, 1):
            raise BadRequestError("`n` has to be 1", 400)
        form: object = body.get("response_format")
        if form is not None and form != {"type": "text"}:
            raise BadRequestError("an agent doesn't take 'response_format': it has an output of its own", 400)
        stream: Any = body.get("stream", False)
        options: object = body.get("stream_options") or dict[str, Any]()
        if not isinstance(stream, bool | None) or not isinstance(options, dict):
            raise BadRequestError("`stream` has to be true or false, and `stream_options` an object", 400)
        usage = bool(cast("dict[str, Any]", options).get("include_usage"))
        return cls(model, found[-1]["content"], found[:-1], bool(stream), usage)


def _without_result(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The ids of the last calls that have no result in a history, after which no model can be asked to continue."""
    answered: set[object] = set()
    for message in reversed(messages):
        calls: object = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            found = cast("list[dict[str, object] | object]", calls)
            ids = [cast("dict[str, object]", each).get("id") for each in found if isinstance(each, dict)]
            return [id for id in ids if isinstance(id, str) and id not in answered]
        answered.add(message.get("tool_call_id"))
    return []


def _with_text(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose content is one text."""
    content: object = message.get("content")
    if isinstance(content, list):
        parts = cast("list[object]", content)
        if not all(map(_is_text, parts)):
            raise BadRequestError("a message's content has to be text", 400)
        content = "\n".join(each["text"] for each in cast("list[dict[str, str]]", parts))
    if not isinstance(content, str) and (message.get("role") == "user" or content is not None):
        raise BadRequestError("a message's content has to be text", 400)
    return {**message, "content": content}


def _is_text(part: object) -> bool:
    data = cast("dict[str, object]", part) if isinstance(part, dict) else {}
    return data.get("type") == "text" and isinstance(data.get("text"), str)


class _Answer:
    """One answer, as a whole or in chunks."""

    def __init__(
        self, asked: _Asked, runtime: Runtime, stream: RunStream, first: Event, events: AsyncIterator[Event]
    ) -> None:
        self._asked, self._runtime, self._stream = asked, runtime, stream
        self._first, self._events = first, events
        self._head = {"id": f"chatcmpl-{first.run_id}", "created": int(time.time()), "model": asked.model}

    async def result(self) -> RunResult:
        """Wait for the end of the run."""
        async for _ in self._read():
            pass
        assert self._stream.result is not None
        return self._stream.result

    async def _read(self) -> AsyncIterator[Event]:
        """The events of the run; whatever ends it is in its result."""
        try:
            yield self._first
            try:
                async for event in self._events:
                    yield event
            except LlmDoError:
                if self._stream.result is None:
                    raise
        finally:
            await self._runtime.aclose()

    def completion(self, result: RunResult) -> dict[str, Any]:
        """The answer as a whole."""
        message = {"role": "assistant", "content": output_text(result.output)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _usage(result.usage)}

    async def chunks(self) -> AsyncIterator[str]:
        """The answer in pieces: what the entry's own model says as it comes, or the output at the end."""
        text = _SentText()
        yield self._chunk({"role": "assistant", "content": ""})
        async for event in self._read():
            piece = text.take(event, self._first.path)
            if piece:
                yield self._chunk({"content": piece})
        result = self._stream.result
        assert result is not None
        if result.error is not None:
            yield f"data: {json.dumps(_problem(result))}\n\n"
            return
        rest = text.rest(output_text(result.output))
        if rest:
            yield self._chunk({"content": rest})
        yield self._chunk({}, "stop")
        if self._asked.usage:
            last: dict[str, Any] = {
                **self._head,
                "object": "chat.completion.chunk",
                "choices": [],
                "usage": _usage(result.usage),
            }
            yield f"data: {json.dumps(last)}\n\n"
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(chunk)}\n\n"


class _SentText:
    """The text that a client has got, one response after the other."""

    def __init__(self) -> None:
        self._done = ""
        self._now = ""
        self._void = ""
        self._new = ""

    def take(self, event: Any, path: str) -> str:
        """What is to be sent for an event of the run."""
        if event.path != path:
            return ""
        if event.type == "retry":  # what was sent of this response comes again, or something else instead of it
            self._void, self._new = self._now or self._void, ""
        elif event.type == "text_done":
            self._done, self._now, self._void, self._new = self._now or self._done, "", "", ""
        elif event.type == "text":
            return self._add(event.text)
        return ""

    def _add(self, piece: str) -> str:
        if self._void:
            self._new += piece
            if self._void.startswith(self._new):
                return ""
            again = self._new.startswith(self._void)
            piece = self._new[len(self._void) :] if again else f"\n\n{self._new}"
            self._now, self._void = self._new, ""
            return piece
        before = "\n\n" if self._done and not self._now else ""
        self._now += piece
        return before + piece

    def rest(self, output: str) -> str:
        """What of the output hasn't been sent."""
        if (self._now or self._done) == output:
            return ""
        return f"\n\n{output}" if self._done or self._now else output


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _problem(result: RunResult) -> dict[str, Any]:
    error = result.error
    message = error.message if isinstance(error, LlmDoError) else f"the run ended early ({result.status})"
    return {
        "error": {
            "message": redactor()(message),
            "type": "server_error",
            "code": result.status,
            "run_id": result.run_id,
        }
    }


def _failed(result: RunResult) -> Response:
    return JSONResponse(_problem(result), 502 if result.status == "provider_failed" else 500)
