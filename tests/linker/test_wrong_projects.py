"""Faulty projects: the exact code, file, line and column of each fault, all at once, with a hint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from llm_do.linker.linker import LinkReport
from tests.linker.conftest import MAIN, MODELS, TOOLS, agent, codes, found, manifest, project

CheckFiles = Callable[[Mapping[str, object]], LinkReport]

# A location in a manifest is written as the text there, which occurs once.
WRONG: dict[str, tuple[dict[str, object], list[tuple[str, str, int, int] | tuple[str, str, str]]]] = {
    "an unknown tool": (project(main=agent("main", "tools:\n  - add\n  - sub")), [("LD201", "main.agent", 5, 5)]),
    "an unknown toolset": (
        project(main=agent("main", "tools: [add]\ntoolsets: [filesystem_projct]")),
        [("LD201", "main.agent", 4, 12)],
    ),
    "an unknown agent among options": (
        project(main=agent("main", "tools: [add]\ntoolsets:\n  - helpr: {prefix: x}")),
        [("LD201", "main.agent", 5, 5)],
    ),
    "an unknown entry": (project("mian"), [("LD201", "project.json", '"mian"')]),
    "an unknown agent in overrides": (
        project(runtime={"agent_approval_overrides": {"mian": {"calls_require_approval": True}}}),
        [("LD201", "project.json", '"mian"')],
    ),
    "two agents of one name": (
        {**project(), "other.agent": agent("main", "tools: [add]")},
        [("LD202", "other.agent", 2, 7)],
    ),
    "an agent and a tool of one name": (
        project(main=agent("main", "tools: [main]"), tools="def main(): ...\nTOOLS = [main]"),
        [("LD202", "tools.py", 2, 10), ("LD608", "main.agent", 3, 9)],
    ),
    "an agent named like a built-in": (
        {**project(), "todo.agent": agent("todo")},
        [("LD203", "todo.agent", 2, 7)],
    ),
    "a configured toolset named like a built-in": (
        project(toolsets={"filesystem_cwd": {"type": "filesystem"}}),
        [("LD203", "project.json", '"filesystem_cwd"')],
    ),
    "a tool under tools and toolsets": (
        project(main=agent("main", "tools: [add]\ntoolsets: [add]")),
        [("LD402", "main.agent", 4, 12), ("LD608", "main.agent", 4, 12)],
    ),
    "a tool as entry": (project("add"), [("LD204", "project.json", '"add"')]),
    "a path that matches nothing": (
        {**project(), "project.json": manifest(python_files=["tools.py", "tool.py"])},
        [("LD206", "project.json", '"tool.py"')],
    ),
    "a path that leaves the project": (
        {**project(), "project.json": manifest(python_files=["tools.py", "../x.py"])},
        [("LD207", "project.json", '"../x.py"')],
    ),
    "a directory for generated agents outside": (
        project(generated_agents_dir="../elsewhere"),
        [("LD207", "project.json", '"../elsewhere"')],
    ),
    "a folder where a file is meant": (
        {**project(), "sub/x.py": "", "project.json": manifest(python_files=["tools.py", "sub"])},
        [("LD208", "project.json", '"sub"')],
    ),
    "a module that is not the project's": (
        project(main=agent("main", "tools: [add]\ninput_model_ref: os.path")),
        [("LD210", "main.agent", 4, 18)],
    ),
    "a file that is not listed": (
        project({"function": "gone.py:main"}),
        [("LD210", "project.json", '"gone.py:main"')],
    ),
    "a name that the file doesn't have": (
        project({"function": "tools.py:ad"}),
        [("LD211", "project.json", '"tools.py:ad"')],
    ),
    "an input model that is none": (
        {**project(main=agent("main", "tools: [add]\ninput_model_ref: models.Odd")), "models.py": MODELS},
        [("LD212", "main.agent", 4, 18)],
    ),
    "an output model that is none": (
        {**project(main=agent("main", "tools: [add]\noutput_model_ref: models.py:LIMIT")), "models.py": MODELS},
        [("LD212", "main.agent", 4, 19)],
    ),
    "an output class without a schema": (
        {**project(main=agent("main", "tools: [add]\noutput_model_ref: models.Odd")), "models.py": MODELS},
        [("LD212", "main.agent", 4, 19)],
    ),
    "an entry function that takes nothing": (
        {**project({"function": "models.py:helper"}), "models.py": MODELS},
        [("LD212", "project.json", '"models.py:helper"')],
    ),
    "an entry that is a class": (
        {**project({"function": "models.py:Odd"}), "models.py": MODELS},
        [("LD212", "project.json", '"models.py:Odd"')],
    ),
    "a policy that takes nothing": (
        {**project(approvals={"policy": "models.py:helper"}), "models.py": MODELS},
        [("LD212", "project.json", '"models.py:helper"')],
    ),
    "a default input that doesn't fit": (
        project({"agent": "main", "args": {"imput": "x"}}),
        [("LD213", "project.json", '{"imput"')],
    ),
    "a default input that doesn't fit a model": (
        {
            **project(
                {"agent": "main", "args": {"input": "x"}}, main=MAIN.replace("]", "]\ninput_model_ref: models.Pitch")
            ),
            "models.py": MODELS,
        },
        [("LD213", "project.json", '{"input"')],
    ),
    "a template that names no field": (
        project(main=agent("main", "tools: [add]\ntemplate: true", "Do\r\n{{ inptu }} {{input}}")),
        [("LD214", "main.agent", 7, 4)],
    ),
    "Python that is none": (project(tools="def add(\n"), [("LD301", "tools.py", 1, 8)]),
    "Python that raises": (project(tools="x = 1\nadd = x / 0\n"), [("LD302", "tools.py", 2, 7)]),
    "a listed file that isn't Python": (
        {**project(), "notes.txt": "", "project.json": manifest(python_files=["tools.py", "notes.txt"])},
        [("LD303", "project.json", 1, 101)],
    ),
    "a tool listed twice": (project(main=agent("main", "tools: [add, add]")), [("LD402", "main.agent", 3, 14)]),
    "a toolset listed twice": (
        project(main=agent("main", "tools: [add]\ntoolsets: [filesystem_cwd, filesystem_cwd]")),
        [("LD402", "main.agent", 4, 28)],
    ),
    "a prefix that makes a name twice": (
        {
            **project(main=agent("main", "tools: [add]\ntoolsets:\n  - a_b\n  - b: {prefix: a}")),
            "a_b.agent": agent("a_b"),
            "b.agent": agent("b"),
        },
        [("LD402", "main.agent", 6, 5)],
    ),
    "a prefix that makes a name too long": (
        {
            **project(main=agent("main", f"tools: [add]\ntoolsets:\n  - helper: {{prefix: {'x' * 60}}}")),
            "helper.agent": agent("helper"),
        },
        [("LD403", "main.agent", 5, 5)],
    ),
    "an option of a toolset that takes none": (
        {
            **project(main=agent("main", "tools: [add]\ntoolsets:\n  - helper: {color: red}")),
            "helper.agent": agent("helper"),
        },
        [("LD404", "main.agent", 5, 14)],
    ),
    "a model's name that is none": (
        project(main=agent("main", "tools: [add]\nmodel: ['openai:', test]")),
        [("LD701", "main.agent", 4, 9)],
    ),
    "a default model's name that is none": (project(model=" openai:x"), [("LD701", "project.json", '" openai:x"')]),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("fault", WRONG)
def test_a_faulty_project_gives_exactly_its_diagnostic(check_files: CheckFiles, fault: str) -> None:
    files, expected = WRONG[fault]
    report = check_files(files)
    text = json.dumps(files["project.json"])
    assert all(text.count(item[2]) == 1 for item in expected if len(item) == 3)
    assert sorted(found(report)) == sorted(
        item if len(item) == 4 else (item[0], item[1], 1, text.index(item[2]) + 1) for item in expected
    )
    assert report.project is None


def test_every_fault_of_a_project_is_reported_at_once(check_files: CheckFiles) -> None:
    report = check_files(
        {
            "project.json": """
                {
                  "version": 1,
                  "entry": {"agent": "mian"},
                  "agent_files": ["*.agent", "gone/*.agent"],
                  "python_files": ["*.py"],
                  "modle": "test", "model": "openai:",
                  "toolsets": {"todo": {"type": "filesystem"}}
                }
                """,
            "main.agent": "---\nname: main\ntools: [serach, broken]\ntoolsets:\n  - reviewr\n  - syntax\n---\n",
            "reviewer.agent": "---\nname: reviewer\nmax_steps: none\ninput_model_ref: schemas.Pich\n---\n",
            "syntax.agent": "---\nname: [syntax\n---\n",
            "tools.py": "def search(): ...\nTOOLS = [search, 5]\n",
            "broken.py": "import tools\n1 / 0\n",
            "schemas.py": "class Pitch: ...\n",
        }
    )
    assert codes(report) == [item.code for item in sorted(report.diagnostics, key=lambda item: item.place)]
    assert [(item.code, item.file, item.line) for item in report.diagnostics] == [
        ("LD302", "broken.py", 2),
        ("LD201", "main.agent", 3),
        ("LD201", "main.agent", 5),
        ("LD201", "project.json", 3),
        ("LD206", "project.json", 4),
        ("LD120", "project.json", 6),
        ("LD701", "project.json", 6),
        ("LD203", "project.json", 7),
        ("LD122", "reviewer.agent", 3),
        ("LD211", "reviewer.agent", 4),
        ("LD106", "syntax.agent", 3),
        ("LD305", "tools.py", 2),
    ]


def test_every_error_has_a_hint_where_one_is_possible(check_files: CheckFiles) -> None:
    report = check_files(
        {
            **project("mian", main=agent("main", "tools: [ad, main]\ntoolsets: [filesystem_projct, add]")),
            "other.agent": agent("main"),
        }
    )
    assert [item.hint for item in report.diagnostics] == [
        "did you mean `add`?",
        'state it with a rule, such as "approvals": {"allow": ["main"]}, or list it under `toolsets`',
        "did you mean `filesystem_project`?",
        'state it with a rule, such as "approvals": {"allow": ["add"]}, or list it under `tools`',
        "rename one of the two",
        "did you mean `main`?",
    ]
    assert report.diagnostics[4].message == "`main` is already the name of the agent at main.agent:2:7"


def test_the_hint_for_an_unexported_function_shows_how_to_export_it(check_files: CheckFiles) -> None:
    report = check_files(
        project(
            main=agent("main", "tools: [add, sub, mul]\ntoolsets: [lookups]"),
            tools=TOOLS + "def sub(a: int, b: int) -> int:\n    return a - b\ndef lookups(ctx): ...\n",
        )
    )
    assert [item.hint for item in report.diagnostics] == [
        "tools.py defines it but doesn't export it: add it to TOOLS, as in TOOLS = [sub]",
        "correct the name, or define it",
        "tools.py defines it but doesn't export it: add it to TOOLSETS, as in TOOLSETS = [lookups]",
    ]


def test_the_hint_for_wrong_parameters_shows_the_right_ones(check_files: CheckFiles) -> None:
    report = check_files(
        project(
            hooks={"start": ["tools.py:begin"]},
            tools="from llm_do import CallContext\ndef add(a: int, b: int, ctx: CallContext) -> int: ...\n"
            "def begin(): ...\nTOOLS = [add]\n",
        )
    )
    assert {item.code: item.hint for item in report.diagnostics} == {
        "LD405": "a tool's first parameter may be `ctx: RunContext[CallContext]`; a function that is called by name, "
        "such as a step of a flow, is `(input, ctx: CallContext)`",
        "LD212": "define it with (agent) or `**data`",
    }


def test_agents_declared_in_python_are_checked_like_files(check_files: CheckFiles) -> None:
    code = """
        from llm_do import AgentSpec
        AGENTS = [
            AgentSpec("writer", tools=["add", "sub"], toolsets=["missing"], model="openai:"),
        ]
        def add(a: int) -> int: ...
        TOOLS = [add]
        """
    report = check_files(project(tools=code, main=agent("main", "toolsets: [writer]")))
    assert found(report) == [("LD201", "tools.py", 3, 5), ("LD201", "tools.py", 3, 5), ("LD701", "tools.py", 3, 5)]
