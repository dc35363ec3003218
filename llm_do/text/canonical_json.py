"""The one JSON text of a value, and its digest."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import pathlib
import uuid
from collections.abc import Mapping, Set as AbstractSet
from typing import Any, cast

__all__ = ["canonical_json", "digest"]


_MARK = "\0"
"""Begins the only key of an object that stands for a value JSON lacks; a real key that begins so gets one more."""


def canonical_json(value: object) -> str:
    """The one JSON text of a value: keys sorted, no spaces, characters as they are.

    Two values have the same text only if a tool could not tell them apart by their data; lists and
    tuples count as the same, and so do an enumeration's member and its value.

    Example:
        >>> canonical_json({"b": [1, 1.0, True], "a": None})
        '{"a":null,"b":[1,1.0,true]}'
    """
    try:
        return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise TypeError("the value is nested too deeply, or contains itself") from None


def digest(value: object) -> str:
    """The SHA-256 of a value's canonical JSON, as 64 hexadecimal digits.

    Example:
        >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        True
    """
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[Any, Any]", value))
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, (bytes, bytearray)):
        return {f"{_MARK}bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, (datetime.date, datetime.time)):
        return {f"{_MARK}time": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {f"{_MARK}seconds": str(decimal.Decimal(value // datetime.timedelta(microseconds=1)).scaleb(-6))}
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return {f"{_MARK}{type(value).__name__}": str(value)}
    if isinstance(value, AbstractSet):
        members = [canonical_json(item) for item in cast("AbstractSet[Any]", value)]
        return {f"{_MARK}set": sorted(members)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f"{_MARK}{type(value).__name__}": {
                field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
            }
        }
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _plain_mapping(value: Mapping[Any, Any]) -> object:
    if all(isinstance(key, str) for key in value):
        return {
            (_MARK + key if key.startswith(_MARK) else key): _plain(item)
            for key, item in cast("Mapping[str, Any]", value).items()
        }
    pairs = sorted((canonical_json(key), canonical_json(item)) for key, item in value.items())
    return {f"{_MARK}pairs": [list(pair) for pair in pairs]}
