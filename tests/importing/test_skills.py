"""Skills come through as their writers meant them, in the form that every program reads, and grant nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.formats.skill_file import parse_skill
from llm_do.importing.folder_plan import SourceFile, Target, plan_import
from llm_do.importing.frontmatter import UnreadableFileError
from llm_do.importing.skill_translation import translate_skill
from tests.support.tables import each_row

GOOD = "---\nname: tea\ndescription: Makes tea.\nlicense: MIT\n---\n\n# Tea\n\nBoil water.\n"


def skill(*lines: str, body: str = "Boil water.") -> str:
    return "\n".join(["---", *lines, "---", body, ""])


WRITTEN = {
    "as it should be": (GOOD, "tea", "Makes tea.", ()),
    "no YAML": (skill("name: tea", "description: Use it: always", "license: MIT"), "tea", "Use it: always", ()),
    "a name with blanks": (skill("name: Green Tea", "description: d"), "green-tea", "d", ("`green-tea` instead of",)),
    "no name": (skill("description: d"), "tea", "d", ()),
    "no description": (skill("name: tea", body="# Tea\n\nMakes\ntea."), "tea", "Makes tea.", ("first paragraph",)),
    "when to use it": (skill("name: tea", "description: d.", "when_to_use: At five."), "tea", "d. At five.", ()),
    "too long": (skill("name: tea", f"description: {'d' * 2000}"), "tea", "d" * 1023 + "…", ("is cut short",)),
    "what runs": (
        skill("name: tea", "description: d", "hooks:", "  Stop: []", "allowed-tools: Bash", body="!`rm` $ARGUMENTS"),
        "tea",
        "d",
        ("`hooks` are left", "`allowed-tools` allows nothing", "after `!` aren't run", "`$ARGUMENTS` stays"),
    ),
    "what has no meaning": (
        skill(
            "name: tea", "description: d", "context: fork", "argument-hint: x", "version: 1", "color: red", "zest: x"
        ),
        "tea",
        "d",
        ("`context` is left", "`argument-hint` is left", "`version`", "`color`", "`zest` is left out: it is unknown"),
    ),
}


@each_row("title", WRITTEN)
def test_a_skill_means_what_its_writer_meant(title: str) -> None:
    text, name, description, notes = WRITTEN[title]
    draft = translate_skill(text, "skills/tea/SKILL.md")
    parsed = parse_skill(draft.text, "SKILL.md")

    assert parsed.diagnostics == ()
    assert parsed.value is not None
    assert (parsed.value.name, parsed.value.description) == (name, description)
    assert (parsed.body or "").strip() == text.split("---\n", 2)[2].strip()
    assert len(draft.notes) == len(notes), draft.notes
    for note, part in zip(draft.notes, notes, strict=True):
        assert part in note.text
        assert 1 <= note.line <= len(text.splitlines())


def test_a_skill_that_is_as_it_should_be_stays_as_it_is() -> None:
    assert translate_skill(GOOD, "tea/SKILL.md").text == GOOD


def test_what_else_a_skill_says_comes_along() -> None:
    lines = ["name: tea", "description: Use it: always", "license: MIT", "compatibility: Needs: a kettle"]
    lines += ["metadata:", "  author: Ann", '  version: "1.0"', "allowed-tools: Bash(boil:*) Read"]
    value = parse_skill(translate_skill(skill(*lines), "tea/SKILL.md").text, "SKILL.md").value

    assert value is not None
    assert (value.license, value.compatibility) == ("MIT", "Needs: a kettle")
    assert (value.metadata, value.allowed_tools) == ({"author": "Ann", "version": "1.0"}, ("Bash(boil:*)", "Read"))


@each_row("text", ["# No frontmatter\n", "---\nname: tea\n", ""])
def test_what_is_no_skill_is_refused(text: str) -> None:
    with pytest.raises(UnreadableFileError):
        translate_skill(text, "tea/SKILL.md")


def agents_with(skills: str, tools: str, *names: str, target: Target | None = None) -> tuple[str, list[str]]:
    """What becomes of an agent's skills where skills of these names are imported, and the notes."""
    agent = f"---\nname: a\ndescription: d\n{tools}\n{skills}\n---\nHelp.\n"
    sources = [
        SourceFile(f".claude/skills/{name}/SKILL.md", skill(f"name: {name}", "description: d")) for name in names
    ]
    plan = plan_import([SourceFile("a.md", agent)], target or Target("shop"), sources)
    line = [line for line in plan.files["agents/a.agent"].splitlines() if line.startswith("skills:")]
    return "".join(line), [each.note.text for each in plan.notes if "skill" in each.note.text]


AGENTS = {
    "those that it lists": ("skills: tea, rice", "tools: Read", "skills: [skills/tea, skills/rice]"),
    "those that a tool names": ("", "tools: Read, Skill(tea)", "skills: [skills/tea]"),
    "all of the project's": ("", "tools: Read, Skill", ""),
    "all of them, without a list of tools": ("", "", ""),
    "none": ("", "tools: Read", "skills: []"),
    "none that is denied": ("", "disallowedTools: Skill", "skills: []"),
}


@each_row("title", AGENTS)
def test_an_agent_has_the_skills_that_its_writer_gave_it(title: str) -> None:
    skills, tools, expected = AGENTS[title]

    assert agents_with(skills, tools, "tea", "rice") == (expected, [])


def test_a_skill_that_is_not_imported_is_listed() -> None:
    line, notes = agents_with("skills: [ghost, tea]", "tools: Read", "tea")
    assert (line, notes) == (
        "skills: [skills/tea]",
        ["it uses the skill `ghost`, which is not imported, so that is left out"],
    )

    line, _ = agents_with("skills: tea", "tools: Read", target=Target("shop", skills=frozenset({"tea"})))
    assert line == "skills: [skills/tea]"


def test_two_skills_of_one_name_get_folders_of_their_own() -> None:
    sources = [SourceFile(f"{place}/tea/SKILL.md", GOOD) for place in ("one", "two")]
    plan = plan_import([], Target("shop"), sources)

    assert plan.skills == {"one/tea/SKILL.md": "skills/tea", "two/tea/SKILL.md": "skills/tea-2"}
    assert "name: tea-2\n" in plan.files["skills/tea-2/SKILL.md"]
    assert [each.note.text for each in plan.notes] == ["it is called `tea-2`: there is a skill `tea` already"]


def test_a_skill_that_only_people_call_is_left_out() -> None:
    text = skill("name: deploy", "description: d", "disable-model-invocation: true")
    plan = plan_import([], Target("shop"), [SourceFile("deploy/SKILL.md", text)])

    assert (plan.files, plan.skills) == ({}, {})
    assert "only people call it" in plan.notes[0].note.text


def test_an_unknown_folder_names_a_skill_without_a_name() -> None:
    assert translate_skill("---\ndescription: d\n---\n", str(Path("日本/SKILL.md"))).name == "skill"
