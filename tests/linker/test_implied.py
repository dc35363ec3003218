"""Projects without a manifest, and faults that are only warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from llm_do.linker.linker import LinkReport, check_project, link
from tests.linker.conftest import Make, agent, codes, found, manifest

CheckFiles = Callable[[Mapping[str, object]], LinkReport]


def test_a_bare_folder_includes_its_agents_and_the_usual_python_files(make: Make) -> None:
    root = make(
        {
            "main.agent": agent("main", "tools: [add]\ntoolsets: [helper]\ninput_model_ref: schemas.Pitch"),
            "helper.agent": agent("helper"),
            "deeper/other.agent": agent("other"),
            "tools.py": "def add(): 'Add.'\nTOOLS = [add]",
            "schemas.py": "from llm_do import AgentArgs\nclass Pitch(AgentArgs): ...",
            "scratch.py": "1 / 0",
        }
    )
    project = link(root)
    assert project.warnings == ()
    assert list(project.registry) == ["helper", "main", "add"]
    assert project.entry.name == "main"
    assert project.manifest is None
    assert [path.name for path in project.python_files] == ["schemas.py", "tools.py"]


def test_a_folder_named_like_an_agent_file_is_ignored(make: Make) -> None:
    project = link(make({"x.agent": agent("greeter"), "old.agent/notes.txt": "", "tools.py/notes.txt": ""}))
    assert list(project.registry) == ["greeter"]


def test_the_only_agent_of_a_bare_folder_is_the_entry(make: Make) -> None:
    assert link(make({"x.agent": agent("greeter")})).entry.name == "greeter"


def test_several_agents_without_a_main_are_an_error_that_names_them(check_files: CheckFiles) -> None:
    report = check_files({"b.agent": agent("two"), "a.agent": agent("one")})
    assert found(report) == [("LD205", "a.agent", 1, 1)]
    assert report.diagnostics[0].message == "no agent is called main, and there are several: one, two"


def test_a_broken_agent_in_a_bare_folder_is_the_only_report(check_files: CheckFiles) -> None:
    assert codes(check_files({"b.agent": agent("two"), "a.agent": "---\nname: 5\n---"})) == ["LD115"]


def test_a_single_agent_file_is_the_entry_whatever_is_beside_it(make: Make) -> None:
    root = make(
        {
            "project.json": "{",
            "main.agent": agent("main", "tools: [unknown]"),
            "greeter.agent": agent("greeter", "toolsets: [helper]"),
            "helper.agent": agent("helper", "toolsets: [greeter]"),
            "broken.agent": "----",
            "twin.agent": agent("main"),
        }
    )
    project = link(root / "greeter.agent")
    assert project.entry.name == "greeter"
    assert list(project.registry) == ["greeter", "helper"]
    assert [each.code for each in project.warnings] == ["LD422"]


def test_everything_reachable_from_a_single_file_is_checked(make: Make) -> None:
    root = make(
        {
            "greeter.agent": agent("greeter", "toolsets: [helper, gone]"),
            "helper.agent": "---\nname: helper\nmodle: x\n---",
        }
    )
    assert found(check_project(root / "greeter.agent")) == [
        ("LD201", "greeter.agent", 3, 20),
        ("LD120", "helper.agent", 3, 1),
    ]


def test_a_single_file_may_be_hidden(make: Make) -> None:
    root = make({".secret.agent": agent("secret"), "other.agent": agent("other")})
    assert link(root / ".secret.agent").entry.name == "secret"


def test_an_unreachable_agent_is_a_warning(check_files: CheckFiles) -> None:
    report = check_files(
        {
            "project.json": manifest(),
            "main.agent": agent("main", "toolsets: [a]"),
            "a.agent": agent("a", "toolsets: [b]"),
            "b.agent": agent("b"),
            "lonely.agent": agent("lonely", "toolsets: [island]"),
            "island.agent": agent("island", "toolsets: [lonely]"),
        }
    )
    assert found(report) == [("LD801", "island.agent", 2, 7), ("LD801", "lonely.agent", 2, 7)]
    assert report.project is not None
    assert [item.severity for item in report.project.warnings] == ["warning", "warning"]


@pytest.mark.parametrize(
    ("code", "warned"),
    [
        ("async def run(input, ctx): return await ctx.call('a', input)", ["b"]),
        ("NEXT = ['a', 'b']\nasync def run(input, ctx): return await ctx.call(NEXT[0], input)", []),
        ("async def run(input, ctx): return await ctx.call_agent(name=f'{input}', input=input)", []),
        ("async def run(input, ctx): return None", ["a", "b"]),
    ],
)
def test_agents_that_python_code_may_call_are_not_reported(
    check_files: CheckFiles, code: str, warned: list[str]
) -> None:
    report = check_files(
        {
            "project.json": manifest({"function": "main.py:run"}, python_files=["main.py"]),
            "main.py": code,
            "a.agent": agent("a"),
            "b.agent": agent("b"),
        }
    )
    assert [item.message for item in report.diagnostics] == [f"nothing reaches the agent `{name}`" for name in warned]


def test_unused_python_files_and_toolsets_are_warnings(check_files: CheckFiles) -> None:
    report = check_files(
        {
            "project.json": manifest(
                python_files=["*.py"],
                toolsets={"docs": {"type": "filesystem"}, "used": {"type": "filesystem"}},
            ),
            "main.agent": agent("main", "tools: [add]\ntoolsets: [used]\noutput_model_ref: verdict.Verdict"),
            "tools.py": "from helpers import twice\ndef add(): 'Add.'\ndef sub(): 'Subtract.'\nTOOLS = [add, sub]",
            "helpers.py": "twice = 2",
            "verdict.py": "from pydantic import BaseModel\nclass Verdict(BaseModel): ...",
            "old_tools.py": "def mul(): ...\n__all__ = ['mul']",
            "empty.py": "",
        }
    )
    assert [(item.code, item.file, item.message) for item in report.diagnostics] == [
        ("LD802", "empty.py", "empty.py exports nothing that llm-do knows"),
        ("LD802", "old_tools.py", "nothing uses what old_tools.py exports"),
        ("LD803", "project.json", "no agent lists the toolset `docs`"),
    ]


@pytest.mark.parametrize(
    ("statement", "warned"),
    [
        ("import lib.parts", []),
        ("import lib.parts as other", []),
        ("from lib import parts", []),
        ("from lib.parts import *", []),
        ("def late():\n    import lib.parts", []),
        ("from lib import other_parts", ["lib/parts.py"]),
        ("import parts_of_lib", ["lib/parts.py"]),
    ],
)
def test_a_python_file_imported_by_another_counts_as_used(
    check_files: CheckFiles, statement: str, warned: list[str]
) -> None:
    files = {
        "project.json": manifest(python_files=["tools.py", "lib/*.py"]),
        "main.agent": agent("main", "tools: [add]"),
        "tools.py": f"{statement}\ndef add(a: int): 'Add.'\nTOOLS = [add]",
        "lib/parts.py": "",
        "lib/other_parts.py": "from . import inner",
        "lib/inner.py": "",
        "lib/__init__.py": "",
        "parts_of_lib.py": "import lib.other_parts",
    }
    report = check_files(files)
    unused = [item.file for item in report.diagnostics if item.code == "LD802" and item.file != "lib/other_parts.py"]
    assert unused == warned
    assert [item for item in report.diagnostics if item.code != "LD802"] == []


def test_a_missing_variable_of_a_toolset_is_reported(check_files: CheckFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_THERE", "x")
    monkeypatch.delenv("KB_GONE", raising=False)
    config = {"type": "mcp", "url": "http://localhost/", "headers": {"A": "${KB_THERE}", "B": "Bearer ${KB_GONE}"}}
    files = {"project.json": manifest(toolsets={"kb": config}), "main.agent": agent("main", "toolsets: [kb]")}
    messages = [item.message for item in check_files(files).diagnostics if item.code == "LD702"]
    assert messages == ["the environment variable KB_GONE is not set"]
