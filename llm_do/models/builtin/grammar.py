"""JSON Schemas for constrained decoding: every answer that they allow is finite and short.

Without bounds a small model writes digits or spaces until it reaches its token limit, and a keyword that the decoder
doesn't know disables the constraint. So bounds are added here and unknown keywords removed; the agent's validator still
checks the answer against the original schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from llm_do.errors import ModelUnavailableError

__all__ = ["JsonSchema", "bounded_schema", "decoder_schema", "schema_line"]

JsonSchema: TypeAlias = Mapping[str, Any]

STRING = 160
ARRAY = 6
KEYS = 6
INTEGER = 10**9
STEP = 0.0001
DEPTH = 2
"""How many times a recursive schema is unrolled."""

KEPT = (
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maximum",
    "maxItems",
    "maxLength",
    "minimum",
    "minItems",
    "minLength",
    "multipleOf",
    "pattern",
    "required",
    "type",
)
FORMATS = ("date", "date-time", "duration", "ipv4", "time", "uuid")
PATTERNS = {
    "email": r"^[A-Za-z0-9._+-]{1,30}@[A-Za-z0-9-]{1,30}\.[a-z]{2,6}$",
    "hostname": r"^[a-z0-9-]{1,30}(\.[a-z0-9-]{1,30}){0,3}$",
    "uri": r"^https?://[A-Za-z0-9./?=&_%-]{1,80}$",
}
GUIDANCE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}


def decoder_schema(schema: JsonSchema) -> dict[str, Any]:
    """Bound a schema and add the decoder's settings for white space in JSON."""
    return {**bounded_schema(schema), "x-guidance": GUIDANCE}


def bounded_schema(schema: JsonSchema) -> dict[str, Any]:
    """Bound the strings, arrays, dictionaries and numbers of a schema; inline its references and unroll its recursion.

    Example:
        >>> bounded_schema({"type": "array", "items": {"type": "string"}})
        {'type': 'array', 'maxItems': 6, 'items': {'type': 'string', 'maxLength': 160}}
    """
    bounded = _node(schema, schema, ())
    if bounded is None:
        raise ModelUnavailableError(
            "the local model can't use a schema that contains itself without end",
            hint="make the recursive part optional, or use another model",
        )
    return bounded


def schema_line(schema: JsonSchema) -> str:
    """Describe the shape of a bounded schema in one line, for a prompt.

    Example:
        >>> schema_line({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]})
        '{a: number}'
    """
    if options := cast("Sequence[object] | None", schema.get("enum")):
        return " | ".join(str(option) for option in options)
    if "const" in schema:
        return str(schema["const"])
    if alternatives := cast("Sequence[JsonSchema] | None", schema.get("anyOf")):
        return " | ".join(schema_line(alternative) for alternative in alternatives)
    if properties := cast("Mapping[str, JsonSchema] | None", schema.get("properties")):
        required = cast("Sequence[str]", schema.get("required", ()))
        fields = (f"{name}{'' if name in required else '?'}: {schema_line(each)}" for name, each in properties.items())
        return "{" + ", ".join(fields) + "}"
    if schema.get("type") == "array":
        return f"{schema_line(cast('JsonSchema', schema.get('items', {})))}[]"
    return str(schema.get("format") or schema.get("type") or "any")


def _node(schema: object, root: JsonSchema, stack: tuple[str, ...]) -> dict[str, Any] | None:
    """Bound one node; None if it has no finite answer."""
    if not isinstance(schema, Mapping):
        return {"type": "string", "maxLength": STRING} if schema is not False else None
    node = cast("JsonSchema", schema)
    if isinstance(reference := node.get("$ref"), str):
        if stack.count(reference) >= DEPTH:
            return None
        target = _target(root, reference)
        return _node({**target, **{k: v for k, v in node.items() if k != "$ref"}}, root, (*stack, reference))
    for key in ("anyOf", "oneOf"):
        if key in node:
            found = [_node(each, root, stack) for each in cast("Sequence[object]", node[key])]
            alternatives = [each for each in found if each is not None]
            return {"anyOf": alternatives} if alternatives else None
    if "allOf" in node:
        flat, references = _flatten_all_of(node, root)
        if any(stack.count(each) >= DEPTH for each in references):
            return None
        return _node(flat, root, (*stack, *references))
    kept: dict[str, Any] = {key: value for key, value in node.items() if key in KEPT}
    if "enum" in kept or "const" in kept:
        return {key: value for key, value in kept.items() if key in ("enum", "const")}
    return _typed(kept, node, root, stack)


def _target(root: JsonSchema, reference: str) -> JsonSchema:
    target: Any = root
    for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isdecimal() and int(name) < len(cast("list[Any]", target)):
            target = cast("list[Any]", target)[int(name)]
        elif isinstance(target, Mapping) and name in target:
            target = cast("JsonSchema", target)[name]
        else:
            target = None
    if not isinstance(target, Mapping):
        raise ModelUnavailableError(
            f"the local model can't use a schema that refers to {reference!r}, which it doesn't contain",
            hint="inline the reference, or use another model",
        )
    return cast("JsonSchema", target)


def _flatten_all_of(node: JsonSchema, root: JsonSchema) -> tuple[dict[str, Any], list[str]]:
    """Merge a node with the parts of its `allOf`; return the result and the references that were followed.

    `properties` and `required` are combined.
    """
    result, references = {**node}, list[str]()
    for part in cast("Sequence[JsonSchema]", result.pop("allOf")):
        reference = part.get("$ref")
        each = {key: value for key, value in part.items() if key != "$ref"}
        if isinstance(reference, str):
            references.append(reference)
            each = {**_target(root, reference), **each}
        for key in ("properties", "required"):
            if key in each and key in result:
                both = (result[key], each[key])
                each[key] = {**both[0], **both[1]} if key == "properties" else list(dict.fromkeys([*both[0], *both[1]]))
        result.update(each)
    return result, references


def _typed(kept: dict[str, Any], node: JsonSchema, root: JsonSchema, stack: tuple[str, ...]) -> dict[str, Any] | None:
    kind = kept.get("type")
    if isinstance(kind, list):
        kinds = cast("list[str]", kind)
        return _node({"anyOf": [{**node, "type": each} for each in kinds]}, root, stack)
    if kind is None:
        kind = next((kind for key, kind in (("properties", "object"), ("items", "array")) if key in node), "string")
        kept["type"] = kind
    if kind == "object":
        return _object(kept, node, root, stack)
    if kind == "array":
        return _array(kept, node, root, stack)
    if kind == "string":
        return _string(kept)
    if kind in ("integer", "number"):
        return _number(kept)
    return {"type": kind}


def _object(kept: dict[str, Any], node: JsonSchema, root: JsonSchema, stack: tuple[str, ...]) -> dict[str, Any] | None:
    required = set(cast("Sequence[str]", kept.get("required", ())))
    properties: dict[str, Any] = {}
    for name, each in cast("JsonSchema", node.get("properties", {})).items():
        bounded = _node(each, root, stack)
        if bounded is not None:
            properties[name] = bounded
        elif name in required:
            return None
    result: dict[str, Any] = {"type": "object"}
    if properties:
        result["properties"] = properties
        result["required"] = [name for name in properties if name in required]
    free = node.get("additionalProperties", "properties" not in node)
    values = _node(free, root, stack) if free is not False and not properties else None
    result["additionalProperties"] = False
    if values is not None:
        result["patternProperties"] = {"^[A-Za-z0-9_ -]{1,40}$": values}
        result["maxProperties"] = KEYS
    return result


def _array(kept: dict[str, Any], node: JsonSchema, root: JsonSchema, stack: tuple[str, ...]) -> dict[str, Any] | None:
    least = int(kept.get("minItems", 0))
    most = min(int(kept.get("maxItems", max(ARRAY, least))), max(ARRAY, least))
    result: dict[str, Any] = {"type": "array", "maxItems": most}
    if least:
        result["minItems"] = least
    if prefix := cast("Sequence[object] | None", node.get("prefixItems")):
        items = [_node(each, root, stack) for each in prefix]
        if None in items:
            return None
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}
    items = _node(node.get("items", {}), root, stack)
    if items is None:
        return None if least else {"type": "array", "maxItems": 0}
    result["items"] = items
    return result


def _string(kept: dict[str, Any]) -> dict[str, Any]:
    kind = kept.get("format")
    if kind in FORMATS:
        return {"type": "string", "format": kind}
    pattern = PATTERNS.get(str(kind)) or kept.get("pattern")
    # The decoder doesn't support look-around; the agent's validator still checks it.
    if isinstance(pattern, str) and "(?" not in pattern:
        return {"type": "string", "pattern": pattern}
    result: dict[str, Any] = {"type": "string", "maxLength": min(int(kept.get("maxLength", STRING)), 4 * STRING)}
    if "minLength" in kept:
        result["minLength"] = min(int(kept["minLength"]), result["maxLength"])
    return result


def _number(kept: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {key: kept[key] for key in ("type", "multipleOf") if key in kept}
    bounds = {key: kept[key] for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if key in kept}
    least = next((bounds[key] for key in ("minimum", "exclusiveMinimum") if key in bounds), None)
    most = next((bounds[key] for key in ("maximum", "exclusiveMaximum") if key in bounds), None)
    if least is None:
        bounds["minimum"] = -INTEGER if most is None or most > -INTEGER else most - INTEGER
    if most is None:
        bounds["maximum"] = INTEGER if least is None or least < INTEGER else least + INTEGER
    if kept["type"] == "number":
        result.setdefault("multipleOf", STEP)
    return {**result, **bounds}
