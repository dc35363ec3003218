"""What correct projects link to, and how linking a faulty one ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from llm_do.errors import LinkError, UsageError
from llm_do.linker.linker import LinkReport, check_project, link
from llm_do.project.project import Project
from llm_do.project.registry import NAME_PATTERN
from tests.linker.conftest import MODELS, TOOLS, Make, agent, manifest, project

CheckFiles = Callable[[Mapping[str, object]], LinkReport]


def test_a_correct_project_links_to_what_its_files_declare(make: Make) -> None:
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


def test_an_empty_prefix_differs_from_no_prefix(make: Make) -> None:
    server = {"type": "mcp", "command": ["true"]}
    front = "toolsets:\n  - kb\n  - todo: {prefix: ''}\n  - web: {prefix: ''}\n  - files: {prefix: f}"
    root = make(
        {
            "project.json": manifest(toolsets={"kb": server, "web": server, "files": {"type": "filesystem"}}),
            "main.agent": agent("main", front),
        }
    )
    main = link(root).registry.agent("main")
    assert main is not None
    assert [ref.prefix for ref in main.toolsets] == [None, "", "", "f"]  # pyright: ignore


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


def test_linking_without_a_project_is_a_usage_error(make: Make) -> None:
    with pytest.raises(UsageError):
        check_project(make({}) / "gone")


def test_agents_that_list_each_other_and_themselves_link(check_files: CheckFiles) -> None:
    report = check_files(
        {
            "project.json": manifest(),
            "main.agent": agent("main", "toolsets: [main, other]"),
            "other.agent": agent("other", "toolsets: {main: {}}"),
        }
    )
    assert report.project is not None
    assert [(each.code, each.severity) for each in report.diagnostics] == [("LD422", "warning")]


def test_reserved_names_are_valid_names() -> None:
    import re

    from llm_do.project.tools.builtin_toolsets import BUILTINS

    assert all(re.match(NAME_PATTERN, name) for name in BUILTINS)


def test_linking_agents_without_code_imports_neither_pydantic_ai_nor_a_provider(make: Make) -> None:
    root = make(
        {
            "project.json": manifest(toolsets={"docs": {"type": "filesystem"}}),
            "main.agent": agent("main", "model: openai:gpt-5-mini\ntoolsets: [docs, filesystem_cwd: {prefix: cwd}]"),
        }
    )
    code = f"""
import sys
from pathlib import Path
from llm_do.linker.linker import check_project
assert check_project(Path({str(root)!r})).diagnostics == ()
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
                    "Count."
                    return len(text)
                TOOLS = {"count": count}
                TOOLSETS = {"kit_toolset": kit_toolset}
                """,
        }
    )
    report = check_project(root)
    assert report.diagnostics == ()
    assert report.project is not None
    assert (report.project.entry.kind, report.project.entry.name) == ("function", "main")
