"""Any value as JSON data."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data
from llm_do.text.words import with_article

__all__ = [
    "NotDataError",
    "arguments_data",
    "check_awaited",
    "fields_data",
    "json_text",
    "plain_data",
    "to_json_data",
]


class NotDataError(TypeError):
    """A value has no content that could be written: an unfinished call, a function, an object without a text."""


def to_json_data(value: Any, *, strict: bool = False) -> Any:
    """Any result as JSON data: models and dataclasses by their fields, bytes as base64, the unknown by `str`.

    With `strict`, a value whose text would only say what and where in memory it is raises `NotDataError`.

    Example:
        >>> to_json_data({"when": __import__("datetime").date(2026, 1, 2)})
        {'when': '2026-01-02'}
    """
    return _writable(plain_data(value, strict=strict))


def plain_data(value: Any, *, strict: bool = False) -> Any:
    """The same, with numbers as they are: infinity, NaN and any length, which JSON lacks."""
    if value is None or type(value) in (bool, int):
        return value
    if isinstance(value, str):
        return replace_surrogates(value if type(value) is str else str.__str__(value))
    return _without_surrogates(value, _content if strict else str)


def fields_data(
    value: Any, *, include: set[str] | None = None, exclude: set[str] | None = None, strict: bool = False
) -> Any:
    """Like `to_json_data`, of some of a record's fields only.

    Example:
        >>> fields_data({"a": 1, "b": 2}, include={"a"})
        {'a': 1}
    """
    return _writable(_without_surrogates(value, _content if strict else str, include=include, exclude=exclude))


def json_text(data: Any) -> str:
    """JSON data as text that any file or store can keep, and that is read back as the same data.

    Half a character is escaped: it is in the path of a folder whose name isn't UTF-8.

    Example:
        >>> json_text({"path": "é\\udcff"})
        '{"path": "é\\\\udcff"}'
    """
    text = json.dumps(data, ensure_ascii=False)
    return text if text.isascii() else _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_HALF = re.compile("[\ud800-\udfff]")


def arguments_data(value: Any) -> Mapping[str, Any]:
    """Return arguments as data for rules and digests: unlike in JSON, infinity and null stay distinct."""
    data = plain_data(value)
    return data if isinstance(data, dict) else {"value": data}  # pyright: ignore[reportUnknownVariableType]


def _without_surrogates(value: Any, fallback: Callable[[Any], str], **fields: Any) -> Any:
    try:
        return replace_surrogates_in_data(_jsonable(value, fallback, **fields))
    except UnicodeEncodeError:
        return _jsonable(replace_surrogates_in_data(value), fallback, **fields)


def _jsonable(value: Any, fallback: Callable[[Any], str], **fields: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=fallback, bytes_mode="base64", serialize_unknown=True, **fields)


_ADDRESS = re.compile(r"<.*\bat 0x[0-9a-fA-F]+\b.*>", re.DOTALL)


def check_awaited(value: object) -> None:
    """Raise `NotDataError` for a coroutine or another awaitable that nothing has awaited."""
    if inspect.iscoroutine(value):
        value.close()  # or Python warns on stderr, in its own words
    if inspect.isawaitable(value):
        name = getattr(value, "__qualname__", None)
        raise NotDataError(f"{with_article(type(value).__name__)}{f' of {name}' if name else ''} that was not awaited")


def _content(value: Any) -> str:
    """The text of a value of an unknown type, if it says more than where in memory the value is."""
    check_awaited(value)
    text = str(value)
    if inspect.isroutine(value) or _ADDRESS.fullmatch(text):
        name = getattr(value, "__name__", None)
        raise NotDataError(f"the function {name}" if name else f"an object of type {type(value).__name__}")
    return text


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
