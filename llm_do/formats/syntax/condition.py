"""Conditions of flows: JMESPath expressions about the output of a step, parsed, checked, and evaluated in bounds.

They know `output` and, if it was joined from several, `outputs`, each checked against its schema. Nothing here reads
a file or calls anything. JMESPath is imported with the first condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import flows as problems
from llm_do.diagnostics.codes.code import Problem

__all__ = ["ConditionError", "ConditionFault", "evaluate", "is_true", "read_condition"]

MAX_LENGTH = 1000
"""The most characters of an expression."""

MAX_STEPS = 50_000
"""The most steps of one evaluation: each part of the expression counts once for each item that it looks at."""

MAX_RESULT = 1_000_000
"""The most characters or items of a value that an evaluation makes."""

_TOO_LARGE = "it takes too long or makes too large a value"
_ROOT = "output"
_LIST = "outputs"
_BUILDING = {"multi_select_list": "a list", "multi_select_dict": "an object"}


@frozen
class ConditionFault:
    """What is wrong with an expression, and the offsets of the characters that are wrong."""

    problem: Problem
    start: int
    end: int


class ConditionError(ValueError):
    """An expression that can't be evaluated for a value."""


def is_true(value: object) -> bool:
    """Whether a result counts as true, as in JMESPath: null, false and everything empty don't.

    Example:
        >>> is_true(0), is_true([]), is_true("no"), is_true(None)
        (True, False, True, False)
    """
    return value is not None and value is not False and not (isinstance(value, str | list | dict) and not value)


def evaluate(text: str, output: object, outputs: object = None) -> Any:
    """Evaluate an expression.

    Args:
        text: The expression.
        output: What `output` means, as JSON data.
        outputs: What `outputs` means: the list of the outputs that were joined, None if none were.

    Returns:
        Its value, as JSON data.

    Raises:
        ConditionError: It is malformed, it calls a function with a wrong type, or it takes too much.

    Example:
        >>> evaluate("output.kind == 'refund'", {"kind": "refund"})
        True
        >>> evaluate("output.items[?price > `5`].name", {"items": [{"name": "lamp", "price": 9}]})
        ['lamp']
    """
    faults = _parse(text)
    if not isinstance(faults, dict):
        raise ConditionError(faults.problem.message)
    from jmespath.exceptions import JMESPathError

    try:
        return _interpreter().visit(faults, {_ROOT: output, _LIST: outputs})
    except ConditionError:
        raise
    except RecursionError as error:
        raise ConditionError(_TOO_LARGE) from error
    except (JMESPathError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        # JMESPath's functions raise Python's own errors where a list has values of different types.
        raise ConditionError(" ".join(str(error).split())) from error


def _interpreter() -> Any:
    """Make an interpreter for one evaluation, which counts its steps."""
    from jmespath.visitor import TreeInterpreter

    class Bounded(TreeInterpreter):  # pyright: ignore[reportMissingTypeStubs]
        def __init__(self) -> None:
            super().__init__()
            self.steps = 0

        def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise ConditionError(_TOO_LARGE)
            value: Any = super().visit(node, *args, **kwargs)
            if _is_too_large(value):
                raise ConditionError(_TOO_LARGE)
            return value

    return Bounded()


def _is_too_large(value: object) -> bool:
    return isinstance(value, str | list) and len(cast("str | list[Any]", value)) > MAX_RESULT


def read_condition(
    text: str, schema: Mapping[str, Any] | None, outputs: Mapping[str, Any] | None = None
) -> tuple[Mapping[str, Any], list[ConditionFault]]:
    """Check an expression, given the JSON Schemas of `output` and `outputs`; None if one isn't known.

    The schema of `outputs` is `{"type": "null"}` if the step before joins nothing.

    Returns:
        The schema of its value, which is empty if it isn't known, and what is wrong.

    Example:
        >>> schema = {"type": "object", "properties": {"kind": {"type": "string"}}}
        >>> value, faults = read_condition("output.kid == 'refund'", schema)
        >>> [fault.problem.message for fault in faults]
        ['`output` has no field `kid`']
        >>> [(fault.start, fault.end) for fault in read_condition("output.n > 5", None)[1]]
        [(11, 12)]
    """
    found = _parse(text)
    if not isinstance(found, dict):
        return {}, [found]
    reader = _Reader(text, schema, outputs)
    value, _ = reader.read(found, {"type": "object", "properties": {_ROOT: schema or {}, _LIST: outputs or {}}}, "")
    return reader.resolved(value), reader.faults


def _parse(text: str) -> dict[str, Any] | ConditionFault:
    """Parse an expression; what can't be parsed or isn't allowed is a fault."""
    from jmespath.exceptions import EmptyExpressionError, JMESPathError, LexerError, ParseError
    from jmespath.parser import Parser

    if len(text) > MAX_LENGTH:
        return ConditionFault(problems.long_condition(MAX_LENGTH), 0, len(text))
    if not text.strip():
        return ConditionFault(problems.malformed_condition("the expression is empty"), 0, max(len(text), 1))
    try:
        tree = cast("dict[str, Any]", Parser().parse(text).parsed)
    except EmptyExpressionError:
        return ConditionFault(problems.malformed_condition("the expression is empty"), 0, max(len(text), 1))
    except LexerError as error:
        return _syntax_fault(text, error.lexer_position, str(error.lexer_value or ""))
    except ParseError as error:
        return _syntax_fault(text, error.lex_position, str(error.token_value or ""))
    except RecursionError:
        return ConditionFault(problems.deep_condition(), 0, len(text))
    except (JMESPathError, ValueError, IndexError, TypeError) as error:
        message = " ".join(str(error).split()) or "it can't be read"
        return ConditionFault(problems.malformed_condition(message), 0, len(text))
    built = next((node["type"] for node in _nodes(tree) if node["type"] in _BUILDING), None)
    return tree if built is None else ConditionFault(problems.building_condition(_BUILDING[built]), 0, len(text))


def _nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in node.get("children", ()) if isinstance(child, dict)]


def _syntax_fault(text: str, position: int | None, token: str) -> ConditionFault:
    at = min(position if position is not None else len(text), len(text))
    if token.lstrip("-").isdigit():
        problem = problems.bare_number(token)
    elif token == "=" or text[at : at + 1] == "=":
        problem = problems.malformed_condition("`=` is not an operator", "write `==`")
    elif at >= len(text):
        problem = problems.malformed_condition("the expression ends too early")
    else:
        problem = problems.malformed_condition(f"`{token or text[at]}` doesn't belong here")
    return ConditionFault(problem, at, min(max(at + len(token), at + 1), max(len(text), at + 1)))


class _Reader:
    """Reads an expression in the order in which it is written, with the schema of what each part is applied to.

    The parser's tree has no positions, so they are those of the names in the text, which come in the same order.
    """

    def __init__(self, text: str, schema: Mapping[str, Any] | None, outputs: Mapping[str, Any] | None) -> None:
        self.text = text
        self.definitions = {**_definitions(schema), **_definitions(_items(outputs or {}))}
        self.faults: list[ConditionFault] = []
        self._names = _name_tokens(text)

    def read(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        """Read a part, and return the schema and path of its value; an empty schema says nothing."""
        read = getattr(self, f"_{node['type']}", self._other)
        return read(node, self.resolved(schema), path)

    def _other(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        for child in node.get("children", ()):
            if isinstance(child, dict):
                self.read(cast("dict[str, Any]", child), schema, path)
        return {}, path

    def _field(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        name = str(node["value"])
        start, end = self._position(name)
        known: Mapping[str, Any] = schema.get("properties", {})
        inner = f"{path}.{name}" if path else name
        if name in known:
            if path == "" and name == _LIST and known[name].get("type") == "null":
                self.faults.append(ConditionFault(problems.nothing_joined(), start, end))
            return known[name], inner
        if path == "" and _ROOT in known:
            quoted = self.text[start : start + 1] == '"'
            self.faults.append(ConditionFault(problems.unknown_root(name, quoted=quoted), start, end))
        elif schema.get("type") in ("string", "number", "integer", "boolean"):
            self.faults.append(ConditionFault(problems.field_of_scalar(name, path, schema["type"]), start, end))
        elif known and _closed(schema):
            self.faults.append(ConditionFault(problems.unknown_field(name, path, known), start, end))
        return {}, inner

    def _current(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        return schema, path

    _identity = _current

    def _literal(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        return {}, path

    def _series(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        for child in node["children"]:
            schema, path = self.read(child, schema, path)
        return schema, path

    _subexpression = _index_expression = _pipe = _series

    def _index(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        return _items(schema), f"{path}[]"

    def _projection(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        listed, path = self.read(node["children"][0], schema, path)
        item, path = self.read(node["children"][1], _items(self.resolved(listed)), f"{path}[]")
        return {"type": "array", "items": item}, path

    def _filter_projection(
        self, node: dict[str, Any], schema: Mapping[str, Any], path: str
    ) -> tuple[Mapping[str, Any], str]:
        left, right, condition = node["children"]
        listed, path = self.read(left, schema, path)
        item = _items(self.resolved(listed))
        self.read(condition, item, f"{path}[]")
        found, path = self.read(right, item, f"{path}[]")
        return {"type": "array", "items": found}, path

    def _value_projection(
        self, node: dict[str, Any], schema: Mapping[str, Any], path: str
    ) -> tuple[Mapping[str, Any], str]:
        _, path = self.read(node["children"][0], schema, path)
        self.read(node["children"][1], {}, f"{path}.*")
        return {}, path

    def _slice(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        return schema, path

    def _expref(self, node: dict[str, Any], schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
        self.read(node["children"][0], {}, f"{path}[]")  # what a function applies it to isn't known
        return {}, path

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow a reference inside the schema; what isn't simple says nothing."""
        for _ in range(20):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            found = self.definitions.get(reference.rpartition("/")[2])
            schema = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
        return {} if any(key in schema for key in ("$ref", "anyOf", "oneOf", "allOf", "if")) else schema

    def _position(self, name: str) -> tuple[int, int]:
        for index, (found, start, end) in enumerate(self._names):
            if found == name:
                del self._names[: index + 1]
                return start, end
        return 0, len(self.text)


def _items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("items")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _definitions(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (schema or {}).get("$defs", (schema or {}).get("definitions", {}))


def _closed(schema: Mapping[str, Any]) -> bool:
    """Whether an object has no other fields than those that its schema names, or isn't meant to."""
    return schema.get("additionalProperties", False) is False and "patternProperties" not in schema


def _name_tokens(text: str) -> list[tuple[str, int, int]]:
    """List the field names in an expression with their offsets, without the names of functions."""
    from jmespath.lexer import Lexer

    listed = cast("list[dict[str, Any]]", list(Lexer().tokenize(text)))
    return [
        (str(token["value"]), int(token["start"]), _token_end(text, token))
        for token, after in pairwise(listed)
        if token["type"].endswith("quoted_identifier") and after["type"] != "lparen"
    ]


def _token_end(text: str, token: Mapping[str, Any]) -> int:
    start = int(token["start"])
    return start + len(str(token["value"])) + (2 if text[start : start + 1] == '"' else 0)
