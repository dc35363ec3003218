"""Describe JSON Schemas in words: a section per object, a row per key, with examples from files that tests link."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from llm_do.formats.validation.fields import Strict
from scripts.pages import MissingExampleError
from scripts.pages.markdown import anchor, code, joined, table

__all__ = ["Book", "Section"]

Schema = Mapping[str, Any]

PATTERNS = {
    r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$": "name",
    r"^[A-Za-z0-9_-]{0,63}$": "prefix",
    r"^[^\x00]+$": "path",
    r"^[^:\x00]+\.py:[^\W\d]\w*$": "function",
    r"^(?:[^:\x00]+\.py:|(?:[^\W\d]\w*\.)+)[^\W\d]\w*$": "class",
}
"""The descriptions of patterns for texts."""

WORDS = {
    "text": "at least one character",
    "any text": "text that may be empty",
    "name": "letters, digits, `_` and `-`, not a digit or `-` first, at most 64",
    "prefix": "letters, digits, `_` and `-`, at most 63; may be empty",
    "path": "a path or a glob with `/` between its parts",
    "function": "`FILE.py:FUNCTION`; the file is one of the project's `python_files`",
    "class": "`FILE.py:CLASS` of the project, or `MODULE.CLASS`",
    "data": "any JSON value",
}
"""The meanings of these and other words."""

PLURALS = {"any text": "texts", "class": "classes", "data": "data"}

_EXAMPLE = 44
"""The longest example in a table."""


@dataclass
class Section:
    """An object of a file at a path such as `runtime.budget`, and the other places where it may be used.

    `name` is the schema's name for it, empty for the file itself. `kind` distinguishes objects at the same place, such
    as `mode: team`.
    """

    name: str
    path: str
    kind: str
    schema: Schema
    places: list[str] = field(default_factory=list[str])

    @property
    def heading(self) -> str:
        """The title of the section."""
        return code(self.path) + (f", {code(self.kind)}" if self.kind else "")


class Book:
    """The sections of one file's schema.

    `examples` are files that together contain every key, `write` formats a value as in such a file, and `elsewhere`
    maps objects that another page explains to the address of their section.
    """

    def __init__(
        self,
        schema: Schema,
        examples: Sequence[object],
        write: Callable[[object], str],
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self._schema = schema
        self._write = write
        self._elsewhere = elsewhere or {}
        self.sections: dict[str, Section] = {"": Section("", "", "", schema)}
        self._find("", schema)
        self._examples: dict[tuple[str, str], object] = {}
        for data in examples:
            self._collect("", schema, data)
        self._words: set[str] = set()

    def keys(self) -> Iterator[tuple[str, str]]:
        """Return every section's name with each of its keys."""
        for section in self.sections.values():
            for key in section.schema.get("properties", {}):
                yield section.name, key

    def rows(self, name: str) -> str:
        """Return the table of a section's keys; raise `MissingExampleError` if no example has one of them."""
        schema = self.sections[name].schema
        required = set(schema.get("required", ()))
        rows = [self._row(name, key, part, key in required) for key, part in schema.get("properties", {}).items()]
        return table(["key", "value", "default", "example", "meaning"], rows)

    def section(self, name: str, level: str = "##") -> str:
        """Return a section: its heading, its description, its keys and which of them exclude each other."""
        section = self.sections[name]
        parts = [f"{level} {section.heading}\n", f"{section.schema['description']}\n"]
        if section.places:
            parts.append(f"It is also used at {joined([code(place) for place in section.places], 'and')}.\n")
        parts.append(self.rows(name))
        parts += [f"{rule}\n" for rule in self.rules(name)]
        return "\n".join(parts)

    def rules(self, name: str) -> list[str]:
        """Return sentences about the keys of a section that exclude or need each other."""
        return list(_rules(self.sections[name].schema))

    def words(self) -> str:
        """Return the meanings of the words that the tables so far use for values."""
        rows = [(word, meaning) for word, meaning in WORDS.items() if word in self._words]
        return table(["word", "means"], rows)

    def _row(self, name: str, key: str, part: Schema, required: bool) -> list[str]:
        if (name, key) not in self._examples:
            place = self.sections[name].heading or "the file"
            raise MissingExampleError(
                f"no example shows the key `{key}` of {place}: add it to project.json.example, or to a file in"
                " docs/reference/example"
            )
        shown = self._write(self._examples[name, key])
        example = code(shown) if len(shown) <= _EXAMPLE else "[below](#the-example)"
        default = "required" if required else self._default(name, key)
        return [code(key), self.value(part), default, example, part["description"]]

    def _default(self, name: str, key: str) -> str:
        model = _models().get(name or str(self._schema["title"]))
        if model is None:
            return "none"
        fields = {info.alias or each: info for each, info in model.model_fields.items()}
        value = fields[key].get_default(call_default_factory=True)
        if value is None:
            return "none"
        return "" if isinstance(value, BaseModel) or value == {} else code(json.dumps(value, ensure_ascii=False))

    def value(self, part: Schema) -> str:
        """Describe the type and the limits of a value with this schema."""
        if "$ref" in part:
            name = _name(part)
            return f"[object]({self._elsewhere.get(name) or '#' + anchor(self.sections[name].heading)})"
        choices = part.get("oneOf") or part.get("anyOf")
        if choices:
            return self._choice(part, choices)
        if "const" in part:
            return code(json.dumps(part["const"]))
        if "enum" in part:
            return joined([code(json.dumps(value)) for value in part["enum"]])
        return self._typed(part)

    def _typed(self, part: Schema) -> str:
        match part.get("type"):
            case "string":
                return self._text(part)
            case "boolean":
                return "`true` or `false`"
            case "integer" | "number" as kind:
                return ("whole number" if kind == "integer" else "number") + _range(part)
            case "null":
                return "`null`"
            case "array":
                least = ", not empty" if part.get("minItems") else ""
                return f"list of {self._items(part['items'])}{least}"
            case "object":
                return self._mapping(part)
            case _:
                return self._word("data")

    def _items(self, part: Schema) -> str:
        shown = self.value(part)
        if shown in WORDS:
            return PLURALS.get(shown, f"{shown}s")
        if "; or " in shown:
            return f"({shown})"
        return f"objects{shown.removeprefix('object')}" if shown.startswith("object:") else shown

    def _choice(self, part: Schema, choices: Sequence[Schema]) -> str:
        if "discriminator" in part:
            links = [self.value(choice) for choice in choices]
            kinds = [_kind(self._schema["$defs"][_name(choice)]).partition(": ")[2] for choice in choices]
            named = [link.replace("[object]", f"[{kind}]") for link, kind in zip(links, kinds, strict=True)]
            return f"object: {joined(named)}"
        return "; or ".join(self.value(choice) for choice in choices)

    def _mapping(self, part: Schema) -> str:
        (inner,) = part.get("patternProperties", {"": part.get("additionalProperties", True)}).values()
        if inner is True:
            return "object"
        names = self._word("name") if "patternProperties" in part else self._word("text")
        one = "object with one key" if part.get("maxProperties") == 1 else "object"
        return f"{one}, {names} to {self.value(inner)}"

    def _text(self, part: Schema) -> str:
        if "pattern" in part:
            return self._word(PATTERNS[part["pattern"]])
        return self._word("text" if part.get("minLength") else "any text")

    def _word(self, word: str) -> str:
        self._words.add(word)
        return word

    def _find(self, path: str, schema: Schema) -> None:
        """Add a section for every reachable object, in the order in which a reader meets them."""
        for key, part in schema.get("properties", {}).items():
            for place, target in _targets(part, f"{path}.{key}" if path else key):
                name = _name(target)
                if name in self._elsewhere:
                    continue
                if name in self.sections:
                    if place != self.sections[name].path:
                        self.sections[name].places.append(place)
                    continue
                found = self._schema["$defs"][name]
                self.sections[name] = Section(name, place, _kind(found), found)
                self._find(place, found)

    def _collect(self, name: str, schema: Schema, data: object) -> None:
        """Collect an example's value for each key."""
        if "$ref" in schema:
            return self._collect(_name(schema), self._schema["$defs"][_name(schema)], data)
        for choice in schema.get("oneOf") or schema.get("anyOf") or ():
            if "required" not in choice and self._fits(choice, data):
                self._collect(name, choice, data)
        if isinstance(data, list):
            for item in data:
                self._collect(name, schema.get("items", {}), item)
        elif isinstance(data, dict):
            self._collect_object(name, schema, data)
        return None

    def _collect_object(self, name: str, schema: Schema, data: Mapping[str, object]) -> None:
        known = schema.get("properties", {})
        for key, value in data.items():
            if key in known:
                if not self._examples.get((name, key)):
                    self._examples[name, key] = value
                self._collect(name, known[key], value)
                continue
            for inner in (*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")):
                if isinstance(inner, Mapping):
                    self._collect(name, inner, value)

    def _fits(self, choice: Schema, data: object) -> bool:
        schema = self._schema["$defs"][_name(choice)] if "$ref" in choice else choice
        kinds = {str: "string", list: "array", dict: "object", bool: "boolean"}
        if schema.get("type", "object") != kinds.get(type(data)):
            return False
        if isinstance(data, dict) and _kind(schema) in schema.get("required", ()) and _kind(schema) not in data:
            return False
        consts = {key: part["const"] for key, part in schema.get("properties", {}).items() if "const" in part}
        return all(isinstance(data, dict) and data.get(key) == const for key, const in consts.items())


def _targets(part: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Return the objects in a key's value, each with its place."""
    if "$ref" in part:
        yield path, part
    for choice in part.get("oneOf") or part.get("anyOf") or ():
        yield from _targets(choice, path)
    if isinstance(part.get("items"), Mapping):
        yield from _targets(part["items"], f"{path}[]")
    for inner in (*part.get("patternProperties", {}).values(), part.get("additionalProperties")):
        if isinstance(inner, Mapping):
            yield from _targets(inner, f"{path}.NAME")


def _kind(schema: Schema) -> str:
    properties = schema.get("properties", {})
    consts = [f"{key}: {part['const']}" for key, part in properties.items() if "const" in part]
    steps = [key for key in ("when", "for_each", "repeat") if key in schema.get("required", ())]
    if steps:
        return steps[0]
    return consts[0] if consts and "version" not in consts[0] else ""


def _name(part: Schema) -> str:
    return str(part["$ref"]).rpartition("/")[2]


def _models() -> dict[str, type[BaseModel]]:
    """Return the models of the schemas by the names in the schemas."""
    return {str(kind.model_config.get("title") or kind.__name__): kind for kind in Strict.__subclasses__()}


def _range(part: Schema) -> str:
    low, high, above = part.get("minimum"), part.get("maximum"), part.get("exclusiveMinimum")
    if above is not None:
        return f" above {above:g}" + (f", at most {_number(high)}" if high is not None else "")
    if high is not None:
        return f" from {low:g} to {_number(high)}"
    return f", at least {low:g}" if low is not None else ""


def _rules(schema: Schema) -> Iterator[str]:
    """Describe which keys exclude or need each other."""
    one_of = [code(key) for choice in schema.get("oneOf", ()) for key in choice.get("required", ())]
    if one_of:
        yield f"Exactly one of {joined(one_of, 'and')} is required."
    for pair in schema.get("not", {}).get("anyOf", ()):
        yield f"{joined([code(key) for key in pair['required']], 'and')} exclude each other."
    if schema.get("additionalProperties") is True:
        yield "Other keys are allowed."


def _number(value: float) -> str:
    """Return a number in full, with commas between its thousands."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
