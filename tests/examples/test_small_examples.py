"""The greeter, the calculator, the approvals example, and the completeness of every example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do import ModelError, PermissionDeniedError, Project, RunApprovalPolicy, Runtime

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir())
MINUTES = "out/minutes.md"

Load = Callable[[str], Project]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_links_without_a_warning_and_has_a_readme(name: str, example: Load) -> None:
    project = example(name)

    assert not project.warnings
    assert (project.root / "README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")


def test_a_folder_with_one_agent_runs_without_a_manifest(example: Load) -> None:
    project = example("greeter")

    result = Runtime(project, model="test").run_sync("Hello, I am Ada.")

    assert project.manifest is None
    assert project.entry.name == "main"
    assert result.status == "completed"


def test_the_calculator_answers_with_what_its_functions_and_its_agent_return(example: Load) -> None:
    result = Runtime(example("calculator")).run_sync()

    assert result.output == "Your three chairs come to 888.93 euros, VAT included."
    assert result.usage.tool_calls == 3
    assert [call.path for call in result.calls] == ["calculator/explainer"]
    assert not result.approvals
    assert not result.denials


def test_a_question_the_script_does_not_expect_is_reported(example: Load) -> None:
    with pytest.raises(ModelError, match=r"expects 'Three chairs'.* the prompt was 'Two lamps"):
        Runtime(example("calculator")).run_sync("Two lamps?")


def test_without_a_person_the_minutes_are_not_written_and_the_model_learns_why(example: Load) -> None:
    project = example("approvals")

    result = Runtime(project).run_sync()

    assert not (project.root / MINUTES).exists()
    assert [denial.tool for denial in result.denials] == ["write_file"]
    assert f"write_file({MINUTES})" in str(result.output)


@pytest.mark.parametrize("options", [{"approvals": "approve_all"}, {"allow": ["write_file(out/**)"]}])
def test_an_allowed_write_is_carried_out(options: dict[str, object], example: Load) -> None:
    project = example("approvals")

    result = Runtime(project, **options).run_sync()  # pyright: ignore[reportArgumentType]

    assert "Karl cancels it by Friday" in (project.root / MINUTES).read_text(encoding="utf-8")
    assert not result.denials
    assert [grant.tool for grant in result.approvals] == ["write_file"]


def test_a_write_that_no_rule_covers_is_denied(example: Load) -> None:
    project = example("approvals")

    Runtime(project, allow=["write_file(notes/**)"]).run_sync()

    assert not (project.root / MINUTES).exists()


def test_a_denial_ends_the_run_if_configured(example: Load) -> None:
    project = example("approvals")
    policy = RunApprovalPolicy("reject_all", return_permission_errors=False)

    with pytest.raises(PermissionDeniedError, match="write_file"):
        Runtime(project, approvals=policy).run_sync()
