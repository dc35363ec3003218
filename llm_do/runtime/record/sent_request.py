"""What a model is sent, in a canonical form that is equal wherever the same is sent, and the key made of it.

Pure and incremental: a reader remembers the messages of its call, so that a request costs only what is new in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import ModelRequest
from pydantic_core import to_json

from llm_do._startup.frozen import frozen
from llm_do.models.seen_messages import SeenMessages
from llm_do.runtime.record.canonical_messages import canonical_message, canonical_text, chain, content_digest, dumped
from llm_do.runtime.record.exchanges import ModelFacts
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from llm_do.runtime.record.transport import OutgoingRequest

__all__ = [
    "SETUP",
    "KnownSetups",
    "RequestReader",
    "SentRequest",
    "read_request",
    "request_key",
]
CONNECTION = frozenset({"timeout", "max_retries", "extra_headers", "base_url"})
"""Settings of the connection, which don't change what is asked."""

MOST_SETUPS = 50
"""Setups that a session remembers."""

SETUP = ("model", "instructions", "tools", "output", "settings")
"""The parts of a setup, in the order in which they are written and compared."""


@frozen
class SentRequest:
    """What a model was sent.

    Args:
        setup: Model, instructions, tools, output and settings, as canonical data.
        messages: The messages, each as canonical data.
        key: Equal for two requests that a provider can't tell apart.
        digests: For each message the digest of the history that ends with it.
    """

    setup: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    key: str
    digests: Sequence[str] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, setup: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> SentRequest:
        """The request of data that was read back, with its key."""
        digests: list[str] = []
        for message in messages:
            digests.append(chain(digests[-1] if digests else "", content_digest(canonical_text(message))))
        return cls(setup, messages, request_key(canonical_text(setup), digests[-1] if digests else ""), digests)


def read_request(reader: RequestReader, request: OutgoingRequest) -> SentRequest:
    """The canonical form of a request as its author meant it: before a budget lowered its settings."""
    settings = request.settings if request.own_settings is None else request.own_settings
    return reader.read(request.name, request.messages, settings, request.parameters)


def request_key(setup: str, digest: str) -> str:
    """The key of a request: of its setup's canonical text, and the digest of its messages."""
    return chain(digest, content_digest(setup))


@frozen
class _Setup:
    """A setup that was read: the JSON it was read from, its canonical data, and their digest."""

    seen: bytes
    data: Mapping[str, Any]
    digest: str


class KnownSetups:
    """The setups that the calls of a session have in common, so that each is read once.

    Args:
        clean: Applied to every text before it is hashed: redaction, and what is masked.
    """

    def __init__(self, clean: Callable[[str], str] = lambda text: text) -> None:
        self.clean = clean
        self._known: dict[bytes, _Setup] = {}
        self._facts: dict[int, tuple[Model, ModelFacts]] = {}

    def read(self, setup: Mapping[str, Any], last: _Setup | None) -> _Setup:
        """A setup in its canonical form; `last` is the one that it probably is."""
        # Compared as text, since a schema or a setting may have been changed in place; sorting costs ten times as much.
        seen = _compared(setup)
        if last is not None and last.seen == seen:
            return last
        found = self._known.get(seen)
        if found is None:
            data, text = _cleaned(to_json_data(setup), self.clean)
            while len(self._known) >= MOST_SETUPS:
                self._known.pop(next(iter(self._known)), None)
            found = self._known[seen] = _Setup(seen, data, content_digest(text))
        return found

    def facts_of(self, model: Model) -> ModelFacts:
        """What a run needs to know of a model that isn't asked."""
        found = self._facts.get(id(model))
        if found is None or found[0] is not model:
            while len(self._facts) >= MOST_SETUPS:
                self._facts.pop(next(iter(self._facts)), None)
            found = self._facts[id(model)] = model, ModelFacts.of(model)
        return found[1]


class RequestReader:
    """Reads the requests of one call.

    Args:
        clean: Applied to every text before it is hashed: redaction, and what is masked.
        setups: The setups of other calls, cleaned in the same way.
    """

    def __init__(self, clean: Callable[[str], str] = lambda text: text, *, setups: KnownSetups | None = None) -> None:
        self._clean = clean
        self.setups = KnownSetups(clean) if setups is None else setups
        self._data: list[Mapping[str, Any]] = []
        self._digests: list[str] = []
        self._numbered: list[tuple[int, int]] = []
        self._seen = SeenMessages()
        self._ids: dict[str, int] = {}
        self._setup: _Setup | None = None
        self._signatures: dict[str, int] = {}

    def read(
        self,
        model: str | Sequence[str],
        messages: Sequence[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> SentRequest:
        """The canonical form of a request."""
        setup = self._setup = self.setups.read(_setup_data(model, messages, settings, parameters), self._setup)
        self._read_messages(messages)
        last = self._digests[-1] if self._digests else ""
        return SentRequest(setup.data, self._data.copy(), chain(last, setup.digest), self._digests.copy())

    def remember(self, messages: Sequence[ModelMessage]) -> None:
        """Read a history ahead of its request, in a worker thread if it is long."""
        self._read_messages(messages)

    @property
    def message_count(self) -> int:
        """The number of messages that are remembered."""
        return len(self._data)

    def number(self, tool_call_id: str) -> str:
        """The name of a tool call that the last response has just asked for."""
        return f"call_{self._ids.setdefault(tool_call_id, len(self._ids) + 1)}"

    def sign(self, signature: str) -> str:
        """The name of a provider's signature, which only the provider can read."""
        return f"signature_{self._signatures.setdefault(signature, len(self._signatures) + 1)}"

    @property
    def tool_call_ids(self) -> Collection[str]:
        """The ids of all tool calls of the call so far."""
        return self._ids.keys()

    def _read_messages(self, messages: Sequence[ModelMessage]) -> None:
        start = min(self._seen.count(messages), max(len(messages) - 1, 0))
        ids, signatures = self._numbered[start - 1] if start else (0, 0)
        while len(self._ids) > ids:
            self._ids.popitem()
        while len(self._signatures) > signatures:
            self._signatures.popitem()
        for known in (self._data, self._digests, self._numbered):
            del known[start:]
        digest = self._digests[-1] if start else ""
        for message in dumped(messages[start:]):
            data, text = _cleaned(canonical_message(message, self.number, self.sign), self._clean)
            digest = chain(digest, content_digest(text))
            self._data.append(data)
            self._digests.append(digest)
            self._numbered.append((len(self._ids), len(self._signatures)))
        self._seen.replace(start, messages)


def _setup_data(
    model: str | Sequence[str],
    messages: Sequence[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> dict[str, Any]:
    return {
        "model": model if isinstance(model, str) else list(model),
        "instructions": _instructions(messages, parameters),
        "tools": [*map(_tool, parameters.function_tools), *map(_native, parameters.native_tools)],
        "output": _output(parameters),
        "settings": {
            name: value
            for name, value in sorted((settings or {}).items())
            if name not in CONNECTION and value is not None
        },
    }


def _compared(setup: Mapping[str, Any]) -> bytes:
    try:
        return to_json(setup, fallback=str, inf_nan_mode="constants", serialize_unknown=True)
    except ValueError:  # half a character, such as in the path of a folder whose name isn't UTF-8
        return to_json(to_json_data(setup), inf_nan_mode="constants")


def _cleaned(data: Mapping[str, Any], clean: Callable[[str], str]) -> tuple[Mapping[str, Any], str]:
    """Cleaned data, with its canonical text; whatever cleans it leaves JSON valid."""
    text = canonical_text(data)
    clear = clean(text)
    if clear == text:
        return data, text
    data = cast("dict[str, Any]", json.loads(clear))
    return data, canonical_text(data)


def _instructions(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> str:
    if parameters.instruction_parts is not None:
        return "\n\n".join(part.content for part in parameters.instruction_parts)
    last = messages[-1] if messages else None
    return (last.instructions or "") if isinstance(last, ModelRequest) else ""


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    data = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return data if tool.strict is None else data | {"strict": tool.strict}


def _native(tool: object) -> dict[str, Any]:
    return {"native": to_json_data(tool)}


def _output(parameters: ModelRequestParameters) -> dict[str, Any]:
    """The output schema; empty for text."""
    found: dict[str, Any] = {}
    if parameters.output_tools:
        found["tools"] = [_tool(tool) for tool in parameters.output_tools]
    if (declared := parameters.output_object) is not None:
        found["schema"] = declared.json_schema
        found |= {"name": declared.name} if declared.name else {}
        found |= {"description": declared.description} if declared.description else {}
    if parameters.output_mode != "text":
        found["mode"] = parameters.output_mode
    if not parameters.allow_text_output:
        found["text"] = False
    return found
