"""Subagents come through as their writers meant them, and every one links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llm_do import Project
from llm_do.formats.agent_file import AgentFile, parse_agent
from llm_do.importing.folder_plan import ImportPlan, SourceFile, Target, plan_import
from tests.importing.samples import SAMPLES, Sample
from tests.support.tables import each_row

USUAL = {"name", "description", "toolsets"}


def plan_of(sample: Sample) -> ImportPlan:
    return plan_import([SourceFile(sample.file, sample.text)], Target("samples"))


def agent_of(plan: ImportPlan) -> tuple[AgentFile, str]:
    (text,) = (text for file, text in plan.files.items() if file.endswith(".agent"))
    parsed = parse_agent(text, "agent")
    assert parsed.value is not None
    assert [item for item in parsed.diagnostics if item.severity == "error"] == []
    return parsed.value, parsed.body


@each_row("title, sample", SAMPLES.items())
def test_a_subagent_means_what_its_writer_meant(title: str, sample: Sample) -> None:
    plan = plan_of(sample)
    agent, body = agent_of(plan)

    assert plan.refused == {}
    assert (agent.name, agent.description or "", body) == (sample.name, sample.description, sample.body)
    assert {name: use.include for name, use, _ in agent.toolset_uses()} == sample.toolsets
    more: dict[str, Any] = agent.model_dump(exclude_unset=True, exclude=USUAL)
    assert more == sample.more


@each_row("title, sample", [(title, sample) for title, sample in SAMPLES.items() if sample.notes is not None])
def test_what_can_not_be_said_is_listed(title: str, sample: Sample) -> None:
    found = [each.note.text for each in plan_of(sample).notes]
    parts = sample.notes or ()

    assert len(found) == len(parts), found
    for text, part in zip(found, parts, strict=True):
        assert part in text


@each_row("title, sample", [(title, sample) for title, sample in SAMPLES.items() if sample.notes])
def test_a_note_names_a_line_of_the_file(title: str, sample: Sample) -> None:
    lines = sample.text.splitlines()

    assert all(1 <= each.note.line <= len(lines) for each in plan_of(sample).notes)


@each_row("title, sample", SAMPLES.items())
def test_nothing_that_grants_or_runs_anything_comes_through(title: str, sample: Sample) -> None:
    written = "\n".join(plan_of(sample).files.values())

    for word in ("bypassPermissions", "acceptEdits", "hooks", "rm -rf", "evil", "allow", "approve"):
        assert word not in written


def test_all_of_them_link_as_one_project(tmp_path: Path) -> None:
    sources = [SourceFile(f"{number}.md", sample.text) for number, sample in enumerate(SAMPLES.values())]
    plan = plan_import(sources, Target("samples"))
    for file, text in plan.files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")

    project = Project.load(tmp_path)

    assert len(SAMPLES) >= 60
    assert plan.refused == {}
    assert project.entry.name == "main"
    assert len(plan.files) > 60
