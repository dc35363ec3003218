from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from llm_do.errors import ModelUnavailableError
from llm_do.models.builtin.grammar import bounded_schema, decoder_schema, schema_line
from tests.support.tables import each_row

NODE = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "required": ["name", "next"],
        }
    },
    "$ref": "#/$defs/Node",
}


def test_a_recursive_schema_is_unrolled_to_a_depth() -> None:
    bounded = bounded_schema(NODE)
    text = json.dumps(bounded)
    assert "$ref" not in text
    assert text.count('"name"') == 4  # the name and its place in `required`, twice


def test_an_infinitely_recursive_schema_is_rejected() -> None:
    endless = {"$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}}}
    with pytest.raises(ModelUnavailableError, match="contains itself without end"):
        bounded_schema({**endless, "$ref": "#/$defs/A"})


def test_a_recursive_list_ends_in_an_empty_one() -> None:
    tree = {
        "$defs": {"T": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}},
        "$ref": "#/$defs/T",
    }
    assert '"maxItems": 0' in json.dumps(bounded_schema(tree))


@each_row(
    "schema, expected",
    [
        ({"type": "string"}, {"type": "string", "maxLength": 160}),
        ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 9}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "pattern": "(?!x)a"}, {"type": "string", "maxLength": 160}),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 1, "maximum": 10**9}),
        ({"type": "integer", "minimum": 10**12}, {"type": "integer", "minimum": 10**12, "maximum": 1001 * 10**9}),
        (
            {"type": "integer", "exclusiveMaximum": -(10**12)},
            {"type": "integer", "exclusiveMaximum": -(10**12), "minimum": -1001 * 10**9},
        ),
        ({"enum": ["a", "b"], "title": "T"}, {"enum": ["a", "b"]}),
        ({"type": "boolean", "title": "T"}, {"type": "boolean"}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string", "maxLength": 160}, {"type": "null"}]}),
        (
            {"type": "array", "minItems": 8, "items": {"type": "null"}},
            {"type": "array", "maxItems": 8, "minItems": 8, "items": {"type": "null"}},
        ),
    ],
)
def test_an_unbounded_schema_gets_a_bound(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert bounded_schema(schema) == expected


def test_an_object_has_the_properties_it_names_and_no_others() -> None:
    for properties in ({"a": {"type": "null"}}, {}):
        bounded = bounded_schema({"type": "object", "properties": properties})
        assert bounded["additionalProperties"] is False
        assert "patternProperties" not in bounded


def test_all_of_is_merged() -> None:
    base = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}
    more = {"properties": {"b": {"type": "null"}}, "required": ["b"]}
    bounded = bounded_schema({"allOf": [{"$ref": "#/$defs/Base"}, more], "$defs": {"Base": base}})
    assert list(bounded["properties"]) == bounded["required"] == ["a", "b"]


def test_an_infinitely_recursive_all_of_is_rejected() -> None:
    with pytest.raises(ModelUnavailableError, match="contains itself without end"):
        bounded_schema({"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}, "$ref": "#/$defs/A"})


@each_row("reference", ["#/$defs/Gone", "https://example.org/schema", "#/anyOf/1", "#/type"])
def test_an_unresolvable_reference_is_rejected(reference: str) -> None:
    with pytest.raises(ModelUnavailableError, match="which it doesn't contain"):
        bounded_schema({"type": "object", "properties": {"a": {"$ref": reference}}, "anyOf": [{"$ref": reference}]})


def test_a_dictionary_has_few_short_keys() -> None:
    bounded = bounded_schema({"type": "object", "additionalProperties": {"type": "null"}})
    assert bounded["maxProperties"] == 6
    assert list(bounded["patternProperties"].values()) == [{"type": "null"}]


def test_whitespace_is_fixed_for_the_decoder() -> None:
    assert decoder_schema({"type": "null"})["x-guidance"]["whitespace_flexible"] is False


class Address(BaseModel):
    street: str
    zip: int | None = None


class Person(BaseModel):
    name: str
    tags: list[str]
    home: Address
    extra: dict[str, float]


def test_a_pydantic_models_shape_fits_on_one_line() -> None:
    line = schema_line(bounded_schema(Person.model_json_schema()))
    assert line == "{name: string, tags: string[], home: {street: string, zip?: integer | null}, extra: object}"


scalars = st.sampled_from([{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")])
schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda each: {"anyOf": each}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda each: {"type": "object", "properties": each, "required": sorted(each)},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
        st.builds(lambda each: {"type": "object", "additionalProperties": each}, inner),
    ),
    max_leaves=8,
)


@given(schemas)
def test_any_schemas_bounded_form_is_a_valid_schema_that_fits_on_one_line(schema: dict[str, Any]) -> None:
    bounded = bounded_schema(schema)
    Draft202012Validator.check_schema(bounded)
    assert "\n" not in schema_line(bounded)
