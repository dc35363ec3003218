"""Values against schemas: what is wrong with a tool's arguments or an agent's output, in words for a model."""

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
    """The faults of arguments that don't validate, for a model to read."""
    if not isinstance(error, ValidationError):
        return error.message
    faults = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)[:10]
    )
    return f"invalid arguments for {tool_name}: {faults}"


def check_schema(schema: Mapping[str, Any], args: object) -> str | None:
    """The first fault of arguments against a JSON Schema, None when there is none."""
    if not isinstance(args, dict):
        return "arguments must be a JSON object"
    return next(iter(find_schema_faults(schema, cast("dict[str, Any]", args), most=1)), None)


def find_schema_faults(schema: Mapping[str, Any], value: Any, *, most: int = 5) -> list[str]:
    """What is wrong with a value by a JSON Schema.

    Example:
        >>> find_schema_faults({"properties": {"n": {"type": "integer"}}}, {"n": "one"})
        ["n: 'one' is not of type 'integer'"]
    """
    try:
        found = list(islice(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value), most))
    except Exception as error:  # noqa: BLE001 (the schema isn't ours: a call that can't be checked isn't run)
        return [f"its schema can't be checked: {type(error).__name__}: {error}"]
    return [_describe(fault) for fault in found]


def _describe(fault: Any) -> str:
    where = ".".join(str(part) for part in fault.absolute_path)
    return f"{where}: {fault.message}" if where else fault.message


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Validator:
    from referencing import Registry

    # An empty registry: a `$ref` to somewhere else is a fault, never a request.
    registry: Registry[Any] = Registry()
    return validator_class()(json.loads(schema), registry=registry)


_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


@cache
def validator_class() -> Any:
    """The validator of JSON Schema 2020-12, whose limits of numbers hold for NaN too: it is neither less nor more."""
    # Imported when the first value is checked: most runs check none, and it costs them a thirtieth.
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
