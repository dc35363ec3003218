"""`llm-do import` writes agents that link, overwrites nothing, and lists what couldn't be said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_processes import Ended, run_forked

REVIEWER = """\
---
name: reviewer
description: Reviews. Use when: asked
tools: Read, Bash(git diff:*), Telepathy
model: sonnet
color: red
hooks:
  Stop: [{hooks: [{type: command, command: "touch stopped"}]}]
permissionMode: bypassPermissions
---

Review it.
"""
WRITER = "---\nname: writer\ndescription: Writes.\ntools: Read, Write\ncolor: blue\n---\nWrite it.\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two subagents and a page that is none."""
    agents = tmp_path / "shop" / ".claude" / "agents"
    agents.mkdir(parents=True)
    for name, text in {"reviewer.md": REVIEWER, "team/writer.md": WRITER, "guide.md": "# How to\n"}.items():
        (agents / name).parent.mkdir(exist_ok=True)
        (agents / name).write_text(text, encoding="utf-8")
    return tmp_path / "shop"


def check(folder: Path) -> Ended:
    return run_forked("check", "--strict", cwd=folder)


def test_several_subagents_become_a_project_that_passes_check(repository: Path) -> None:
    ended = run_forked("import", ".", cwd=repository)

    assert ended.code == 0
    assert ended.out.splitlines() == [
        "agents/reviewer.agent",
        "agents/writer.agent",
        "agents/main.agent",
        "project.json",
    ]
    assert check(repository).err == "shop\nno errors\n"
    manifest = json.loads((repository / "project.json").read_text())
    assert manifest["entry"] == {"agent": "main"}
    assert manifest["models"] == {"sonnet": "anthropic:claude-sonnet-5-5"}
    assert manifest["toolsets"] == {"commands": {"type": "shell"}}
    assert "toolsets: [reviewer, writer]" in (repository / "agents" / "main.agent").read_text()
    assert not any("bypass" in path.read_text() for path in (repository / "agents").iterdir())


def test_what_can_not_be_said_is_listed_with_its_place(repository: Path) -> None:
    lines = run_forked("import", ".claude/agents", cwd=repository).err.splitlines()

    assert lines[0] == "not converted, or converted to something else:"
    assert "  .claude/agents/reviewer.md:4: the tool `Telepathy` is unknown and left out" in lines
    assert (
        "  `color` is left out: it is for people (.claude/agents/reviewer.md:6, .claude/agents/team/writer.md:5)"
        in lines
    )
    assert any("`permissionMode: bypassPermissions` is left out" in line for line in lines)
    assert any("`hooks` are left out" in line for line in lines)
    assert "no agents: .claude/agents/guide.md" in lines


def test_importing_again_adds_what_is_new_and_overwrites_nothing(repository: Path) -> None:
    run_forked("import", ".", cwd=repository)
    (repository / "agents" / "writer.agent").write_text("---\nname: writer\n---\nMine.\n")
    before = (repository / "project.json").read_text()
    (repository / ".claude" / "agents" / "new.md").write_text(WRITER.replace("writer", "new"))

    ended = run_forked("import", ".", cwd=repository)

    assert (ended.code, ended.out) == (1, "agents/new.agent\n")
    assert "not imported: agents/writer.agent exists already, with another text" in ended.err
    assert "there already, with the same text: agents/reviewer.agent" in ended.err
    assert ended.err.splitlines()[-1] == "let an agent call them: toolsets: [new]"
    assert (repository / "agents" / "writer.agent").read_text() == "---\nname: writer\n---\nMine.\n"
    assert (repository / "project.json").read_text() == before


def test_an_existing_project_keeps_its_manifest_and_its_names(repository: Path) -> None:
    (repository / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "writer"}, "agent_files": ["own.agent"],'
        ' "toolsets": {"handy": {"type": "shell", "allow": ["ls *"]}}}'
    )
    (repository / "own.agent").write_text("---\nname: writer\ntoolsets: [handy]\n---\nMine.\n")

    ended = run_forked("import", ".claude", cwd=repository)

    assert (ended.code, ended.out) == (0, "agents/reviewer.agent\nagents/writer-2.agent\n")
    assert "it is called `writer-2`: there is a `writer` already" in ended.err
    assert "`Bash` became `shell_readonly`" in ended.err
    assert 'reviewer.md:5: `model: sonnet` is left to the project: add `"sonnet": ' in ended.err
    assert '"agent_files": ["agents/*.agent", ...]' in ended.err
    assert "handy" not in (repository / "agents" / "reviewer.agent").read_text()
    assert check(repository).code == 0


def test_tools_of_servers_that_the_project_has_come_along(repository: Path) -> None:
    (repository / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "searcher"}, "agent_files": ["agents/*.agent"],'
        ' "models": {"opus": "test"}, "toolsets": {"github": {"type": "mcp", "command": ["github-server"]}}}'
    )
    (repository / ".claude" / "agents" / "searcher.md").write_text(
        "---\nname: searcher\ndescription: Searches.\nmodel: opus\n"
        "tools: mcp__github__get_issue, mcp__github__list_issues, mcp__ghost\n---\nSearch.\n"
    )

    ended = run_forked("import", ".claude/agents/searcher.md", cwd=repository)

    assert "  github: {include: [get_issue, list_issues]}\n" in (repository / "agents" / "searcher.agent").read_text()
    assert "model: opus\n" in (repository / "agents" / "searcher.agent").read_text()
    assert "searcher.md:5: the tools of the MCP server `ghost` are left out" in ended.err
    assert "`github`" not in ended.err


def test_a_project_in_another_folder_is_made(repository: Path) -> None:
    ended = run_forked("import", ".claude/agents/team/writer.md", "--to", "new folder", cwd=repository)

    assert ended.out.splitlines() == ["agents/writer.agent", "project.json"]
    assert "llm-do check '" in ended.err
    assert json.loads((repository / "new folder" / "project.json").read_text())["entry"] == {"agent": "writer"}
    assert check(repository / "new folder").code == 0


def test_the_result_as_json_lists_files_refusals_and_notes(repository: Path) -> None:
    (repository / ".claude" / "agents" / "open.md").write_text("---\nname: open\nHelp.\n")

    ended = run_forked("import", ".", "--format", "json", cwd=repository)
    found = ended.json

    assert (ended.code, ended.err) == (1, "")
    assert found["written"] == ["agents/reviewer.agent", "agents/writer.agent", "agents/main.agent", "project.json"]
    assert found["refused"] == [
        {
            "file": ".claude/agents/open.md",
            "reason": "has a frontmatter that is never closed: a line --- is missing",
        }
    ]
    assert found["others"] == [".claude/agents/guide.md"]
    assert {"file": ".claude/agents/reviewer.md", "line": 6, "text": "`color` is left out: it is for people"} in found[
        "notes"
    ]


def test_what_can_not_be_read_is_refused_and_the_rest_is_imported(repository: Path) -> None:
    agents = repository / ".claude" / "agents"
    (agents / "latin.md").write_bytes(WRITER.encode().replace(b"Writes.", b"caf\xe9"))

    ended = run_forked("import", ".", cwd=repository)

    assert ended.code == 1
    assert "not imported: .claude/agents/latin.md can't be read: the file is not UTF-8: byte 0xe9" in ended.err
    assert "agents/reviewer.agent" in ended.out
    assert check(repository).code == 0


def test_links_out_of_a_folder_are_not_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text(WRITER.replace("writer", "secret"))
    (repository / ".claude" / "agents" / "link.md").symlink_to(tmp_path / "secret.md")

    ended = run_forked("import", ".", cwd=repository)

    assert "secret" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing"], "error: there is no missing. Name a Markdown file"),
        (["empty"], "error: no agents and no skills in empty. Name Markdown files"),
        (["guide.md"], "not imported: guide.md has no frontmatter between two lines ---\n"),
        ([], "error: Missing argument 'PATH'"),
    ],
)
def test_nothing_to_import_is_an_error(args: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "guide.md").write_text("# Guide\n")

    ended = run_forked("import", *args, cwd=tmp_path)

    assert ended.code == (1 if args == ["guide.md"] else 2)
    assert ended.err.startswith(message)
    assert ended.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "guide.md"]


def test_a_manifest_that_can_not_be_read_stops_the_import(repository: Path) -> None:
    (repository / "project.json").write_text("{")

    ended = run_forked("import", ".", cwd=repository)

    assert (ended.code, ended.out) == (2, "")
    assert "project.json can't be read" in ended.err
    assert not (repository / "agents").exists()


def test_what_a_file_wrote_reaches_the_terminal_escaped(repository: Path) -> None:
    (repository / ".claude" / "agents" / "evil.md").write_text(
        "---\nname: evil\x1b[2J\ndescription: x\ntools: Read, \x1b]0;x\x07\n---\nHelp.\n"
    )

    ended = run_forked("import", ".", cwd=repository)

    assert "\x1b" not in ended.err + ended.out
    assert check(repository).code == 0


@pytest.fixture
def skilled(repository: Path) -> Path:
    """The repository with two skills, one of them with files."""
    skills = repository / ".claude" / "skills"
    for name in ("letters", "dates"):
        (skills / name / "scripts").mkdir(parents=True)
        (skills / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Knows {name}.\n---\nDo it.\n")
    letters = skills / "letters"
    (letters / "scripts" / "sign.py").write_bytes(b"#!/usr/bin/env python3\n\xff")
    (letters / "scripts" / "sign.py").chmod(0o755)
    (letters / "passwords").symlink_to("/etc/passwd")
    (letters / "key.pem").write_text("secret")
    (letters / ".hidden").write_text("hidden")
    (skills / "away").symlink_to(repository.parent)
    return repository


def test_skills_come_along_with_their_files(skilled: Path) -> None:
    (skilled / ".claude" / "agents" / "clerk.md").write_text(
        "---\nname: clerk\ndescription: Writes letters.\ntools: Read\nskills: letters\n---\nWrite.\n"
    )
    ended = run_forked("import", ".", cwd=skilled)

    assert ended.code == 0
    assert {"skills/dates/SKILL.md", "skills/letters/SKILL.md", "skills/letters/scripts/sign.py"} < {*ended.out.split()}
    assert json.loads((skilled / "project.json").read_text())["skills"] == ["skills/*"]
    assert "skills: [skills/letters]" in (skilled / "agents" / "clerk.agent").read_text()
    copied = skilled / "skills" / "letters"
    assert sorted(path.name for path in copied.iterdir()) == ["SKILL.md", "scripts"]
    assert (copied / "scripts" / "sign.py").read_bytes() == b"#!/usr/bin/env python3\n\xff"
    assert (copied / "scripts" / "sign.py").stat().st_mode & 0o100
    assert "`passwords` is left out: it is a link out of the skill's folder" in ended.err
    assert "`key.pem` is left out: it may be a secret" in ended.err
    assert "4 agents and 2 skills; check and run the project with:" in ended.err
    assert check(skilled).err == "shop\nno errors\n"

    again = run_forked("import", ".", cwd=skilled)
    assert (again.code, again.out) == (0, "")


def test_skills_alone_become_a_project_with_one_agent(skilled: Path) -> None:
    ended = run_forked("import", str(skilled / ".claude" / "skills"), "--to", "desk", cwd=skilled)

    assert ended.code == 0
    assert "toolsets: [filesystem_project, commands, todo]" in (skilled / "desk" / "agents" / "main.agent").read_text()
    assert check(skilled / "desk").err == "desk\nno errors\n"
    one = run_forked("import", str(skilled / ".claude" / "skills" / "dates"), "--to", "one", cwd=skilled)
    assert one.out.split() == ["skills/dates/SKILL.md", "agents/main.agent", "project.json"]


def test_an_existing_project_is_told_how_to_use_skills(skilled: Path) -> None:
    (skilled / "project.json").write_text('{"version": 1, "entry": {"agent": "own"}, "agent_files": ["own.agent"]}')
    (skilled / "own.agent").write_text("---\nname: own\n---\nMine.\n")
    (skilled / "skills" / "dates").mkdir(parents=True)
    (skilled / "skills" / "dates" / "SKILL.md").write_text("mine")

    ended = run_forked("import", ".claude/skills", cwd=skilled)

    assert (ended.code, ended.out.split()) == (1, ["skills/letters/SKILL.md", "skills/letters/scripts/sign.py"])
    assert "not imported: skills/dates/SKILL.md exists already, with another text" in ended.err
    assert '"skills": ["skills/*", ...]' in ended.err
    assert (skilled / "skills" / "dates" / "SKILL.md").read_text() == "mine"


def test_a_link_to_a_skill_elsewhere_is_not_followed(repository: Path) -> None:
    elsewhere = repository.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text("---\nname: elsewhere\ndescription: d\n---\nGo.\n")
    (repository / ".claude" / "skills").mkdir()
    (repository / ".claude" / "skills" / "linked").symlink_to(elsewhere)

    ended = run_forked("import", ".", cwd=repository)
    assert ended.code == 1
    assert "not imported: .claude/skills/linked is a link out of the folder" in ended.err
    assert not (repository / "skills").exists()
