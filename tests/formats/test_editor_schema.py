"""The schemas for editors: complete, described, and consistent with the parsers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from llm_do.formats.agent_file import AgentFile, parse_agent
from llm_do.formats.case_file import parse_tests
from llm_do.formats.editor_schema import agent_schema, cases_schema, project_schema
from llm_do.formats.manifest import ManifestFile, parse_manifest

SCHEMAS = {"agent": agent_schema, "project": project_schema, "tests": cases_schema}


def properties(schema: object, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, list):
        for item in schema:
            yield from properties(item, where)
    if isinstance(schema, dict):
        for name, part in schema.get("properties", {}).items():
            yield f"{where}.{name}", part
        for key, part in schema.items():
            yield from properties(part, f"{where}.{key}")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_valid_and_describes_every_key(kind: str) -> None:
    schema = SCHEMAS[kind]()
    Draft202012Validator.check_schema(schema)
    found = list(properties(schema))
    assert len(found) > 40
    assert [where for where, part in found if not part.get("description")] == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_only_one_key_may_be_null(kind: str) -> None:
    nullable = [where for where, part in properties(SCHEMAS[kind]()) if {"type": "null"} in part.get("anyOf", [])]
    assert nullable == ([".generated_agents_dir"] if kind == "project" else [])


def test_the_schemas_have_the_keys_of_the_models() -> None:
    assert set(agent_schema()["properties"]) == set(AgentFile.model_fields)
    assert set(project_schema()["properties"]) == {info.alias or n for n, info in ManifestFile.model_fields.items()}


TESTS: list[tuple[str, bool]] = [
    ("tests: [{name: greets}]", True),
    ("tests: []", False),
    ("{}", False),
    ("tests: [{name: greets, answer: {write_file: once}, copy: none}]", True),
    ("tests: [{name: greets, answer: perhaps}]", False),
    ("tests: [{name: greets, expect: {output: {contains: [a, b], schema: {type: object}, json: {$.a: null}}}}]", True),
    ("tests: [{name: greets, expect: {output: Ann}}]", False),
    ("tests: [{name: greets, live: {repeat: 10, pass: 0.8}}]", True),
    ("tests: [{name: greets, live: {repeat: 10, pass: 80}}]", False),
    ("{tests: [{name: greets}], matrix: {small: {model: [test]}}}", True),
    ("{tests: [{name: greets}], matrix: {small: {modle: test}}}", False),
]


@pytest.mark.parametrize(("text", "valid"), TESTS)
def test_the_schema_of_tests_agrees_with_their_parser(text: str, valid: bool) -> None:
    assert parse_tests(text, "a.test.yaml").ok == valid
    assert Draft202012Validator(cases_schema()).is_valid(yaml.safe_load(text)) == valid


def test_each_call_makes_a_new_schema() -> None:
    agent_schema()["properties"].clear()
    assert agent_schema()["properties"]


MANIFESTS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"runtime": {"max_depth": 2}}, True),
    ({"approvals": {"allow": ["x", {"rule": "y"}]}}, True),
    ({"toolsets": {"d": {"type": "filesystem"}}}, True),
    ({"model": ["a"]}, True),
    ({"generated_agents_dir": None}, True),
    ({"version": 2}, False),
    ({"version": "1"}, False),
    ({"name": None}, False),
    ({"modle": "x"}, False),
    ({"entry": {}}, False),
    ({"entry": None}, False),
    ({"entry": {"agent": "a", "function": "m.py:f"}}, False),
    ({"runtime": {"max_depth": 0}}, False),
    ({"approvals": {"allow": [{}]}}, False),
    ({"toolsets": {"d": {"type": "fs"}}}, False),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("change", "fine"), MANIFESTS)
def test_editor_schema_and_linker_agree_about_manifests(change: dict[str, Any], fine: bool) -> None:
    data = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], **change}
    assert Draft202012Validator(project_schema()).is_valid(data) is fine
    assert parse_manifest(json.dumps(data), "project.json").ok is fine


@pytest.mark.parametrize(
    ("change", "fine"),
    [
        ({}, True),
        ({"tools": ["a"], "toolsets": ["b", {"c": {"prefix": "d", "x": 1}}]}, True),
        ({"toolsets": {"c": {}}}, True),
        ({"model_settings": {"thinking": "high", "openai_x": 1}}, True),
        ({"server_side_tools": [{"tool_type": "web_search", "max_uses": 1}]}, True),
        ({"name": "a b"}, False),
        ({"model": "x", "compatible_models": ["y"]}, False),
        ({"output": {}, "output_model_ref": "a.py:B"}, False),
        ({"toolsets": [{"a": {}, "b": {}}]}, False),
        ({"max_steps": None}, False),
        ({"server_side_tools": [{"tool_type": "x"}]}, False),
    ],
)
def test_editor_schema_and_linker_agree_about_agents(change: dict[str, Any], fine: bool) -> None:
    data = {"name": "a", **change}
    assert Draft202012Validator(agent_schema()).is_valid(data) is fine
    assert parse_agent(f"---\n{json.dumps(data)}\n---\n", "a.agent").ok is fine
