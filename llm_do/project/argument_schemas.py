"""Checks tool arguments and agent outputs against schemas, with errors worded for a model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic_ai.exceptions import ModelRetry

__all__ = ["check_schema", "find_schema_faults", "validation_text", "validator_class"]


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


def find_schema_faults(schema: Mapping[str, Any], value: Any, *, most: int = 5) -> list[str]:
    """Check a value against a JSON Schema, and list its faults.

    Example:
        >>> find_schema_faults({"properties": {"n": {"type": "integer"}}}, {"n": "one"})
        ["n: 'one' is not of type 'integer'"]
    """
    try:
        found = list(islice(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value), most))
    except Exception as error:  # noqa: BLE001 (the schema isn't ours, and a call that can't be checked must not run)
        return [f"its schema can't be checked: {type(error).__name__}: {error}"]
    return [_describe(fault) for fault in found]


def _describe(fault: Any) -> str:
    where = ".".join(str(part) for part in fault.absolute_path)
    return f"{where}: {fault.message}" if where else fault.message


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Validator:
    from referencing import Registry

    # An empty registry, so that a remote `$ref` is a fault and never a network request.
    registry: Registry[Any] = Registry()
    return validator_class()(json.loads(schema), registry=registry)


_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


@cache
def validator_class() -> Any:
    """Return a JSON Schema 2020-12 validator whose numeric limits also reject NaN, which compares false with all."""
    # Imported on first use: most runs never need it, and importing it takes 3 % of a run.
    from jsonschema import Draft202012Validator, ValidationError as Fault
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    known = cast("Mapping[str, Callable[..., Iterator[Fault]]]", Draft202012Validator.VALIDATORS)

    def limit(keyword: str) -> Callable[..., Iterator[Fault]]:
        def check(validator: object, bound: Any, value: object, schema: object) -> Iterator[Fault]:
            if isinstance(value, float) and math.isnan(value):
                yield Fault(f"{value!r} is not a number")
            else:
                yield from known[keyword](validator, bound, value, schema)

        return check

    return cast("Any", extend(Draft202012Validator, {keyword: limit(keyword) for keyword in _LIMITS}))
