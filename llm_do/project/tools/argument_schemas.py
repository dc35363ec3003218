"""Checks tool arguments and agent outputs against schemas, with errors worded for a model.

Schemas come from servers and values from models, so a check is limited in time, whatever patterns, references and
sizes they have. A value that can't be checked within it is refused.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote

from pydantic import ValidationError

from llm_do.text.bounded_patterns import PatternRefusedError, compile_bounded

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic_ai.exceptions import ModelRetry

__all__ = [
    "SchemaWorkError",
    "check_briefly",
    "check_schema",
    "find_schema_faults",
    "find_unusable_part",
    "validation_text",
    "validator_class",
]

_SECONDS = 1.0
"""Processor time that a check may take."""

_BRIEF = 0.01
"""Processor time that it may take in an event loop."""

_LONGEST_PATTERN = 10_000
_LONGEST_SCHEMA = 262_144
_LONGEST_REASON = 160


class SchemaWorkError(Exception):
    """A check has used up its time."""


class _Allowance:
    """The processor time that is left for one check."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    def spend(self) -> None:
        """Raise `SchemaWorkError` if nothing is left."""
        if time.thread_time() > self._end:
            raise SchemaWorkError

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a pattern matches somewhere in a text."""
        seconds = self._end - time.thread_time()
        if seconds <= 0:
            raise SchemaWorkError
        try:
            return compile_bounded(pattern, _LONGEST_PATTERN).find(text, seconds) is not None
        except TimeoutError:
            raise SchemaWorkError from None


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("_ALLOWANCE", default=None)


def validation_text(tool_name: str, error: ValidationError | ModelRetry) -> str:
    """Describe for a model why arguments are invalid."""
    if not isinstance(error, ValidationError):
        return error.message
    faults = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)[:10]
    )
    return f"invalid arguments for {tool_name}: {faults}"


def check_schema(schema: Mapping[str, Any], args: object) -> str | None:
    """Check arguments against a JSON Schema, and return the first fault or None."""
    if not isinstance(args, dict):
        return "arguments must be a JSON object"
    return next(iter(find_schema_faults(schema, cast("dict[str, Any]", args), most=1)), None)


def check_briefly(schema: Mapping[str, Any], args: object) -> str | None:
    """Check arguments in an event loop; raise `SchemaWorkError` if that would hold it up.

    Example:
        >>> check_briefly({"type": "object", "required": ["n"]}, {})
        "'n' is a required property"
    """
    if not isinstance(args, dict):
        return "arguments must be a JSON object"
    return next(iter(_faults(schema, cast("dict[str, Any]", args), 1, _BRIEF)), None)


def find_schema_faults(schema: Mapping[str, Any], value: Any, *, most: int = 5) -> list[str]:
    """Check a value against a JSON Schema, and list its faults.

    Example:
        >>> find_schema_faults({"properties": {"n": {"type": "integer"}}}, {"n": "one"})
        ["n: 'one' is not of type 'integer'"]
    """
    try:
        return _faults(schema, value, most, _SECONDS)
    except SchemaWorkError:
        return ["its schema can't be checked: it takes too long"]


def find_unusable_part(schema: object) -> str | None:
    """Say why a schema can't be that of a tool's arguments; None if it can.

    Example:
        >>> find_unusable_part({"type": "object", "properties": {"n": {"type": "int"}}})
        "properties.n.type: 'int' is not valid under any of the given schemas"
    """
    if not isinstance(schema, dict):
        return "it is not an object"
    declared = cast("dict[str, Any]", schema)
    if declared.get("type") != "object":
        return 'the root must have "type": "object"'
    token = _ALLOWANCE.set(_Allowance(_SECONDS))
    try:
        text = json.dumps(declared)
        if len(text) > _LONGEST_SCHEMA:
            return f"it has more than {_LONGEST_SCHEMA:,} characters"
        kind = validator_class()
        fault = next(iter(kind(kind.META_SCHEMA).iter_errors(declared)), None)
        if fault is not None:
            return " ".join(_describe(fault).split())[:_LONGEST_REASON]
        return _find_unusable_word(declared, declared)
    except SchemaWorkError:
        return "it takes too long to check"
    except Exception as error:  # noqa: BLE001 (nested too deeply, or no JSON)
        return f"it can't be read: {type(error).__name__}"
    finally:
        _ALLOWANCE.reset(token)


def _find_unusable_word(part: object, root: Mapping[str, Any]) -> str | None:
    """Find a pattern that can't be matched, or a reference that leads nowhere."""
    if isinstance(part, list):
        return next(filter(None, (_find_unusable_word(item, root) for item in cast("list[Any]", part))), None)
    if not isinstance(part, dict):
        return None
    words = cast("dict[str, Any]", part)
    patterns = [words["pattern"]] if isinstance(words.get("pattern"), str) else []
    named = words.get("patternProperties")
    for pattern in [*patterns, *(cast("dict[str, Any]", named) if isinstance(named, dict) else ())]:
        try:
            compile_bounded(pattern, _LONGEST_PATTERN)
        except PatternRefusedError as refused:
            return f"the pattern {pattern[:100]!r} {refused}"
    target = words.get("$ref")
    if isinstance(target, str) and not _leads_somewhere(target, root):
        return f"$ref: {target[:100]!r} leads nowhere in it"
    return next(filter(None, (_find_unusable_word(item, root) for item in words.values())), None)


def _leads_somewhere(target: str, root: Mapping[str, Any]) -> bool:
    """Whether a reference is to a part of the same schema; names of anchors are taken at their word."""
    if not target.startswith("#/"):
        return target.startswith("#")
    part: Any = root
    for word in unquote(target[2:]).split("/"):
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and key in part:
            part = cast("dict[str, Any]", part)[key]
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(cast("list[Any]", part)):
            part = cast("list[Any]", part)[int(key)]
        else:
            return False
    return True


def _faults(schema: Mapping[str, Any], value: Any, most: int, seconds: float) -> list[str]:
    token = _ALLOWANCE.set(_Allowance(seconds))
    try:
        found = list(islice(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value), most))
    except SchemaWorkError:
        raise
    except Exception as error:  # noqa: BLE001 (the schema isn't ours, and a call that can't be checked must not run)
        return [f"its schema can't be checked: {type(error).__name__}: {error}"]
    finally:
        _ALLOWANCE.reset(token)
    return [_describe(fault) for fault in found]


def _describe(fault: Any) -> str:
    where = ".".join(str(part) for part in fault.absolute_path)
    return f"{where}: {fault.message}" if where else fault.message


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Validator:
    from referencing import Registry

    # An empty registry, so that a remote `$ref` is a fault and never a network request.
    registry: Registry[Any] = Registry()
    if '"unevaluatedProperties":' in schema and '"patternProperties":' in schema:
        # jsonschema matches these patterns itself, without a limit.
        raise ValueError("`unevaluatedProperties` and `patternProperties` can't be combined")
    return validator_class()(json.loads(schema), registry=registry)


_Keyword: TypeAlias = "Callable[[Any, Any, Any, Any], Iterator[Any]]"


@cache
def validator_class() -> Any:
    """Return a JSON Schema 2020-12 validator whose work is limited, and whose numeric limits reject NaN too."""
    # Imported on first use: most runs never need it, and importing it takes 3 % of a run.
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    known = cast("Mapping[str, _Keyword]", Draft202012Validator.VALIDATORS)
    own: dict[str, _Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties(known["additionalProperties"]),
        "uniqueItems": _unique_items,
        **{name: _numeric_limit(known[name]) for name in _LIMITS},
    }
    limited = {name: _limited(own.get(name, check)) for name, check in known.items()}
    return cast("Any", extend(Draft202012Validator, limited))


def _limited(check: _Keyword) -> _Keyword:
    """A keyword that ends the check once its time is used up."""

    def limited(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Any]:
        allowance = _ALLOWANCE.get()
        if allowance is not None:
            allowance.spend()
        yield from check(validator, keyword, value, schema) or ()

    return limited


_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def _numeric_limit(check: _Keyword) -> _Keyword:
    """A limit that also rejects NaN, which compares false with everything."""

    def limit(validator: Any, bound: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, float) and math.isnan(value):
            yield _fault(f"{value!r} is not a number")
        else:
            yield from check(validator, bound, value, schema)

    return limit


def _pattern(_: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield _fault(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _: Any) -> Iterator[Any]:
    for pattern, subschema in patterns.items() if isinstance(value, dict) else ():
        for name, item in cast("dict[str, Any]", value).items():
            if _matches(pattern, name):
                yield from validator.descend(item, subschema, path=name, schema_path=pattern)


def _additional_properties(check: _Keyword) -> _Keyword:
    def additional(validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        patterns = schema.get("patternProperties")
        if not patterns or not isinstance(value, dict):
            yield from check(validator, allowed, value, schema)
            return
        for name, item in cast("dict[str, Any]", value).items():
            if name in schema.get("properties", {}) or any(_matches(pattern, name) for pattern in patterns):
                continue
            if allowed is False:
                yield _fault(f"{name!r} does not match any of the patterns {', '.join(map(repr, patterns))}")
            else:
                yield from validator.descend(item, allowed, path=name)

    return additional


def _unique_items(_: Any, unique: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if unique and isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        if len({_comparable(item) for item in items}) < len(items):
            yield _fault(f"{value!r} has non-unique elements")


def _comparable(value: Any) -> Any:
    """A hashable value that is equal to another's if the two are equal in JSON: 1 is 1.0 and not true."""
    if isinstance(value, dict):
        return frozenset((key, _comparable(item)) for key, item in cast("dict[str, Any]", value).items())
    if isinstance(value, list | tuple):
        return ("array", *map(_comparable, cast("list[Any]", value)))
    return ("boolean", value) if isinstance(value, bool) else value


def _matches(pattern: str, text: str) -> bool:
    allowance = _ALLOWANCE.get() or _Allowance(_SECONDS)
    return allowance.matches(pattern, text)


def _fault(message: str) -> Any:
    from jsonschema import ValidationError as Fault

    return Fault(message)
