"""Projects in the format of llm-do 0.3: they link without warnings, and run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.native_tools import CodeExecutionTool, ImageGenerationTool, WebFetchTool, WebSearchTool

from llm_do import ModelUnavailableError, Project, RunApprovalPolicy, Runtime, resolve_model
from llm_do.runtime import Attachment
from llm_do.runtime.args import get_display_text
from llm_do.runtime.events import RuntimeEvent
from tests.support.openai_server import serve
from tests.support.scripted import call, script

PROJECTS = Path(__file__).parent / "projects"
NAMES = sorted(path.name for path in PROJECTS.iterdir())

Load = Callable[[str], Project]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Link a copy of a project, which its run may write to."""

    def linked(name: str) -> Project:
        shutil.copytree(PROJECTS / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        return Project.load(tmp_path / name)

    return linked


def answered(project: Project, **options: Any) -> Any:
    """Run a project on its own script, and return the result."""
    return Runtime(project, model=f"script:{project.root / 'answers.yaml'}", **options).run_sync()


def module_of(project: Project, name: str) -> Any:
    """Return an imported Python file of a linked project."""
    import sys

    (found,) = [
        module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == str(project.root / name)
    ]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_project_of_the_older_format_links_without_a_warning(load: Load, name: str) -> None:
    assert load(name).warnings == ()


def test_the_environment_names_the_model_and_test_is_one(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_DO_MODEL", "test")
    result = Runtime(load("greeter")).run_sync()
    assert (result.status, result.usage.requests) == ("completed", 1)


def test_every_runtime_setting_is_read(load: Load) -> None:
    settings = load("greeter").settings
    assert (settings.approval_mode, settings.max_depth, settings.return_permission_errors) == ("approve_all", 5, False)
    assert settings.agent_approval_overrides["greeter"].calls_require_approval is True


def test_an_agent_calls_itself_with_typed_input(load: Load) -> None:
    project = load("recursion")
    model = script(call("planner", task="lay the foundation", depth=1), "done")
    result = Runtime(project, model=model, max_depth=2).run_sync()
    assert [record.path for record in result.calls] == ["planner/planner"]
    assert "Task: build a house" in str(model.asked[0].prompt)
    assert "Task: lay the foundation" in str(model.asked[1].prompt)


def test_a_factorys_handles_live_as_long_as_the_call(load: Load) -> None:
    project = load("closures")
    assert module_of(project, "toolsets.py").BUILT == []
    assert [answered(project).output for _ in range(2)] == ["Meeting by main; agreed"] * 2
    assert module_of(project, "toolsets.py").BUILT == ["notes", "notes"]


def test_pre_approved_tools_run_and_others_are_denied(load: Load) -> None:
    result = answered(load("approvals"))
    assert [(record.tool, record.reason) for record in result.approvals] == []
    assert [record.tool for record in result.denials] == ["book"]
    assert "denied" in result.output


def test_a_run_approval_policy_decides(load: Load) -> None:
    result = answered(load("approvals"), approvals=RunApprovalPolicy(mode="approve_all"))
    assert result.output == "booked 5"


def test_compatible_models_are_checked_ignoring_case(load: Load) -> None:
    project = load("compatible")
    assert answered(project).output == "fits"
    with pytest.raises(ModelUnavailableError, match="compatible"):
        Runtime(project, model="test").run_sync()


def test_server_side_tools_reach_the_provider(load: Load) -> None:
    model = script("found")
    assert Runtime(load("server_side"), model=model).run_sync().output == "found"
    (asked,) = model.asked
    tools = asked.info.model_request_parameters.native_tools
    assert [type(tool) for tool in tools] == [WebSearchTool, WebFetchTool, CodeExecutionTool, ImageGenerationTool]
    assert (tools[0].max_uses, tools[0].blocked_domains) == (3, ["example.com"])


def test_a_function_is_the_entry_and_logs(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    project = load("logging_entry")
    with caplog.at_level("INFO"):
        result = answered(project)
    assert result.output == "a fair summary"
    assert [record.getMessage() for record in caplog.records if "summarizing" in record.getMessage()] == [
        "summarizing 11 characters"
    ]
    assert [RuntimeEvent(agent="main", depth=0, event="a long text")] == module_of(project, "main.py").EVENTS


def test_a_custom_provider_serves_the_agent(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"small": [{"text": "from the lab"}]}) as (url, log):
        monkeypatch.setenv("COMPAT_LAB_URL", url)
        project = load("provider")

        async def run() -> Any:
            result = await Runtime(project).run()
            for model in module_of(project, "providers.py").BUILT:
                await model.client.close()
            return result.output

        assert asyncio.run(run()) == "from the lab"
        assert len(log) == 1
        assert resolve_model("compat-lab:other").model_name == "other"


def test_two_files_import_each_other(load: Load) -> None:
    assert answered(load("packages")).output == "flow of 3: HEY"


def test_file_and_shell_toolsets_can_be_created_in_python(load: Load) -> None:
    project = load("files")
    result = answered(project)
    assert '"exit_code":0' in result.output
    assert (project.root / "work" / "copy.txt").read_text() == "Once"


def test_tools_call_agents_and_an_agent_is_a_toolset(load: Load) -> None:
    result = answered(load("delegating"))
    assert result.output == "the end"
    assert [record.path for record in result.calls] == ["main/helper", "main/oracle"]


def test_built_in_file_tools_read_a_number_of_characters(load: Load) -> None:
    result = answered(load("builtins"))
    assert "456" in result.output
    assert "total_chars" in result.output


def test_a_prompt_is_shown_as_text() -> None:
    assert get_display_text(["Look:", Attachment("a.png")]) == "Look:\n[a.png]"
