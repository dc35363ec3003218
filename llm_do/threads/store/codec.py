"""Messages, events and states as the JSON text that stores keep; secrets are redacted here, before writing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from llm_do.errors import StoreError, ToolError
from llm_do.runtime.record.redaction import Redactor
from llm_do.text.exception_text import first_fault
from llm_do.text.large_data.conversion import json_parts
from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_core import SchemaSerializer

__all__ = [
    "event_text",
    "large_event_text",
    "large_message_text",
    "message_of",
    "message_text",
    "same_json",
    "state_text",
]

_MANY = 60
"""Messages after which a process makes serializers for single kinds of them.

Making one takes as long as it has saved after about as many; a process that runs an agent once writes three messages.
"""

_written = count(1)


def event_text(data: Mapping[str, Any], redact: Redactor) -> str:
    """Serialize an event as JSON text."""
    from pydantic_core import to_json, to_jsonable_python  # lists of runs need none

    try:
        text = to_json(data, fallback=str, bytes_mode="base64", inf_nan_mode="null", serialize_unknown=True)
    except ValueError:
        plain = to_jsonable_python(
            data, fallback=str, bytes_mode="base64", inf_nan_mode="constants", serialize_unknown=True
        )
        text = to_json(replace_surrogates_in_data(plain), inf_nan_mode="null")
    return redact(text.decode())


def large_event_text(data: Mapping[str, Any], redact: Redactor) -> str:
    """Serialize an event in parts, so that no other thread waits for all of it."""
    return redact("".join(json_parts(data)))


def message_text(message: ModelMessage, redact: Redactor | None = None) -> str:
    """Serialize a message as JSON text that `message_of` reads back."""
    # Heavy, and lists of threads and runs need no messages.
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_core import to_json

    if next(_written) > _MANY and (serializer := _serializers().get(type(message))) is not None:
        try:
            text = serializer.to_json(message).decode()
        except ValueError:  # the adapter writes some values that aren't of the declared type
            pass
        else:
            return text if redact is None else redact(text)
    try:
        text = ModelMessagesTypeAdapter.dump_json([message])[1:-1].decode()
    except ValueError:
        # A lone surrogate, which a caller's prompt may contain.
        text = to_json(replace_surrogates_in_data(ModelMessagesTypeAdapter.dump_python([message], mode="json")))[
            1:-1
        ].decode()
    return text if redact is None else redact(text)


@cache
def _serializers() -> Mapping[type[object], SchemaSerializer]:
    """A serializer for each kind of message, which writes what PydanticAI's adapter writes.

    The adapter's is one of a union, and pydantic-core writes a member of a union in two steps: as Python data, and that
    as JSON.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_core import SchemaSerializer

    made = _kinds(ModelMessagesTypeAdapter.core_schema)
    return {kind: SchemaSerializer(schema, {"ser_json_bytes": "base64"}) for kind, schema in made}


def _kinds(schema: Any) -> Iterator[tuple[type[object], Any]]:
    """The members of a list's union, each with its schema; none if the schema is of another shape."""
    definitions: list[Any] = []
    if schema["type"] == "definitions":
        schema, definitions = schema["schema"], schema["definitions"]
    union: Any = schema.get("items_schema", {})
    if union.get("type") != "tagged-union":
        return
    for member in union["choices"].values():
        if member["type"] == "dataclass":
            yield member["cls"], {"type": "definitions", "schema": member, "definitions": definitions}


def large_message_text(message: ModelMessage, redact: Redactor) -> str:
    """Serialize a message in parts, so that no other thread waits for all of it."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    (data,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    return redact("".join(json_parts(data)))


def message_of(text: str) -> ModelMessage:
    """Read a message that `message_text` wrote."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    try:
        return ModelMessagesTypeAdapter.validate_json(f"[{text}]")[0]
    except ValueError as error:
        raise StoreError(
            f"a stored message can't be read: {first_fault(error)[:200]}",
            hint="It was written by another version, or it is damaged.",
        ) from error


def state_text(value: Any, whose: str) -> str:
    """Serialize a state as JSON text; lone surrogates, which UTF-8 can't encode, are replaced."""
    if isinstance(value, dict) and not value:  # most are
        return "{}"
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"the state of {whose} isn't JSON data: {error}", hint="Keep only text, numbers, lists and objects in it."
        ) from error


def same_json(one: Any, other: Any) -> bool:
    """Compare two values as JSON: numbers and booleans differ, and the order of an object's keys doesn't matter.

    Example:
        >>> same_json({"a": 1, "b": (2,)}, {"b": [2], "a": 1}), same_json(1, True)
        (True, False)
    """
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    # Parsed back first, so that every object key is a string.
    return json.dumps(json.loads(state_text(value, "this comparison")), sort_keys=True)
