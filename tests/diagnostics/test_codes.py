"""Every code has its location, sentences, fix and example, and nothing else makes a diagnostic."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import llm_do
from llm_do.diagnostics.known_codes import CODES
from llm_do.formats.agent_file import parse_agent
from llm_do.formats.manifest import parse_manifest
from llm_do.formats.syntax.source import decode, read_text
from tests.support.tables import each_row

PACKAGE = Path(llm_do.__file__).parent
CODE_MODULES = PACKAGE / "diagnostics" / "codes"
GROUPS = [path for path in CODE_MODULES.glob("*.py") if path.name not in ("__init__.py", "code.py")]

TRIGGERS: dict[str, tuple[str, int, int]] = {
    "LD103": ("---\nname: a\x07\n---\n", 2, 8),
    "LD104": ("---\nname: " + "[" * 101 + "]" * 101 + "\n---\n", 2, 106),
    "LD106": ("---\nname: a: b\n---\n", 2, 8),
    "LD107": (" ---\nname: a\n---\n", 1, 1),
    "LD108": ("---\nname: a\n--- \n", 3, 1),
    "LD109": ("---\nname: a\n---\nHelp.\u200b\n", 4, 6),
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


@each_row("code", TRIGGERS)
def test_each_agent_file_code_has_its_exact_location(code: str) -> None:
    text, line, column = TRIGGERS[code]
    (item,) = parse_agent(text, "a.agent").diagnostics
    assert (item.code, item.severity, item.file, item.line, item.column) == (
        code,
        CODES[code].severity,
        "a.agent",
        line,
        column,
    )


@each_row("code", MANIFESTS)
def test_each_manifest_code_has_its_exact_location(code: str) -> None:
    text, line, column = MANIFESTS[code]
    (item,) = parse_manifest(text, "project.json").diagnostics
    assert (item.code, item.file, item.line, item.column) == (code, "project.json", line, column)


def test_file_codes_point_at_line_one_or_at_the_byte(tmp_path: Path) -> None:
    assert [(item.code, item.line) for item in read_text(tmp_path / "gone").diagnostics] == [("LD101", 1)]
    assert [(item.code, item.line, item.column) for item in decode(b"a\n\xff", "x").diagnostics] == [("LD102", 2, 1)]


def test_every_code_of_the_parsers_is_triggered_here() -> None:
    assert {code for code in CODES if code.startswith("LD1")} == {*TRIGGERS, *MANIFESTS, "LD101", "LD102", "LD190"}


@each_row("code", CODES)
def test_every_code_has_a_title_an_explanation_a_fix_and_an_example(code: str) -> None:
    declared = CODES[code]
    assert re.fullmatch(r"LD[1-9]\d\d", code)
    assert declared.id == code
    assert declared.severity in ("error", "warning")
    assert declared.title[0].isupper()
    assert declared.explanation.endswith(".")
    assert declared.fix.strip(".") == declared.fix != ""
    assert "" not in (declared.wrong, declared.right)
    assert declared.wrong != declared.right


@each_row("code", CODES)
def test_every_code_has_a_sentence_in_the_module_that_declares_it(code: str) -> None:
    (module,) = [path for path in GROUPS if f"\n{code} = Code(" in path.read_text(encoding="utf-8")]
    assert f"{code}.problem(" in module.read_text(encoding="utf-8")


def test_only_the_code_modules_make_diagnostics() -> None:
    """Other modules pass data: they hold no code, and neither make a `Problem` nor a `Diagnostic`."""
    elsewhere: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # Most modules have none of these words, and needn't be parsed.
        if path.parent != CODE_MODULES and re.search(r"\b(Problem|Diagnostic|problem)\s*\(|\bLD\d{3}\b", text):
            for node in ast.walk(ast.parse(text)):
                makes = isinstance(node, ast.Call) and re.fullmatch(
                    r"Problem|Diagnostic|\w+\.problem", ast.unparse(node.func)
                )
                code = isinstance(node, ast.Constant) and re.fullmatch(r"LD\d{3}", str(node.value))
                if makes or code:
                    elsewhere.append(f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}")
    assert elsewhere == []
