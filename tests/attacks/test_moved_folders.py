"""Paths that need approval can't be reached by moving the folder that contains them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do.formats.toolset_config import ShellConfig
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.shell import configured, shell_file_ops
from tests.toolsets.shell.support import decision


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/deep/tools.py", "evil/tools.py", "agents/a.agent", "plain/note.txt", "many/.llm-do/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / "link").symlink_to("agents")
    return tmp_path


def summary(root: Path, command: str, *, any_command: bool) -> str:
    given = BuiltinContext("shell", root, root, [root / "src/deep/tools.py", root / "lib/tools.py"])
    toolset = configured(given, ShellConfig(type="shell")) if any_command else shell_file_ops(given)
    found = decision(toolset, command)
    return "person" if found.person_only else found.effect


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mv src old", "person"),
        ("mv ./src/ old", "person"),
        ("mv src/deep old", "person"),
        ("mv evil src/deep", "person"),
        ("mv -T evil lib", "person"),
        ("mv evil lib", "person"),
        ("mv plain evil lib", "person"),
        ("mv agents other", "person"),
        ("mv agents ../other", "person"),
        ("mv src ../other", "person"),
        ("mv agents plain/note.txt", "person"),
        ("mv plain ../other", "ask"),
        ("mv plain agents", "ask"),
        ("mv plain other", "ask"),
        ("mv link other", "ask"),
        ("mv missing other", "ask"),
    ],
)
def test_a_folder_stands_for_its_content(root: Path, command: str, expected: str) -> None:
    assert summary(root, command, any_command=False) == expected
    assert summary(root, command, any_command=True) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rm -r src", "person"),
        ("rm -rf plain agents", "person"),
        ("rm -r plain", "ask"),
        ("cp -r evil/. lib", "person"),
        ("cp -rT evil lib", "person"),
        ("cp -t lib evil/tools.py", "person"),
        ("cp -tlib evil/tools.py", "person"),
        ("cp --target-directory=lib evil/tools.py", "person"),
        ("cp --target-directory lib evil/tools.py", "person"),
        ("cp evil/tools.py lib/", "person"),
        ("cp -t plain evil/tools.py", "person"),
    ],
)
def test_programs_that_write_are_decided_by_everything_they_reach(root: Path, command: str, expected: str) -> None:
    assert summary(root, command, any_command=True) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mv ../agents .", "person"),
        ("mv ../agents made", "person"),
        ("mv ../link made", "person"),
        ("mv ../evil/tools.py .", "person"),
        ("mv ../agents ../others", "ask"),
    ],
)
def test_a_folder_from_outside_needs_approval(root: Path, command: str, expected: str) -> None:
    assert summary(root / "plain", command, any_command=False) == expected


def test_a_folder_too_large_to_scan_needs_approval(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.toolsets.filesystem.protection._MOST_LOOKED_AT", 3)
    for number in range(4):
        (root / "plain" / f"{number}").touch()
    assert summary(root, "mv plain other", any_command=False) == "person"


def test_a_folder_too_deep_to_scan_needs_approval(root: Path) -> None:
    at = os.open(root / "plain", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=at)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    assert summary(root, "mv plain other", any_command=False) == "person"


def test_many_files_at_once_need_approval(root: Path) -> None:
    many = " ".join(f"{'./' * number}plain" for number in range(60))
    assert summary(root, f"mv {many} other", any_command=False) == "person"
