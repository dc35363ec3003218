"""Checking JSON Schemas, an agent's `output` above all, with their locations in the file.

jsonschema is imported only when there is a schema to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from llm_do.diagnostics.codes import shape as problems
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import AmbiguousScalar, KeyPath, Node, format_key_path

if TYPE_CHECKING:
    from jsonschema import ValidationError

__all__ = ["check_output", "check_schema"]

_MOST = 20
_PREFIX = "#/$defs/"
_DEFINITION = re.compile(r"#/\$defs/[^/%]+")


def check_schema(root: Node, loc: KeyPath) -> list[Diagnostic]:
    """Check a JSON Schema against its metaschema, and its references.

    Example:
        >>> from llm_do.formats.syntax.json_nodes import parse_json
        >>> node = parse_json('{"output": {"type": "objekt"}}', "a.json").node
        >>> check_schema(node, ("output",))[0].column
        21
    """
    node = _written(root, loc)
    if node is None:
        return []
    schema = cast("dict[str, object]", node.data())
    return [*_against_metaschema(node, schema, loc), *_references(node, schema, loc)][:_MOST]


def check_output(root: Node, loc: KeyPath) -> list[Diagnostic]:
    """Check the JSON Schema of an output, which a model is sent and PydanticAI reads.

    Example:
        >>> from llm_do.formats.syntax.json_nodes import parse_json
        >>> node = parse_json('{"output": {"type": "array"}}', "a.json").node
        >>> [len(check(node, ("output",))) for check in (check_schema, check_output)]
        [0, 1]
    """
    found = check_schema(root, loc)
    node = _written(root, loc)
    if found or node is None:
        return found
    schema = cast("dict[str, object]", node.data())
    return ([*_indirect(node, loc)] or [*_circles(node, loc), *_kind(node, schema, loc)])[:_MOST]


def _written(root: Node, loc: KeyPath) -> Node | None:
    """A schema that can be checked: one whose values are reported as ambiguous already has no known meaning."""
    node = root.at(loc)
    if node is None or node.kind != "mapping":
        return None
    return None if any(isinstance(below.scalar, AmbiguousScalar) for _, below in node.walk()) else node


def _against_metaschema(node: Node, schema: dict[str, object], loc: KeyPath) -> Iterable[Diagnostic]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    named = schema.get("$schema")
    cls: Any = validator_for(schema, default=Draft202012Validator) if isinstance(named, str) else Draft202012Validator
    checker = cls(cls.META_SCHEMA, format_checker=cls.FORMAT_CHECKER)
    errors = cast("Iterable[ValidationError]", checker.iter_errors(schema))
    for error in _leaves(errors):
        path = tuple(error.absolute_path)
        yield problems.invalid_schema(format_key_path((*loc, *path)), _reason(error)).at(node.place_of(path))


def _leaves(errors: Iterable[ValidationError]) -> list[ValidationError]:
    """The first error of each path."""
    first: dict[tuple[str | int, ...], ValidationError] = {}
    for error in errors:
        first.setdefault(tuple(error.absolute_path), error)
    return list(first.values())


def _reason(error: ValidationError) -> str:
    if error.validator == "anyOf" and error.context:
        names = next((item for item in error.context if item.validator == "enum"), None)
        if names is not None:
            return f"it must be one of {', '.join(map(str, cast('list[object]', names.validator_value)))}"
    text = error.message.splitlines()[0]
    return text if len(text) <= 160 else text[:157] + "..."


def _references(node: Node, schema: dict[str, object], loc: KeyPath) -> Iterable[Diagnostic]:
    anchors = {below.scalar for path, below in node.walk() if path and path[-1] in ("$anchor", "$dynamicAnchor")}
    for path, below, reference in _each_reference(node):
        if not reference.startswith("#"):
            yield problems.outside_reference(format_key_path((*loc, *path))).at(below.place)
        elif reference[1:] not in anchors and not _pointer(schema, reference[1:]):
            yield problems.dangling_reference(format_key_path((*loc, *path)), reference[:60]).at(below.place)


def _indirect(node: Node, loc: KeyPath) -> Iterable[Diagnostic]:
    for path, below, reference in _each_reference(node):
        if path[-1] == "$ref" and not _DEFINITION.fullmatch(reference):
            yield problems.indirect_reference(format_key_path((*loc, *path)), reference[:60]).at(below.place)


def _each_reference(node: Node) -> Iterable[tuple[KeyPath, Node, str]]:
    for path, below in node.walk():
        reference = below.scalar
        if path and path[-1] in ("$ref", "$dynamicRef") and isinstance(reference, str) and not _is_data(path):
            yield path, below, reference


def _circles(node: Node, loc: KeyPath) -> Iterable[Diagnostic]:
    """Report the first reference of a circle that the output leads to: what is sent to a model has none."""
    found: dict[str | None, list[tuple[str, KeyPath, Node]]] = {}
    for path, below, reference in _each_reference(node):
        name = str(path[1]) if path[0] == "$defs" else None
        found.setdefault(name, []).append((reference.removeprefix(_PREFIX), path, below))
    done: set[str] = set()
    waiting: list[tuple[str | None, tuple[str, ...]]] = [(None, ())]
    while waiting:
        name, before = waiting.pop()
        for target, path, below in found.get(name, ()):
            if target in before:
                names = " -> ".join((*before[before.index(target) :], target))
                yield problems.recursive_reference(format_key_path((*loc, *path)), names).at(below.place)
                return
            if target not in done:
                waiting.append((target, (*before, target)))
        done |= {name} if name is not None else set()


def _kind(node: Node, schema: Mapping[str, object], loc: KeyPath) -> Iterable[Diagnostic]:
    if schema.get("type") != "object" and "$ref" not in schema:
        yield problems.no_object(format_key_path(loc)).at(node.place)


def _is_data(path: KeyPath) -> bool:
    """Whether a path leads into values, or is a property that happens to be called `$ref`."""
    names = path[:-1]
    return any(name in ("const", "default", "enum", "examples") for name in names) or names[-1:] == ("properties",)


def _pointer(schema: object, pointer: str) -> bool:
    here = schema
    for part in unquote(pointer).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = cast("Mapping[str, object]", here)[name]
        elif isinstance(here, list) and name.isdigit() and int(name) < len(cast("list[object]", here)):
            here = cast("list[object]", here)[int(name)]
        else:
            return False
    return pointer == "" or pointer.startswith("/")
