"""Files that can't be read or imported are reported once, without follow-up errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from llm_do.linker.linker import LinkReport
from tests.linker.conftest import TOOLS, agent, codes, manifest, project
from tests.support.tables import each_row

CheckFiles = Callable[[Mapping[str, object]], LinkReport]


def test_a_name_that_a_broken_file_may_declare_is_not_reported_as_unknown(check_files: CheckFiles) -> None:
    report = check_files(
        {
            "project.json": manifest(python_files=["*.py"]),
            "main.agent": agent("main", "tools: [add, nowhere]\ntoolsets: [stem, readable, elsewhere]"),
            "stem.agent": "---\nname: [\n---\n",
            "x.agent": "---\nname: readable\nmodle: x\n---\n",
            "tools.py": "def add(): ...\nTOOLS = [add]\n1 / 0",
        }
    )
    assert [(item.code, item.file) for item in report.diagnostics if item.code == "LD201"] == [
        ("LD201", "main.agent"),
        ("LD201", "main.agent"),
    ]
    assert [item.message for item in report.diagnostics if item.code == "LD201"] == [
        "there is no tool `nowhere`",
        "there is no toolset or agent `elsewhere`",
    ]


@pytest.mark.parametrize(
    "broken",
    [
        "---\nname: readable\nmodle: x\n---\n",
        "---\nname: readable\ndescription: a: b\n---\n",
        "---\ntools: [\nname: 'readable'\n---\n",
        "---\nname: readable\n",
        "--- \nname: readable\n---\n",
        "---\r\nname: readable\r\ntools: x\r\n---\r\n",
    ],
)
def test_the_name_in_a_broken_agent_file_is_not_reported_as_unknown(check_files: CheckFiles, broken: str) -> None:
    report = check_files(
        {
            "project.json": manifest(),
            "main.agent": agent("main", "toolsets: [readable, stem, other]"),
            "stem.agent": broken.encode(),
        }
    )
    assert [item.message for item in report.diagnostics if item.file == "main.agent"] == [
        "there is no toolset or agent `other`"
    ]
    assert {item.file for item in report.diagnostics} == {"main.agent", "stem.agent"}


@each_row(
    "declared",
    [
        {"toolsets": {"x": {"type": "zz"}}},
        {"toolsets": {"x": {}}},
        {"toolsets": {"x": 3}},
        {"toolsets": []},
        {"flows": {"x": {"mode": "zz", "agents": ["main"]}}},
        {"flows": {"x": {"mode": "team", "workers": ["main"]}}},
        {"flows": {"x": {"mode": "workflow", "flow": 3}}},
        {"flows": {"x": {"mode": "workflow", "agents": [3]}}},
        {"flows": 3},
    ],
)
def test_what_the_manifest_declares_wrongly_is_reported_there_alone(
    check_files: CheckFiles, declared: dict[str, Any]
) -> None:
    rules = {"allow": ["read_file(docs/**)"], "deny": ["main:write_file"]}
    report = check_files(
        {
            "project.json": manifest(approvals=rules, **declared),
            "main.agent": agent("main", "toolsets: [x]"),
        }
    )

    assert [item.file for item in report.diagnostics if item.severity == "error"] == ["project.json"]
    assert not {"LD201", "LD504"}.intersection(codes(report))


@each_row("mode", ["zz", "handoff"])
def test_an_entry_that_is_a_wrongly_declared_flow_exists(check_files: CheckFiles, mode: str) -> None:
    flows = {"x": {"mode": mode, "agents": []}}
    report = check_files({"project.json": manifest(entry={"flow": "x"}, flows=flows), "main.agent": agent("main")})

    assert codes(report) == ["LD123" if mode == "zz" else "LD124"]


def test_a_wrongly_declared_alias_is_one(check_files: CheckFiles) -> None:
    report = check_files(
        {"project.json": manifest(models={"fast": 3}, model="fast"), "main.agent": agent("main", "model: fast")}
    )

    assert [(item.code, item.file) for item in report.diagnostics] == [("LD122", "project.json")]


def test_an_unreadable_python_file_is_reported(check_files: CheckFiles) -> None:
    report = check_files(
        {
            "project.json": manifest(python_files=["a.py", "b.py"]),
            "main.agent": agent("main", "tools: [b, add]"),
            "a.py": "import os\nos.remove(os.path.join(os.path.dirname(__file__), 'b.py'))",
            "b.py": TOOLS,
        }
    )
    assert [(item.code, item.file, item.line) for item in report.diagnostics] == [
        ("LD302", "b.py", 1),
        ("LD201", "main.agent", 3),
    ]


def test_references_into_a_broken_file_are_not_reported_again(check_files: CheckFiles) -> None:
    report = check_files(
        project(
            {"function": "tools.py:main", "args": {"x": 1}, "input_model_ref": "tools.Pitch"},
            tools="1 / 0",
            main=agent("main", "input_model_ref: tools.py:Pitch\noutput_model_ref: tools.Verdict"),
        )
    )
    assert codes(report) == ["LD302"]


@pytest.mark.parametrize("reference", ["gone.py:Pitch", "./sub/../gone.py:Pitch", "gone.Pitch"])
def test_a_reference_to_a_missing_listed_file_is_reported_once(check_files: CheckFiles, reference: str) -> None:
    report = check_files(
        {
            "project.json": manifest({"function": "gone.py:main"}, python_files=["tools.py", "gone.py"]),
            "main.agent": agent("main", f"tools: [add]\ninput_model_ref: {reference}"),
            "tools.py": TOOLS,
        }
    )
    assert codes(report) == ["LD206"]


def test_an_unusable_manifest_is_the_only_report(check_files: CheckFiles) -> None:
    assert codes(check_files({"project.json": "{", "main.agent": "---\nnaem: x\n---"})) == ["LD105"]
