"""Skills: what a model sees of them, what it loads and reads, and what they never do."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, LinkError, Project, Runtime, UsageError
from llm_do.files.code_files import CodeFiles
from llm_do.files.unreviewed import agree, record
from llm_do.formats.skill_file import parse_skill
from llm_do.linker.linker import check_project
from llm_do.project.agent_spec import skills_of
from llm_do.ui.reports.explanation import explain_data
from llm_do.ui.reports.project_graph import graph_data, tree
from llm_do.ui.reports.tool_list import tool_lines, tools_data
from tests.linker.conftest import agent as agent_text, manifest, write_files
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, project_of
from tests.support.scripted import call, script


def skill_text(name: str, description: str = "Fills in forms.", body: str = "Fill it in.", front: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{front}---\n{body}\n"


FORMS = {
    "skills/forms/SKILL.md": skill_text(
        "forms",
        "'Fills in forms: {{input}}.'",
        "Read [the fields](references/fields.md) of {{input}}.\n\x1b[31mThen run scripts/fill.py.",
        "compatibility: Requires pdftk\nallowed-tools: Bash(git add:*) shell\n",
    ),
    "skills/forms/references/fields.md": "name\naddress\n",
    "skills/forms/scripts/fill.py": "print('filled')\n",
    "skills/forms/logo.png": b"\x89PNG\0\0",
    "skills/dates/SKILL.md": skill_text("dates", "How dates are written.", "Write 5 March 2026."),
}


def project_in(root: Path, front: str = "skills: [skills/*]", /, **files: Any) -> Path:
    return write_files(root, {"main.agent": agent_text("main", front), **FORMS, **files})


def ran(root: Path, *turns: Any, **options: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Run a project's agent with a scripted model; returns the model and the outcome and text of each tool call."""
    model = script(*turns, "done")
    result = carry_out(Runtime(Project.load(root), model=model, **options))
    assert result.status == "completed", result.error
    return model, [(outcome, text) for _, outcome, text in results_of(result.messages)]


def test_a_model_sees_names_and_descriptions_in_its_instructions_and_nothing_else_of_a_skill(tmp_path: Path) -> None:
    model, _ = ran(project_in(tmp_path), call("load_skill", name="dates"))
    assert model.asked[0].tools == ["load_skill", "read_skill_file"]
    instructions = model.asked[0].messages[-1].instructions
    assert instructions.startswith("Help.\n\nYou have skills: ")
    assert instructions.endswith("\n- dates: How dates are written.\n- forms: Fills in forms: {{input}}.")
    assert "Write 5 March" not in instructions
    assert [asked.messages[-1].instructions for asked in model.asked] == [instructions] * 2


def test_a_skill_s_text_is_no_template_even_for_an_agent_with_one(tmp_path: Path) -> None:
    front = "skills: [skills/*]\ntemplate: true"
    root = write_files(tmp_path, {"main.agent": agent_text("main", front, "Answer {{input}}."), **FORMS})
    model, results = ran(root, call("load_skill", name="forms"))
    instructions = model.asked[0].messages[-1].instructions
    assert "Answer " in instructions
    assert "Answer {{input}}" not in instructions
    assert "forms: Fills in forms: {{input}}." in instructions
    assert "of {{input}}" in results[0][1]


def test_loading_a_skill_needs_no_approval_and_gives_its_body_and_where_its_files_are(tmp_path: Path) -> None:
    person = Answers([])
    _, results = ran(project_in(tmp_path), call("load_skill", name="forms"), approvals=person)
    assert person.asked == []
    assert results[0][0] == "success"
    head, _, body = results[0][1].partition("\n\n")
    assert head.splitlines() == [
        "The skill forms. Its folder in the project is skills/forms.",
        "It says that it needs: Requires pdftk",
        "Its files, for read_skill_file: logo.png, references/fields.md, scripts/fill.py",
        "Commands name its scripts by their path in the project: skills/forms/scripts/...",
    ]
    assert body == "Read [the fields](references/fields.md) of {{input}}.\n\x1b[31mThen run scripts/fill.py."
    assert str(tmp_path) not in results[0][1]


def test_an_unknown_skill_is_answered_with_the_nearest_one(tmp_path: Path) -> None:
    _, results = ran(project_in(tmp_path), call("load_skill", name="date"), call("load_skill", name="\x1b[2J"))
    assert results[0] == ("failed", "there is no skill 'date'; did you mean `dates`?")
    assert results[1][0] == "failed"
    assert results[1][1].endswith("your skills: dates, forms")
    assert "\x1b" not in results[1][1]


def test_files_beside_a_skill_are_read_by_lines(tmp_path: Path) -> None:
    read = call("read_skill_file", skill="forms", path="references/fields.md")
    part = call("read_skill_file", skill="forms", path="./references/../references/fields.md", offset=1, limit=1)
    _, results = ran(project_in(tmp_path), read, part)
    assert results == [("success", "name\naddress\n"), ("success", "address\n")]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../dates/SKILL.md", "outside the root folder"),
        ("../../main.agent", "outside the root folder"),
        ("/etc/passwd", "outside the root folder"),
        ("out.md", "outside the root folder"),
        ("logo.png", "it is a binary file, not text"),
        ("references", "the skill forms has no such file"),
        ("fields.md", "did you mean `references/fields.md`?"),
        (".env", "the skill forms has no such file"),
        ("later.md", "the skill forms has no such file"),
        ("a\0b", "NUL"),
    ],
)
def test_nothing_else_is_read(tmp_path: Path, path: str, why: str) -> None:
    root = project_in(tmp_path / "project", **{"skills/forms/.env": "KEY=secret\n"})
    (tmp_path / "secret.md").write_text("secret")
    (root / "skills/forms/out.md").symlink_to(tmp_path / "secret.md")

    def read(*_: Any) -> Any:
        (root / "skills/forms/later.md").write_text("secret")
        return call("read_skill_file", skill="forms", path=path)

    _, results = ran(root, read)
    assert results[0][0] == "failed"
    assert why in results[0][1]
    assert "secret" not in results[0][1].replace("secret.md", "")


def test_a_file_that_becomes_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    root = project_in(tmp_path / "project")
    (tmp_path / "secret.md").write_text("secret")

    def read(*_: Any) -> Any:
        (root / "skills/forms/references/fields.md").unlink()
        (root / "skills/forms/references/fields.md").symlink_to(tmp_path / "secret.md")
        return call("read_skill_file", skill="forms", path="references/fields.md")

    _, results = ran(root, read)
    assert results[0][0] == "failed"
    assert "outside the root folder" in results[0][1]


def test_rules_hold_for_skills_as_for_any_tool(tmp_path: Path) -> None:
    calls = (
        call("load_skill", name="forms"),
        call("load_skill", name="dates"),
        call("read_skill_file", skill="forms", path="references/fields.md"),
    )
    deny = ["load_skill(forms)", "read_skill_file(skills/forms/references/**)"]
    _, results = ran(project_in(tmp_path), *calls, deny=deny)
    assert [outcome for outcome, _ in results] == ["denied", "success", "denied"]
    for allowed, args in (("deny", "forms"), ("allow", "dates")):
        assert explain_data(Project.load(tmp_path), ["main", "load_skill", args], deny=deny)["effect"] == allowed
    read = ["main", "read_skill_file", '{"skill": "forms", "path": "references/fields.md"}']
    assert explain_data(Project.load(tmp_path), read, deny=deny)["effect"] == "deny"
    assert explain_data(Project.load(tmp_path), read, deny=["files.read(skills/forms/**)"])["effect"] == "deny"
    assert explain_data(Project.load(tmp_path), read)["effect"] == "allow"


def test_what_a_skill_asks_for_is_allowed_only_by_rules(tmp_path: Path) -> None:
    root = project_in(tmp_path, "skills: [skills/*]\ntoolsets: [shell_file_ops]")
    (skill,) = [each for each in skills_of(Project.load(root).registry.agent("main")) if each.name == "forms"]
    assert skill.allowed_tools == ("Bash(git add:*)", "shell")
    asked = explain_data(Project.load(root), ["main", "shell", "mv a b"])
    assert asked["effect"] == "ask"
    assert explain_data(Project.load(root), ["main", "load_skill", "forms"])["reason"] == (
        "load_skill is allowed by default: it reads the agent's own skills"
    )


def test_an_assertion_about_files_is_about_those_of_skills_only_where_they_are(tmp_path: Path) -> None:
    permissions = {"assert": ["never main -> files.read(src/**)", "never main -> files.write(skills/**)"]}
    root = project_in(tmp_path, **{"project.json": manifest(permissions=permissions)})
    assert {item.code for item in Project.load(root).warnings} == {"LD109"}  # of the escape in a skill
    permissions = {"assert": ["never main -> files.read(skills/forms/**)"]}
    (root / "project.json").write_text(json.dumps(manifest(permissions=permissions)))
    with pytest.raises(LinkError, match="main calls read_skill_file"):
        Project.load(root)


def test_the_project_s_skills_are_for_agents_that_list_none(tmp_path: Path) -> None:
    files = {
        "project.json": manifest(skills=["skills/*"]),
        "main.agent": agent_text("main", "toolsets: [own, none]"),
        "own.agent": agent_text("own", "skills: [skills/dates]"),
        "none.agent": agent_text("none", "skills: []"),
    }
    project = Project.load(write_files(tmp_path, {**FORMS, **files}))
    agents = {
        name: [skill.name for skill in skills_of(project.registry.agent(name))] for name in ("main", "own", "none")
    }
    assert agents == {"main": ["dates", "forms"], "own": ["dates"], "none": []}
    assert [skill.name for skill in project.skills] == ["dates", "forms"]
    data = graph_data(project)
    assert {each["name"]: each["skills"] for each in data["agents"]} == agents
    assert "dates  skill" in tree(data)
    shown = tools_data(project, "own")
    assert shown["agents"][0]["skills"][0]["folder"] == "skills/dates"
    assert "  dates: a skill in skills/dates" in list(tool_lines(shown))


def test_a_subagent_has_skills_of_its_own(tmp_path: Path) -> None:
    helper = agent("helper", script(call("load_skill", name="forms"), "helped"), skills=["skills/dates"])
    main = agent("main", script(call("helper", input="go"), "done"), toolsets=[helper], skills=["skills/forms"])
    result = carry_out(Runtime(project_of([main, helper], root=write_files(tmp_path, FORMS))))
    assert result.status == "completed"
    assert [skill.name for skill in skills_of(helper)] == ["dates"]


def test_skills_of_an_agent_in_python_are_paths_below_the_project(tmp_path: Path) -> None:
    root = write_files(tmp_path, FORMS)
    model = script(call("load_skill", name="dates"), "done")
    spec = AgentSpec("main", model, skills=[root / "skills" / "*"])
    result = carry_out(Runtime(project_of([spec], root=root)))
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success"]
    assert [skill.name for skill in skills_of(spec)] == ["dates", "forms"]


def test_wrong_skills_of_an_agent_in_python_are_an_error_that_says_why(tmp_path: Path) -> None:
    write_files(tmp_path, {"skills/tea/SKILL.md": skill_text("milk")})
    spec = AgentSpec("main", "test", skills=["skills/*"])
    runtime = Runtime(project_of([spec], root=tmp_path))
    with pytest.raises(UsageError, match=r"agent 'main': skills/tea/SKILL.md:2.*`milk`, and its folder `tea`"):
        runtime.builder.build(spec)
    with pytest.raises(UsageError, match="skills must be a list of names"):
        runtime.builder.build(AgentSpec("other", "test", skills="skills/*"))


def test_the_tools_have_the_prefix_that_their_toolset_gets(tmp_path: Path) -> None:
    front = "skills: [skills/*]\ntoolsets: {skills: {prefix: house}}"
    model, results = ran(project_in(tmp_path, front), call("house_load_skill", name="forms"))
    assert model.asked[0].tools == ["house_load_skill", "house_read_skill_file"]
    assert "call house_load_skill with" in model.asked[0].messages[-1].instructions
    assert "for house_read_skill_file: " in results[0][1]


def test_a_skill_is_changed_only_by_a_person(tmp_path: Path) -> None:
    root = project_in(tmp_path, "skills: [skills/*]\ntoolsets: [filesystem_project]")
    new = call("write_file", path="skills/evil/SKILL.md", content=skill_text("evil"))
    old = call("write_file", path="skills/forms/references/fields.md", content="Harm.")
    other = call("write_file", path="notes.md", content="Notes.")
    person = Answers(["deny", "deny"])
    _, results = ran(root, new, old, other, allow=["write_file"], approvals=person)
    assert [outcome for outcome, _ in results] == ["denied", "denied", "success"]
    assert [asked.person_only for asked in person.asked] == [True, True]
    assert "only a person can allow a change of a skill" in str(person.asked[0])


def test_a_pattern_says_which_new_files_belong_to_skills(tmp_path: Path) -> None:
    code = CodeFiles(tmp_path, skills=["skills/*", ".claude/skills/own"])
    paths = ("skills/new/SKILL.md", "skills/new/a/b.md", "skills/new/run.py", ".claude/skills/own/x", "skill/a", "a.md")
    assert [code.kind(path) for path in paths] == ["skill", "skill", "python", "skill", None, None]
    assert not code.reaches_anywhere


def test_a_skill_that_no_one_has_agreed_to_is_left_out(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    record(root, {"skills/dates/SKILL.md": "shell", "skills/forms/references/fields.md": "shell"})
    found = {item.code: item.file for item in check_project(root).diagnostics if item.severity == "warning"}
    assert found["LD708"].startswith("skills/")
    (forms,) = skills_of(Project.load(root).registry.agent("main"))
    assert (forms.name, list(forms.files)) == ("forms", ["SKILL.md", "logo.png", "scripts/fill.py"])
    agree(root, ["skills/dates/SKILL.md"])
    assert len(skills_of(Project.load(root).registry.agent("main"))) == 2


def test_skills_at_any_depth_and_in_hidden_folders_are_found_where_the_pattern_says_so(tmp_path: Path) -> None:
    files = {"library/a/tea/SKILL.md": skill_text("tea"), ".claude/skills/milk/SKILL.md": skill_text("milk")}
    root = write_files(
        tmp_path, {**files, "main.agent": agent_text("main", "skills: ['library/**', .claude/skills/*]")}
    )
    found = [skill.folder for skill in skills_of(Project.load(root).registry.agent("main"))]
    assert found == [".claude/skills/milk", "library/a/tea"]


def test_a_folder_that_is_a_link_inside_the_project_is_a_skill_and_one_outside_is_not(tmp_path: Path) -> None:
    root = project_in(tmp_path / "project", "skills: [linked/*]")
    (root / "linked").mkdir()
    (root / "linked/dates").symlink_to(root / "skills/dates")
    project = Project.load(root)
    assert [skill.folder for skill in skills_of(project.registry.agent("main"))] == ["linked/dates"]
    assert {"linked/*", "skills/dates"} <= set(project.skill_patterns)
    shutil.move(root / "skills/forms", tmp_path / "forms")
    (root / "linked/forms").symlink_to(tmp_path / "forms")
    with pytest.raises(LinkError, match="leaves the project through the link forms"):
        Project.load(root)


def test_a_created_agent_has_only_skills_of_its_creator(tmp_path: Path) -> None:
    create: dict[str, Any] = {"name": "critic", "instructions": "Judge.", "model": "test"}
    turns = (
        call("agent_create", create | {"skills": ["forms"]}),
        call("agent_create", create | {"skills": ["dates"]}),
        call("agent_create", create | {"name": "plain"}),
    )
    spec = agent("main", script(*turns, "done"), toolsets=["dynamic_agents"], skills=["skills/dates"])
    root = write_files(tmp_path, FORMS)
    (root / "made").mkdir()
    project = project_of([spec], root=root, generated_agents_dir=root / "made")
    runtime = Runtime(project, approvals="approve_all", models={"critic": "test"})
    results = results_of(carry_out(runtime).messages)
    assert results[0][1:] == ("failed", "you have no skill 'forms' to pass on. Your skills: dates.")
    assert [outcome for _, outcome, _ in results[1:]] == ["success", "success"]
    assert '"skills":\n- "skills/dates"\n' in (root / "made/critic.agent").read_text()
    assert [skill.name for skill in skills_of(runtime.registry.agent("critic"))] == ["dates"]
    assert skills_of(runtime.registry.agent("plain")) == ()


def test_a_project_s_files_include_those_of_its_skills(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    files = {os.path.relpath(path, root) for path in Project.load(root).files}
    assert files == {"main.agent", *FORMS}


def test_values_are_text_whatever_yaml_takes_them_for() -> None:
    front = "license: no\nmetadata: {version: 1.0, date: 2026-01-01, beta: yes}\nallowed-tools: [Read, Bash(git:*)]\n"
    value = parse_skill(skill_text("tea", "12", front=front), "SKILL.md").value
    assert value is not None
    assert (value.description, value.license) == ("12", "no")
    assert value.metadata == {"version": "1.0", "date": "2026-01-01", "beta": "yes"}
    assert value.allowed_tools == ("Read", "Bash(git:*)")


@pytest.mark.parametrize("name", ["a", "a-b", "1-2-3", "a" * 64])
def test_a_name_that_the_format_allows(name: str) -> None:
    assert not parse_skill(skill_text(name), "SKILL.md").diagnostics


@pytest.mark.parametrize("name", ["A", "-a", "a-", "a--b", "a_b", "é", "a b", "a" * 65, "''"])
def test_a_name_that_the_format_forbids(name: str) -> None:
    (fault,) = parse_skill(skill_text(name), "SKILL.md").diagnostics
    assert (fault.code, fault.line) == ("LD430", 2)


def test_a_skill_that_a_command_made_is_named_and_left_out_until_a_person_agrees(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    settings = {"entry": "main", "toolsets": {"sh": {"type": "shell", "allow": ["make"]}}, "sandbox": "off"}
    (root / "project.json").write_text(json.dumps(manifest(**settings)))
    (root / "main.agent").write_text(agent_text("main", "skills: [skills/*]\ntoolsets: [sh]"))
    write = "printf -- '---\\nname: evil\\ndescription: Harms.\\n---\\nHarm.\\n' > skills/evil/SKILL.md"
    (root / "Makefile").write_text(f"all:\n\tmkdir skills/evil\n\t{write}\n")
    person = Answers([])
    ran(root, call("shell", command="make"), approvals=person)
    assert (root / "skills/evil/SKILL.md").exists()
    assert person.asked == []
    assert [skill.name for skill in skills_of(Project.load(root).registry.agent("main"))] == ["dates", "forms"]
    assert [item.file for item in check_project(root).diagnostics if item.code == "LD708"] == ["skills/evil/SKILL.md"]
    agree(root, ["skills/evil/SKILL.md"])
    assert "evil" in [skill.name for skill in skills_of(Project.load(root).registry.agent("main"))]


def test_the_list_of_tools_leaves_out_the_tags_around_a_description() -> None:
    tagged = (
        "<summary>Count the stock.\n\nAll of it.</summary>\n<returns>\n<description>A number.</description>\n</returns>"
    )
    tools = [
        {"name": name, "kind": "toolset", "toolset": None, "conditional": False, "description": text, "parameters": {}}
        for name, text in (("count", tagged), ("other", "<summary> is a tag."))
    ]
    agent = {"name": "main", "tools": tools, "open": [], "server_side": [], "skills": [], "capabilities": []}

    shown = [line.strip() for line in tool_lines({"agents": [agent]})]
    assert shown == ["main", "count()  [toolset]", "Count the stock.", "other()  [toolset]", "<summary> is a tag."]
