"""The table of codes: every code that is used is in it, and every one in it is really used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import llm_do
from llm_do.diagnostics.codes import CODES, diagnostic
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.agent_file import parse_agent
from llm_do.formats.manifest import parse_manifest
from llm_do.formats.syntax.source import decode, read_text

PACKAGE = Path(llm_do.__file__).parent

TRIGGERS: dict[str, tuple[str, int, int]] = {
    "LD103": ("---\nname: a\x07\n---\n", 2, 8),
    "LD104": ("---\nname: " + "[" * 101 + "]" * 101 + "\n---\n", 2, 106),
    "LD106": ("---\nname: a: b\n---\n", 2, 8),
    "LD107": (" ---\nname: a\n---\n", 1, 1),
    "LD108": ("---\nname: a\n--- \n", 3, 1),
    "LD110": ("---\nname: a\nname: b\n---\n", 3, 1),
    "LD111": ("---\nname: !x a\n---\n", 2, 7),
    "LD112": ("---\nname: a\n<<: {}\n---\n", 3, 1),
    "LD113": ("---\nname: *a\n---\n", 2, 7),
    "LD114": ("---\nname: a\nmodel_settings: {1: 2}\n---\n", 3, 18),
    "LD115": ("---\nname: no\n---\n", 2, 7),
    "LD116": ("---\nname: a\nmax_steps: 1e999\n---\n", 3, 12),
    "LD120": ("---\nname: a\nmodle: b\n---\n", 3, 1),
    "LD121": ("---\nmodel: b\n---\n", 2, 1),
    "LD122": ("---\nname: a\nmax_steps: x\n---\n", 3, 12),
    "LD123": ("---\nname: a\nserver_side_tools: [{tool_type: x}]\n---\n", 3, 33),
    "LD124": ("---\nname: a\nmax_steps: 0\n---\n", 3, 12),
    "LD125": ("---\nname: a b\n---\n", 2, 7),
    "LD126": ("---\nname: a\ninput_model_ref: X\n---\n", 3, 18),
    "LD128": ("---\nname: a\nmodel: b\ncompatible_models: [b]\n---\n", 4, 1),
    "LD130": ("---\nname: a\noutput: {type: x}\n---\n", 3, 16),
}

MANIFESTS: dict[str, tuple[str, int, int]] = {
    "LD105": ('{"version": 1, "entry": {"agent": "a"}, "agent_files": ["a"],}', 1, 61),
    "LD127": ('{"version": 1, "entry": {}, "agent_files": ["a"]}', 1, 16),
    "LD129": ('{"version": 1, "entry": {"agent": "a"}}', 1, 1),
    "LD131": (
        '{"version": 1, "entry": {"agent": "a"}, "agent_files": ["a"], "runtime": {"auth_mode": "x"}}',
        1,
        88,
    ),
    "LD132": ('{"version": 2, "entry": {"agent": "a"}, "agent_files": ["a"]}', 1, 13),
}


@pytest.mark.parametrize("code", TRIGGERS)
def test_each_code_of_agent_files_stands_at_the_exact_place(code: str) -> None:
    text, line, column = TRIGGERS[code]
    (item,) = parse_agent(text, "a.agent").diagnostics
    assert (item.code, item.severity, item.file, item.line, item.column) == (
        code,
        CODES[code].severity,
        "a.agent",
        line,
        column,
    )


@pytest.mark.parametrize("code", MANIFESTS)
def test_each_code_of_manifests_stands_at_the_exact_place(code: str) -> None:
    text, line, column = MANIFESTS[code]
    (item,) = parse_manifest(text, "project.json").diagnostics
    assert (item.code, item.file, item.line, item.column) == (code, "project.json", line, column)


def test_codes_of_files_stand_at_line_one_or_at_the_byte(tmp_path: Path) -> None:
    assert [(item.code, item.line) for item in read_text(tmp_path / "gone").diagnostics] == [("LD101", 1)]
    assert [(item.code, item.line, item.column) for item in decode(b"a\n\xff", "x").diagnostics] == [("LD102", 2, 1)]


def test_every_code_of_the_block_has_an_example_here() -> None:
    assert {code for code in CODES if code.startswith("LD1")} == {*TRIGGERS, *MANIFESTS, "LD101", "LD102", "LD190"}


def test_every_code_that_is_used_is_in_the_table_and_the_other_way_round() -> None:
    used = {
        code
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "codes"
        for code in re.findall(r'"(LD\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert used == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_every_row_of_the_table_is_complete(code: str) -> None:
    row = CODES[code]
    assert re.fullmatch(r"LD[1-8]\d\d", code)
    assert row.severity in ("error", "warning")
    assert row.title
    assert row.explanation.endswith(".")
    assert bool(row.wrong) == bool(row.fixed)


def test_a_code_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError):
        diagnostic("LD999", "x", Location("a"))
