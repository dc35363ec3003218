"""Folders without any code that would take what is a person's own: their files, and variables of their environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_do._startup.code_access import closed_folders
from llm_do.linker.linker import check_project

KEYS = {"type": "filesystem", "root": "../home", "read_only": True}
SENDS = {"type": "http", "base_url": "https://a.example/", "headers": {"X-Key": "${HOME}"}}


def survey_of(root: Path, toolset: dict[str, Any], lists: str = "own") -> Any:
    root.mkdir(exist_ok=True)
    (root.parent / "home").mkdir(exist_ok=True)
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "toolsets": {"own": toolset}}
    (root / "project.json").write_text(json.dumps({**manifest, "approvals": {"allow": ["http_get"]}}))
    (root / "main.agent").write_text(f"---\nname: main\nmodel: test\ntoolsets: [{lists}]\n---\nHi.\n")
    with closed_folders("looks"):
        survey = check_project(root).survey
    assert survey is not None
    return survey


@pytest.mark.parametrize(
    ("toolset", "shown"),
    [
        (KEYS, "own: reads files in {home}"),
        ({**KEYS, "root": "link", "read_only": False}, "own: reads and changes files in {home}"),
        (SENDS, "own: sends X-Key: ${{HOME}} to https://a.example/"),
        ({"type": "http", "private": ["169.254.169.254"]}, "own: requests 169.254.169.254"),
        (
            {"type": "mcp", "url": "https://a.example/mcp", "headers": {"X-Key": "${HOME}"}},
            "own: sends X-Key: ${{HOME}} to https://a.example/mcp",
        ),
    ],
)
def test_what_reaches_beyond_the_folder_needs_trust(tmp_path: Path, toolset: dict[str, Any], shown: str) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "link").symlink_to("../home")
    survey = survey_of(tmp_path / "clone", toolset)
    assert survey.runs_something
    assert [each.text for each in survey.reaches] == [shown.format(home=(tmp_path / "home").resolve())]
    assert survey.reaches[0].place.startswith("project.json:")


def test_protected_files_that_are_only_read_need_trust_too(tmp_path: Path) -> None:
    survey = survey_of(tmp_path / "clone", {"type": "filesystem", "read_only": True, "allow_protected": [".env"]})
    assert survey.runs_something
    assert [each.text for each in survey.protected] == ["own: .env"]


def test_what_stays_in_the_folder_or_is_public_needs_none(tmp_path: Path) -> None:
    for toolset in (
        {"type": "filesystem", "root": "notes"},
        {"type": "http", "base_url": "https://a.example/", "headers": {"Accept": "text/plain"}},
        {"type": "memory"},
    ):
        assert not survey_of(tmp_path / "clone", toolset).runs_something


def test_the_working_directory_counts_unless_it_is_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clone" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    survey = survey_of(tmp_path / "clone", {"type": "memory"}, "filesystem_cwd_ro")
    assert [each.text for each in survey.reaches] == [f"filesystem_cwd_ro: reads files in {tmp_path.resolve()}"]
    monkeypatch.chdir(tmp_path / "clone" / "below")
    assert not survey_of(tmp_path / "clone", {"type": "memory"}, "filesystem_cwd_ro").runs_something


def test_what_the_folders_own_variables_make_of_a_server_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SERVER", "SERVER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "run.sh").write_text("echo theirs\n")
    (tmp_path / "clone" / ".env").write_text("SERVER=./run.sh\nSERVER_TOKEN=secret-0123456789\nHOME=/theirs\n")

    survey = survey_of(
        tmp_path / "clone", {"type": "mcp", "command": ["${SERVER}", "${SERVER_TOKEN}", "${HOME}", "${NONE:-x}"]}
    )

    assert [each.text for each in survey.servers] == ["own: ./run.sh ${SERVER_TOKEN} ${HOME} ${NONE:-x}"]
    assert [each.text for each in survey.programs] == ["run.sh"]


def test_the_environment_that_a_server_gets_is_shown_with_its_command(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "first.js").write_text("")
    env = {"NODE_OPTIONS": "--no-warnings --require=./first.js", "KEY": "${HOME}", "API_TOKEN": "sk-0123456789abcdef"}

    survey = survey_of(tmp_path / "clone", {"type": "mcp", "command": ["node", "--version"], "env": env})

    shown = "own: NODE_OPTIONS=--no-warnings --require=./first.js KEY=${HOME} API_TOKEN=... node --version"
    assert [each.text for each in survey.servers] == [shown]
    assert [each.text for each in survey.programs] == ["first.js"]
