"""A result as the text that a person, a shell and a calling agent read."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, cast

from llm_do.text.json_data import to_json_data

__all__ = ["output_text"]


def output_text(value: Any) -> str:
    """Return a result as text, as the command line prints it and a calling agent reads it.

    A string is unchanged; a pydantic model or a dataclass that defines `__str__` uses it; anything else is JSON.

    Args:
        value: The output of an entry or an agent.

    Returns:
        Its text.

    Example:
        >>> output_text({"a": 1})
        '{"a": 1}'
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if type(value) is int:
        return str(value)
    kind = cast("type[Any]", type(value))
    is_record = dataclasses.is_dataclass(value) or hasattr(kind, "model_fields")
    if is_record and _defines_str(kind):
        return str(value)
    return json.dumps(to_json_data(value), ensure_ascii=False)


def _defines_str(kind: type) -> bool:
    """Whether a class of the project defines its own text form."""
    for base in kind.__mro__:
        if "__str__" in vars(base):
            return not base.__module__.startswith(("pydantic.", "builtins"))
    return False
