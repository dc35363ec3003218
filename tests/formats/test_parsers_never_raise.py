"""For any input, the parsers report faults and never raise."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.diagnostics.known_codes import CODES
from llm_do.formats.agent_file import AgentFile, parse_agent, readable_name
from llm_do.formats.manifest import ManifestFile, parse_manifest
from llm_do.formats.parts.shared import CompactionFile, StateGate
from llm_do.formats.parts.threads import ThreadsFile
from llm_do.formats.syntax.source import decode, lines_of
from llm_do.formats.validation.validator import Parsed
from llm_do.ui.reports.diagnostic_text import render_text

WORDS = [
    *AgentFile.model_fields,
    *ManifestFile.model_fields,
    *(name for part in (StateGate, CompactionFile, ThreadsFile) for name in part.model_fields),
    *("no", "1.10", "012", "true", "null", "a", "web_search", "tool_type", "type", "mode", "team", "mcp", "filesystem"),
    *("$ref", "#/a", "prefix", "{", "}", "[", "]", ",", ":", ": ", "- ", "\n", "\n  ", "\r\n", "\t", "'", '"', "&a "),
    *("*a", "<<", "!!str ", "|\n", ">-\n", "---", "---\n", "\n---\n", "#", "?", "%", "@", "1e999", "\\", "é", "日"),
]
soup = st.lists(st.sampled_from(WORDS), max_size=40).map("".join)
texts = (
    soup
    | st.text()
    | soup.map(lambda text: f"---\n{text}\n---\n")
    | soup.map(lambda text: f"---\nname: a\n{text}\n---\n")
)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)


def check(parsed: Parsed[AgentFile] | Parsed[ManifestFile], text: str) -> None:
    lines = lines_of(text.removeprefix("\ufeff"))
    assert parsed.diagnostics or parsed.value is not None
    assert list(parsed.diagnostics) == sorted(
        parsed.diagnostics, key=lambda item: (item.line, item.column, item.code, item.message)
    )
    for item in parsed.diagnostics:
        check_one(item, lines)
    assert bool(render_text(parsed.diagnostics, lambda _: text).encode()) == bool(parsed.diagnostics)


def check_one(item: Diagnostic, lines: list[str]) -> None:
    assert item.code in CODES
    assert "\n" not in item.message
    assert item.message
    assert not item.message.endswith(".")
    assert 1 <= item.line <= len(lines)
    assert 1 <= item.column <= len(lines[item.line - 1]) + 2
    if item.end is not None:
        assert item.end >= (item.line, item.column)


@given(texts)
def test_any_text_is_an_agent_or_has_diagnostics(text: str) -> None:
    parsed = parse_agent(text, "a.agent")
    check(parsed, text)
    readable_name(parsed.node, text)


@given(texts)
def test_any_text_is_a_manifest_or_has_diagnostics(text: str) -> None:
    check(parse_manifest(text, "project.json"), text)


@given(st.binary())
def test_any_bytes_are_text_or_have_a_diagnostic(data: bytes) -> None:
    result = decode(data, "a")
    assert (result.text is None) == bool(result.diagnostics)


@given(data)
def test_any_json_is_a_manifest_or_has_diagnostics(value: object) -> None:
    text = json.dumps(value)
    check(parse_manifest(text, "project.json"), text)
    agent = f"---\n{text}\n---\n"
    check(parse_agent(agent, "a.agent"), agent)


@given(st.dictionaries(st.sampled_from(list(ManifestFile.model_fields)), data, max_size=6))
def test_known_keys_with_any_values_have_diagnostics(value: dict[str, object]) -> None:
    text = json.dumps({"version": 1, "entry": {"agent": "a"}, **value}, indent=1)
    check(parse_manifest(text, "project.json"), text)


@given(st.dictionaries(st.sampled_from(list(AgentFile.model_fields)), data, max_size=6))
def test_known_keys_of_agents_with_any_values_have_diagnostics(value: dict[str, object]) -> None:
    text = f"---\n{json.dumps({'name': 'a', **value})}\n---\n"
    check(parse_agent(text, "a.agent"), text)
