"""Wrong projects, one fault each: exact code, file, line and column; and what a right one becomes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from llm_do.errors import LinkError, UsageError
from llm_do.project.linker import LinkReport, check, link
from llm_do.project.project import Project
from llm_do.project.registry import NAME_PATTERN
from tests.project.conftest import Make, agent, codes, found, manifest

Checked = Callable[[Mapping[str, object]], LinkReport]

MAIN = agent("main", "tools: [add]")
TOOLS = "def add(a: int, b: int) -> int:\n    return a + b\nTOOLS = [add]\n"
MODELS = """
from llm_do import AgentArgs
from dataclasses import dataclass
class Pitch(AgentArgs):
    company: str
@dataclass
class Verdict:
    good: bool
class Odd: pass
LIMIT = 3
def helper(): ...
"""


def project(entry: object = "main", /, tools: str = TOOLS, main: str = MAIN, **keys: object) -> dict[str, object]:
    return {
        "project.json": manifest(entry, python_files=["*.py"], **keys),
        "main.agent": main,
        "tools.py": tools,
    }


# A place in a manifest is given by the text that stands there, which is there once.
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
        [("LD202", "tools.py", 2, 10), ("LD204", "main.agent", 3, 9)],
    ),
    "an agent named like a built-in": (
        {**project(), "todo.agent": agent("todo")},
        [("LD203", "todo.agent", 2, 7)],
    ),
    "a configured toolset named like a built-in": (
        project(toolsets={"filesystem_cwd": {"type": "filesystem"}}),
        [("LD203", "project.json", '"filesystem_cwd"')],
    ),
    "an agent under tools": (project(main=agent("main", "tools: [add, main]")), [("LD204", "main.agent", 3, 14)]),
    "a tool under toolsets": (
        project(main=agent("main", "tools: [add]\ntoolsets: [add]")),
        [("LD204", "main.agent", 4, 12)],
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
        [("LD303", "notes.txt", 1, 1)],
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


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_project_gives_exactly_its_diagnostic(checked: Checked, fault: str) -> None:
    files, expected = WRONG[fault]
    report = checked(files)
    text = json.dumps(files["project.json"])
    assert all(text.count(item[2]) == 1 for item in expected if len(item) == 3)
    assert sorted(found(report)) == sorted(
        item if len(item) == 4 else (item[0], item[1], 1, text.index(item[2]) + 1) for item in expected
    )
    assert report.project is None


def test_a_project_with_faults_everywhere_is_told_all_of_them_at_once(checked: Checked) -> None:
    report = checked(
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


def test_every_error_proposes_what_to_do_where_it_can(checked: Checked) -> None:
    report = checked(
        {
            **project("mian", main=agent("main", "tools: [ad, main]\ntoolsets: [filesystem_projct, add]")),
            "other.agent": agent("main"),
        }
    )
    assert [item.hint for item in report.diagnostics] == [
        "did you mean `add`?",
        "list it under `toolsets`",
        "did you mean `filesystem_project`?",
        "list it under `tools`",
        "rename one of the two",
        "did you mean `main`?",
    ]
    assert report.diagnostics[4].message == "`main` is already the name of the agent at main.agent:2:7"


def test_a_name_that_a_broken_file_may_declare_is_not_told_as_unknown(checked: Checked) -> None:
    report = checked(
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


def test_a_function_that_its_file_does_not_export_is_told_how(checked: Checked) -> None:
    report = checked(
        project(
            main=agent("main", "tools: [add, sub, mul]\ntoolsets: [lookups]"),
            tools=TOOLS + "def sub(a: int, b: int) -> int:\n    return a - b\ndef lookups(ctx): ...\n",
        )
    )
    assert [item.hint for item in report.diagnostics] == [
        "tools.py has it, but doesn't export it: put it into its list TOOLS, as in TOOLS = [sub]",
        None,
        "tools.py has it, but doesn't export it: put it into its list TOOLSETS, as in TOOLSETS = [lookups]",
    ]


def test_a_function_with_the_wrong_parameters_is_told_which_ones(checked: Checked) -> None:
    report = checked(
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


def test_references_into_a_broken_file_are_not_told_again(checked: Checked) -> None:
    report = checked(
        project(
            {"function": "tools.py:main", "args": {"x": 1}, "input_model_ref": "tools.Pitch"},
            tools="1 / 0",
            main=agent("main", "input_model_ref: tools.py:Pitch\noutput_model_ref: tools.Verdict"),
        )
    )
    assert codes(report) == ["LD302"]


@pytest.mark.parametrize("reference", ["gone.py:Pitch", "./sub/../gone.py:Pitch", "gone.Pitch"])
def test_a_reference_to_a_listed_file_that_is_not_there_is_told_once(checked: Checked, reference: str) -> None:
    report = checked(
        {
            "project.json": manifest({"function": "gone.py:main"}, python_files=["tools.py", "gone.py"]),
            "main.agent": agent("main", f"tools: [add]\ninput_model_ref: {reference}"),
            "tools.py": TOOLS,
        }
    )
    assert codes(report) == ["LD206"]


def test_a_right_project_links_to_what_its_files_say(make: Make) -> None:
    root = make(
        {
            "project.json": manifest(
                {"agent": "main", "args": {"company": "Acme"}},
                name="pitches",
                python_files=["**/*.py"],
                model=["openai:b", "test"],
                model_settings={"temperature": 0.5},
                runtime={
                    "max_depth": 3,
                    "budget": {"requests": 7},
                    "agent_approval_overrides": {"helper": {"calls_require_approval": True}},
                },
                approvals={"deny": ["add(a=7)"], "allow": ["add"], "policy": "tools.py:decide"},
                toolsets={"docs": {"type": "filesystem", "root": "docs", "read_only": True}},
                allow_cli_input=False,
                record=False,
                generated_agents_dir="generated",
            ),
            "main.agent": agent(
                "main",
                """
                description: Judges pitches.
                model: test
                input_model_ref: models.Pitch
                output_model_ref: lib/models.py:Verdict
                tools: [add]
                toolsets:
                  - helper
                  - docs: {prefix: d, include: ["read_*"]}
                  - filesystem_project: {exclude: [delete_file]}
                  - kit
                server_side_tools: [{tool_type: web_search, max_uses: 2}]
                max_steps: 4
                """,
                "Judge.",
            ),
            "helper.agent": agent("helper", "output: {type: object, properties: {}}", "Help."),
            "tools.py": TOOLS
            + "from pydantic_ai.toolsets import FunctionToolset\nkit = FunctionToolset()\ndef decide(call): ...\n",
            "lib/models.py": MODELS,
        }
    )
    linked = Project.load(root)
    assert linked.warnings == ()
    assert {name: item.kind for name, item in linked.registry.items()} == {
        "helper": "agent",
        "main": "agent",
        "kit": "toolset",
        "add": "tool",
        "docs": "toolset",
    }
    main = linked.registry.agent("main")
    assert main is not None
    assert (main.description, main.model, main.instructions, main.max_steps) == ("Judges pitches.", "test", "Judge.", 4)
    assert [(ref.name, ref.prefix, ref.include, dict(ref.options)) for ref in main.toolsets] == [  # pyright: ignore
        ("helper", None, (), {}),
        ("docs", "d", ("read_*",), {}),
        ("filesystem_project", None, (), {}),
        ("kit", None, (), {}),
    ]
    assert [(tool.tool_type, tool.options) for tool in main.server_side_tools] == [("web_search", {"max_uses": 2})]
    assert main.input_model is not None
    assert main.input_model.__name__ == "Pitch"
    assert main.output_type.__name__ == "Verdict"
    helper = linked.registry.agent("helper")
    assert helper is not None
    assert helper.output_type == {"type": "object", "properties": {}}
    assert linked.entry.input_model is main.input_model
    assert linked.entry.args == {"company": "Acme"}
    assert (linked.settings.max_depth, linked.settings.budget.requests) == (3, 7)
    assert linked.settings.agent_approval_overrides["helper"].calls_require_approval is True
    assert [(rule.effect, rule.text, rule.place) for rule in linked.policy.rules] == [
        ("deny", "add(a=7)", "project.json:1"),
        ("allow", "add", "project.json:1"),
    ]
    assert linked.policy.function == "tools.py:decide"
    assert linked.policy_function is not None
    assert linked.toolset_configs["docs"]["read_only"] is True
    assert (linked.name, linked.allow_cli_input, linked.record) == ("pitches", False, False)
    assert linked.generated_agents_dir == root / "generated"
    assert [path.name for path in linked.files] == [
        "project.json",
        "helper.agent",
        "main.agent",
        "models.py",
        "tools.py",
    ]


def test_a_function_entry_links(make: Make) -> None:
    code = MODELS + "async def main(input, ctx): return await ctx.call('main', input)\n"
    root = make({**project({"function": "./models.py:main", "input_model_ref": "models.Pitch"}), "models.py": code})
    entry = link(root).entry
    assert (entry.kind, entry.name) == ("function", "main")
    assert entry.function is not None
    assert entry.input_model is not None


def test_a_link_error_carries_every_diagnostic(make: Make) -> None:
    root = make(project(main=agent("main", "tools: [ad, sub]")))
    with pytest.raises(LinkError) as caught:
        link(root)
    assert [item.code for item in caught.value.diagnostics] == ["LD201", "LD201"]
    assert caught.value.message == "the project has 2 errors, the first at main.agent:3:9: there is no tool `ad`"
    assert caught.value.hint == "did you mean `add`?"


def test_where_there_is_no_project_linking_is_a_usage_error(make: Make) -> None:
    with pytest.raises(UsageError):
        check(make({}) / "gone")


def test_a_manifest_of_which_nothing_can_be_made_is_told_alone(checked: Checked) -> None:
    assert codes(checked({"project.json": "{", "main.agent": "---\nnaem: x\n---"})) == ["LD105"]


def test_agents_that_list_each_other_and_themselves_link(checked: Checked) -> None:
    report = checked(
        {
            "project.json": manifest(),
            "main.agent": agent("main", "toolsets: [main, other]"),
            "other.agent": agent("other", "toolsets: {main: {}}"),
        }
    )
    assert report.diagnostics == ()


def test_agents_declared_in_python_are_checked_like_files(checked: Checked) -> None:
    code = """
        from llm_do import AgentSpec
        AGENTS = [
            AgentSpec("writer", tools=["add", "sub"], toolsets=["nobody"], model="openai:"),
        ]
        def add(a: int) -> int: ...
        TOOLS = [add]
        """
    report = checked(project(tools=code, main=agent("main", "toolsets: [writer]")))
    assert found(report) == [("LD201", "tools.py", 3, 5), ("LD201", "tools.py", 3, 5), ("LD701", "tools.py", 3, 5)]


def test_reserved_names_are_names() -> None:
    import re

    from llm_do.project.builtins import BUILTINS

    assert all(re.match(NAME_PATTERN, name) for name in BUILTINS)


def test_linking_agents_alone_imports_neither_pydantic_ai_nor_a_provider(make: Make) -> None:
    root = make(
        {
            "project.json": manifest(toolsets={"docs": {"type": "filesystem"}}),
            "main.agent": agent("main", "model: openai:gpt-5-mini\ntoolsets: [docs, filesystem_cwd: {prefix: cwd}]"),
        }
    )
    code = f"""
import sys
from pathlib import Path
from llm_do.project.linker import check
assert check(Path({str(root)!r})).diagnostics == ()
heavy = ("pydantic_ai", "genai_prices", "openai", "rich", "typer", "jsonschema", "asyncio")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_project_of_the_older_format_links_unchanged(make: Make) -> None:
    root = make(
        {
            "project.json": {
                "version": 1,
                "runtime": {
                    "approval_mode": "approve_all",
                    "auth_mode": "oauth_off",
                    "max_depth": 5,
                    "return_permission_errors": True,
                    "agent_calls_require_approval": False,
                    "agent_attachments_require_approval": False,
                    "agent_approval_overrides": {},
                },
                "allow_cli_input": True,
                "entry": {"function": "tools/main.py:main", "args": {"input": "go"}},
                "generated_agents_dir": None,
                "agent_files": ["agents/analyst.agent"],
                "python_files": ["tools/main.py", "tools/schemas.py", "tools/kit.py"],
            },
            "agents/analyst.agent": """
                ---
                name: analyst
                description: Judges a pitch.
                compatible_models:
                  - "openai:*"
                input_model_ref: schemas.PitchInput
                toolsets:
                  - kit_toolset
                  - filesystem_project
                tools:
                  - count
                server_side_tools:
                  - tool_type: web_search
                    max_uses: 3
                    blocked_domains: [example.com]
                ---
                You judge.
                """,
            "tools/main.py": """
                from llm_do.runtime import CallContext, PromptInput
                from schemas import PitchInput
                async def main(input: PromptInput, ctx: CallContext) -> str:
                    return await ctx.call_agent("analyst", {"company": input.input})
                """,
            "tools/schemas.py": """
                from llm_do.runtime import AgentArgs, PromptContent
                class PitchInput(AgentArgs):
                    company: str
                    def prompt_messages(self) -> list[PromptContent]:
                        return [self.company]
                """,
            "tools/kit.py": """
                from pydantic_ai import RunContext
                from pydantic_ai.toolsets import FunctionToolset
                from llm_do.runtime import CallContext
                def kit_toolset(ctx: RunContext[CallContext]) -> FunctionToolset:
                    return FunctionToolset()
                def count(text: str) -> int:
                    return len(text)
                TOOLS = {"count": count}
                TOOLSETS = {"kit_toolset": kit_toolset}
                """,
        }
    )
    report = check(root)
    assert report.diagnostics == ()
    assert report.project is not None
    assert (report.project.entry.kind, report.project.entry.name) == ("function", "main")
