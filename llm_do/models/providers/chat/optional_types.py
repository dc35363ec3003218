"""The types of what an answer of the chat protocol may have besides what it must have.

They are built only for an answer that has one: few do.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from openai.types.chat.chat_completion import ChoiceLogprobs, Moderation
from openai.types.chat.chat_completion_audio import ChatCompletionAudio
from openai.types.chat.chat_completion_message import Annotation
from pydantic import TypeAdapter, ValidationError

__all__ = ["is_valid"]

TYPES: dict[str, Any] = {
    "logprobs": ChoiceLogprobs,
    "moderation": Moderation,
    "audio": ChatCompletionAudio,
    "annotations": list[Annotation],
}


def is_valid(name: str, value: object) -> bool:
    """Whether a field has a value of its type.

    Example:
        >>> is_valid("logprobs", {"content": []}), is_valid("logprobs", {"content": "none"})
        (True, False)
    """
    try:
        _adapter(name).validate_python(value)
    except (ValidationError, RecursionError):
        return False
    return True


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(TYPES[name])
