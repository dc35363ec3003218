"""Any value as JSON data."""

from __future__ import annotations

import math
from typing import Any, cast

__all__ = ["plain_data", "to_json_data"]


def to_json_data(value: Any) -> Any:
    """Any result as JSON data: models and dataclasses by their fields, bytes as base64, the unknown by `str`.

    Example:
        >>> to_json_data({"when": __import__("datetime").date(2026, 1, 2)})
        {'when': '2026-01-02'}
    """
    return _writable(plain_data(value))


def plain_data(value: Any) -> Any:
    """The same, with numbers as they are: infinity, NaN and any length, which JSON lacks."""
    if value is None or isinstance(value, bool | int):
        return value
    # Imported here: it brings PydanticAI along, which numbers don't need.
    from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data

    if isinstance(value, str):
        return replace_surrogates(value)
    try:
        return replace_surrogates_in_data(_jsonable(value))
    except UnicodeEncodeError:
        return _jsonable(replace_surrogates_in_data(value))


def _jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str, bytes_mode="base64", serialize_unknown=True)


_MOST_BITS = 14_000
"""Bits of whole numbers that Python and others write in decimals: about 4,200 digits."""


def _writable(data: Any) -> Any:
    """Data without what JSON can't say: numbers that are none become null, those too long for decimals hexadecimal."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, int):
        return data if data.bit_length() < _MOST_BITS else hex(data)
    if isinstance(data, dict):
        return {key: _writable(item) for key, item in cast("dict[str, Any]", data).items()}
    if isinstance(data, list):
        return [_writable(item) for item in cast("list[Any]", data)]
    return data
