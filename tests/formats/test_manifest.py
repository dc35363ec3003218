"""What a manifest may contain, and how faults in it are reported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.manifest import ManifestFile, parse_manifest
from llm_do.formats.validation.validator import Parsed
from tests.support.tables import each_row

LEAST = '"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]'

FULL = {
    "$schema": "project.schema.json",
    "version": 1,
    "name": "Receipts",
    "description": "Reads receipts.",
    "entry": {"function": "main.py:main", "args": {"input": "x"}, "input_model_ref": "schemas.py:Input"},
    "allow_cli_input": False,
    "agent_files": ["agents/**/*.agent"],
    "python_files": ["main.py", "schemas.py"],
    "model": ["local", "test"],
    "model_settings": {"temperature": 0, "max_tokens": 100, "anthropic_thinking": {"type": "enabled"}},
    "runtime": {
        "approval_mode": "reject_all",
        "max_depth": 4,
        "max_steps": 20,
        "loop_threshold": 0,
        "max_retries": 1,
        "on_tool_error": "raise",
        "tool_timeout": 1,
        "run_timeout": 2.5,
        "max_concurrency": 5,
        "max_calls_per_response": 7,
        "max_result_bytes": 1000,
        "record": {"exchanges": False, "keep_days": 7, "max_mb": 50},
        "auth_mode": "oauth_off",
        "budget": {"requests": 1, "tool_calls": 2, "input_tokens": 3, "output_tokens": 4, "total_tokens": 5}
        | {"cost_usd": 0.5, "descendants": 0},
        "return_permission_errors": False,
        "agent_calls_require_approval": True,
        "agent_attachments_require_approval": True,
        "agent_approval_overrides": {"main": {"calls_require_approval": False}},
    },
    "approvals": {
        "default": "ask",
        "deny": ["delete_file"],
        "ask": [{"rule": "write_file", "why": "x", "allows": ["a"], "refuses": ["b"]}],
        "allow": ["read_file(docs/**)"],
        "policy": "approvals.py:policy",
    },
    "toolsets": {
        "docs": {
            "type": "filesystem",
            "root": "docs",
            "read_only": True,
            "ignore": ["*.bin"],
            "allow_protected": ["x"],
        },
        "git": {"type": "shell", "allow": ["git log *"], "cwd": ".", "env": ["PATH"]},
    },
    "record": False,
    "generated_agents_dir": None,
}


def parse(inside: str) -> Parsed[ManifestFile]:
    return parse_manifest("{" + inside + "}", "project.json")


def codes(inside: str) -> list[tuple[str, int]]:
    """The codes and columns of the faults in a one-line manifest."""
    return [(item.code, item.column) for item in parse(inside).diagnostics]


def extra(inside: str) -> list[tuple[str, str]]:
    """Code and text at the location of each fault of a minimal manifest with these additional keys."""
    return fault_texts("{" + LEAST + ", " + inside + "}")


def fault_texts(text: str) -> list[tuple[str, str]]:
    parsed = parse_manifest(text, "project.json")
    lines = text.split("\n")
    return [(item.code, _at(item, lines)) for item in parsed.diagnostics]


def _at(item: Diagnostic, lines: list[str]) -> str:
    end = item.end
    assert end is not None
    assert end[0] == item.line
    return lines[item.line - 1][item.column - 1 : end[1] - 1]


def test_every_supported_key_is_read() -> None:
    parsed = parse_manifest(json.dumps(FULL, indent=2), "project.json")
    assert parsed.diagnostics == ()
    assert parsed.value is not None
    value = parsed.value
    assert value.entry is not None
    assert (value.entry.function, value.entry.args) == ("main.py:main", {"input": "x"})
    assert value.runtime.budget.cost_usd == 0.5
    assert value.runtime.agent_approval_overrides["main"].calls_require_approval is False
    assert value.runtime.agent_approval_overrides["main"].attachments_require_approval is None
    assert value.model_settings["anthropic_thinking"] == {"type": "enabled"}  # pyright: ignore
    assert value.approvals.policy == "approvals.py:policy"
    assert value.toolsets["docs"].type == "filesystem"


def test_omitted_keys_have_the_defaults_of_the_format() -> None:
    value = parse(LEAST).value
    assert value is not None
    assert value.allow_cli_input
    assert value.record
    assert value.model is None
    assert value.runtime.model_dump() == {
        "approval_mode": "prompt",
        "max_depth": 5,
        "max_steps": 10,
        "loop_threshold": 3,
        "max_retries": 3,
        "on_tool_error": "return",
        "tool_timeout": None,
        "run_timeout": None,
        "max_concurrency": 50,
        "max_calls_per_response": 128,
        "max_result_bytes": 65_536,
        "record": {"exchanges": True, "keep_days": 30, "max_mb": 500},
        "auth_mode": "oauth_off",
        "budget": dict.fromkeys(
            ("requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost_usd", "descendants")
        ),
        "return_permission_errors": True,
        "agent_calls_require_approval": False,
        "agent_attachments_require_approval": False,
        "agent_approval_overrides": {},
    }


def test_a_manifest_of_the_older_format_is_read() -> None:
    text = '{"version": 1, "runtime": {}, "entry": {"function": "a.py:main"}, "python_files": ["a.py"]' + (
        ', "allow_cli_input": true, "generated_agents_dir": null, "agent_files": []}'
    )
    assert parse_manifest(text, "project.json").ok


@each_row("version", ["true", "1.0", '"1"', "null", "[1]", "{}"])
def test_the_version_is_the_integer_one(version: str) -> None:
    text = f'{{"version": {version}, "entry": {{"agent": "main"}}, "agent_files": ["*.agent"]}}'
    parsed = parse_manifest(text, "project.json")
    assert [(item.code, item.column) for item in parsed.diagnostics] == [("LD122", 13)]
    assert parsed.value is not None
    assert parsed.value.agent_files == ["*.agent"]


def test_an_unknown_version_stops_further_checks() -> None:
    assert fault_texts('{"version": 2, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}') == [("LD132", "2")]


@each_row(
    "entry, expected",
    [
        ("{}", [("LD127", '"entry"')]),
        ('{"agent": "a", "function": "m.py:f"}', [("LD127", '"function"')]),
        ('{"agent": "a", "flow": "b"}', [("LD127", '"flow"')]),
        ('{"agnt": "a"}', [("LD120", '"agnt"')]),
        ('{"agent": "a b"}', [("LD125", '"a b"')]),
        ('{"agent": 5}', [("LD122", "5")]),
        ('{"agent": null}', [("LD122", "null")]),
        ('{"function": "main.py"}', [("LD126", '"main.py"')]),
        ('{"function": "main:main"}', [("LD126", '"main:main"')]),
        ('{"function": "m.py:f", "input_model_ref": "s.py"}', [("LD126", '"s.py"')]),
        ('{"agent": "a", "input_model_ref": "s.py:X"}', [("LD128", '"input_model_ref"')]),
        ('{"agent": "a", "args": []}', [("LD122", "[]")]),
        ('"main"', [("LD122", '"main"')]),
        ("null", [("LD122", "null")]),
    ],
)
def test_the_entry_names_exactly_one_thing(entry: str, expected: list[tuple[str, str]]) -> None:
    assert fault_texts(f'{{"version": 1, "entry": {entry}, "agent_files": ["*.agent"]}}') == expected


@each_row(
    "text, expected",
    [
        ("{}", [("LD121", "{"), ("LD121", "{"), ("LD129", "{")]),
        ('{"version": 1, "entry": {"agent": "a"}}', [("LD129", "{")]),
        ('{"version": 1, "entry": {"agent": "a"}, "agent_files": [], "python_files": []}', [("LD129", "[]")]),
        ('{"version": 1, "entry": {"agent": "a"}, "agent_file": ["a"]}', [("LD120", '"agent_file"')]),
        ('{"version": 1, "entry": {"agent": "a"}, "agent_files": "a"}', [("LD122", '"a"')]),
        ('{"version": 1, "entry": {"agent": "a"}, "agent_files": [""]}', [("LD124", '""')]),
        ('{"version": 1, "entry": {"agent": "a"}, "agent_files": ["a\\u0000"]}', [("LD124", '"a\\u0000"')]),
        ('{"vresion": 1, "entry": {"agent": "a"}, "agent_files": ["a"]}', [("LD120", '"vresion"')]),
        ("[]", [("LD122", "[")]),
        ("3", [("LD122", "3")]),
    ],
)
def test_a_manifest_has_a_version_an_entry_and_files(text: str, expected: list[tuple[str, str]]) -> None:
    assert fault_texts(text) == expected


@pytest.mark.parametrize(
    ("inside", "hint"),
    [
        ('"version": 1, "entry": "main", "agent_files": ["a"]', 'write {"agent": "main"}'),
        ('"version": 1, "entry": "m.py:main", "agent_files": ["a"]', 'write {"function": "m.py:main"}'),
        ('"version": 1, "entry": {"agent": "a"}, "agent_files": "a.agent"', 'write ["a.agent"]'),
    ],
)
def test_text_in_place_of_a_mapping_gets_a_hint_with_the_mapping(inside: str, hint: str) -> None:
    (item,) = parse(inside).diagnostics
    assert item.hint == hint


@each_row(
    "inside, expected",
    [
        ('"nmae": "x"', [("LD120", '"nmae"')]),
        ('"name": null', [("LD122", "null")]),
        ('"name": 5', [("LD122", "5")]),
        ('"allow_cli_input": "false"', [("LD122", '"false"')]),
        ('"model": ""', [("LD124", '""')]),
        ('"model": ["a", 1]', [("LD122", "1")]),
        ('"model_settings": {"max_token": 1}', [("LD120", '"max_token"')]),
        ('"model_settings": {"top_p": 2}', [("LD124", "2")]),
        ('"runtime": null', [("LD122", "null")]),
        ('"runtime": {"max_depth": 0, "max_dept": 1}', [("LD124", "0"), ("LD120", '"max_dept"')]),
        ('"runtime": {"approval_mode": "approve-all"}', [("LD123", '"approve-all"')]),
        ('"runtime": {"auth_mode": "oauth_required"}', [("LD131", '"oauth_required"')]),
        ('"runtime": {"budget": {"requests": -1, "tokens": 1}}', [("LD124", "-1"), ("LD120", '"tokens"')]),
        ('"runtime": {"budget": {"cost_usd": "1"}}', [("LD122", '"1"')]),
        ('"runtime": {"tool_timeout": 0}', [("LD124", "0")]),
        ('"runtime": {"record": false}', [("LD122", "false")]),
        ('"runtime": {"record": {"exchange": true}}', [("LD120", '"exchange"')]),
        ('"runtime": {"record": {"keep_days": 0, "max_mb": "9"}}', [("LD124", "0"), ("LD122", '"9"')]),
        ('"runtime": {"agent_approval_overrides": {"a b": {}}}', [("LD125", '"a b"')]),
        ('"runtime": {"agent_approval_overrides": {"a": {"call": true}}}', [("LD120", '"call"')]),
        ('"approvals": {"allow": "x"}', [("LD122", '"x"')]),
        ('"approvals": {"default": "never"}', [("LD123", '"never"')]),
        ('"approvals": {"allow": [{"why": "x"}]}', [("LD121", '{"why": "x"}')]),
        ('"approvals": {"allow": [{"rule": "x", "refuse": []}]}', [("LD120", '"refuse"')]),
        ('"approvals": {"deny": [5]}', [("LD122", "5")]),
        ('"approvals": {"policy": "x"}', [("LD126", '"x"')]),
        ('"toolsets": {"d": {"type": "fs"}}', [("LD123", '"fs"')]),
        ('"toolsets": {"d": {"root": "x"}}', [("LD121", '"d"')]),
        ('"toolsets": {"d": {"type": "filesystem", "rot": "x"}}', [("LD120", '"rot"')]),
        ('"toolsets": {"d": {"type": "shell", "allow": "git"}}', [("LD122", '"git"')]),
        ('"toolsets": {"d d": {"type": "shell"}}', [("LD125", '"d d"')]),
        ('"toolsets": {"d": []}', [("LD122", "[]")]),
        ('"toolsets": {"g": {"type": "mcp"}}', [("LD121", '"g"')]),
        ('"toolsets": {"g": {"type": "mcp", "url": "x", "scope": "run"}}', [("LD123", '"run"')]),
        ('"toolsets": {"g": {"type": "mcp", "url": "x", "command": ["y"]}}', [("LD128", '"command"')]),
        ('"flows": {"a": {"mode": "handoff", "agents": []}}', [("LD124", "[]")]),
        ('"flows": {"a": {"mode": "team", "led": "x"}}', None),
        ('"hooks": {"start": ["h.py"]}', [("LD126", '"h.py"')]),
        ('"hooks": {"begin": ["h.py:f"]}', [("LD120", '"begin"')]),
        ('"threads": {"model": 1}', [("LD122", "1")]),
        ('"generated_agents_dir": 1', [("LD122", "1")]),
        ('"version": 1', [("LD110", '"version"')]),
        ('"model_settings": {"a": {"b": 1, "b": 2}}', [("LD110", '"b"')]),
        ('"record": true,', [("LD105", ",")]),
    ],
)
def test_each_fault_has_its_code_and_location(inside: str, expected: list[tuple[str, str]] | None) -> None:
    if expected is None:
        expected = [("LD121", '"a"'), ("LD120", '"led"')]
    assert extra(inside) == expected


@each_row(
    "inside, hint",
    [
        ('"runtime": {"approval_mode": "approve-all"}', "did you mean `approve_all`?"),
        ('"runtime": {"max_dept": 1}', "did you mean `max_depth`?"),
        ('"modle": "x"', "did you mean `model`?"),
        ('"name": 5', 'write "5"'),
        ('"allow_cli_input": "false"', "write `false` without quotes"),
        ('"runtime": {"budget": {"request": 1}}', "did you mean `requests`?"),
        ('"toolsets": {"d": {"type": "file_system"}}', "did you mean `filesystem`?"),
    ],
)
def test_the_hint_shows_what_to_write_instead(inside: str, hint: str) -> None:
    (item,) = parse(LEAST + ", " + inside).diagnostics
    assert item.hint == hint


def test_invalid_parts_of_a_manifest_are_left_out_and_the_rest_is_kept() -> None:
    inside = '"version": "1", "entry": 5, "agent_files": ["a.agent", 3], "toolsets": {"x": {}, "y": {"type": "shell"}}'
    value = parse(inside + ', "runtime": {"max_depth": 0, "max_steps": 7}, "approvals": {"allow": [1, "a"]}').value
    assert value is not None
    assert value.entry is None
    assert value.agent_files == ["a.agent"]
    assert list(value.toolsets) == ["y"]
    assert (value.runtime.max_depth, value.runtime.max_steps) == (5, 7)
    assert value.approvals.allow == ["a"]


def test_the_nodes_have_the_locations_of_references() -> None:
    parsed = parse_manifest(
        '{"version": 1,\n "entry": {"agent": "main"},\n "agent_files": ["a.agent"]}', "project.json"
    )
    assert parsed.node is not None
    place = parsed.node.place_of(("entry", "agent"))
    assert (place.line, place.column, place.end_column) == (2, 21, 27)
    assert parsed.node.place_of(("agent_files", 0)).line == 3


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,10}", fullmatch=True)
texts = st.text(min_size=1, max_size=10)
paths = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=10)
budgets = st.fixed_dictionaries({}, optional={"requests": st.integers(0), "cost_usd": st.floats(0, 100)})
valid = st.fixed_dictionaries(
    {"version": st.just(1), "entry": st.builds(lambda name: {"agent": name}, names)},
    optional={
        "name": st.text(max_size=10),
        "agent_files": st.lists(paths, min_size=1, max_size=3),
        "model": texts | st.lists(texts, min_size=1, max_size=3),
        "runtime": st.fixed_dictionaries({}, optional={"max_depth": st.integers(1), "budget": budgets}),
        "approvals": st.fixed_dictionaries(
            {}, optional={"allow": st.lists(texts | st.builds(lambda rule: {"rule": rule}, texts), max_size=3)}
        ),
        "toolsets": st.dictionaries(names, st.just({"type": "filesystem"}), max_size=2),
    },
).map(lambda data: {"python_files": ["x.py"], **data})


@given(valid, st.sampled_from([None, 1]))
def test_a_valid_manifest_survives_being_written_and_read(data: dict[str, object], indent: int | None) -> None:
    first = parse_manifest(json.dumps(data, indent=indent), "project.json")
    assert first.diagnostics == ()
    assert first.value is not None
    again = json.dumps(first.value.model_dump(exclude_unset=True, by_alias=True), ensure_ascii=False)
    second = parse_manifest(again, "project.json")
    assert second.diagnostics == ()
    assert second.value == first.value


@each_row(
    "text, hint",
    [
        ('"version": null, "entry": {"agent": "main"}, "agent_files": ["*.agent"]', "give it one"),
        (f'{LEAST}, "flows": {{"f": {{"mode": "team", "lead": null, "workers": ["a"]}}}}', "give it one"),
        (f'{LEAST}, "python_files": [null]', "give it one, or remove it from the list"),
        (f'{LEAST}, "name": null', "give it one, or leave the key out"),
        (f'{LEAST}, "runtime": {{"budget": null}}', "give it one, or leave the key out"),
        (f'{LEAST}, "model_settings": {{"max_tokens": null}}', "give it one, or leave the key out"),
        (f'{LEAST}, "flows": {{"f": null}}', "give it one, or leave the key out"),
    ],
)
def test_a_missing_value_may_be_omitted_only_where_the_key_is_optional(text: str, hint: str) -> None:
    found = parse_manifest(f"{{{text}}}", "project.json").diagnostics

    assert [(item.code, item.hint) for item in found] == [("LD122", hint)]
