"""The copy of a project that a case runs in: what is in it, where links lead, and that the project stays unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from llm_do.errors import LinkError
from llm_do.testing.cases.workspace import open_workspace
from tests.testing.cases.case_projects import desk, result

WRITES = """
tests:
  - name: keeps minutes
    input: Write the minutes.
    answer: once
    {copy}
    expect: {{files: {{out/minutes.md: {{}}}}}}
"""


def test_a_case_changes_a_copy_and_not_the_project(tmp_path: Path) -> None:
    root = desk(tmp_path, WRITES.format(copy="copy: project"))
    before = sorted(path.name for path in root.rglob("*"))
    assert result(root).status == "passed"
    assert sorted(path.name for path in root.rglob("*")) == before


def test_a_case_without_a_copy_runs_in_the_project(tmp_path: Path) -> None:
    root = desk(tmp_path, WRITES.format(copy="copy: none"))
    assert result(root).status == "passed"
    assert (root / "out/minutes.md").read_text() == "# Minutes\n- one\n"


def test_the_copy_has_the_projects_name_and_is_the_working_directory_meanwhile(tmp_path: Path) -> None:
    root = desk(tmp_path / "Büro 7", WRITES.format(copy=""))
    before = Path.cwd()
    with open_workspace(root, copies=True, agents={}) as workspace:
        assert (workspace.root.name, Path.cwd(), workspace.project.root) == ("Büro 7", workspace.root, workspace.root)
        assert workspace.root != root
    assert not workspace.root.exists()
    assert Path.cwd() == before


def test_state_history_and_recordings_are_not_copied(tmp_path: Path) -> None:
    left_out = [".git/config", ".llm-do/approvals.json", ".venv/x", "tests/cassettes/minutes/a.json", "a/__pycache__/x"]
    kept = [".env", "a/cassettes/b", "tests/minutes.test.yaml", ".hidden/c"]
    root = desk(tmp_path, WRITES.format(copy=""), files=dict.fromkeys([*left_out, *kept], "tests: [{name: x}]"))
    with open_workspace(root, copies=True, agents={}) as workspace:
        assert [name for name in left_out if (workspace.root / name).exists()] == []
        assert [name for name in kept if not (workspace.root / name).exists()] == []


def test_links_into_the_project_lead_into_the_copy_and_others_to_where_they_led(tmp_path: Path) -> None:
    root = desk(tmp_path / "desk", WRITES.format(copy=""))
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/rules.md").write_text("Be brief.")
    (root / "in").symlink_to("notes.txt")
    (root / "absolute").symlink_to(root / "notes.txt")
    (root / "out").symlink_to("../shared")
    (root / "gone").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    with open_workspace(root, copies=True, agents={}) as workspace:
        copy = workspace.root
        (copy / "in").write_text("changed")
        (copy / "absolute").write_text("changed again")
        assert (copy / "out/rules.md").read_text() == "Be brief."
        assert (copy / "gone").is_symlink()
        assert not (copy / "pipe").exists()
    assert (root / "notes.txt").read_text() == "Decided: one.\n"


def test_code_that_no_one_has_agreed_to_is_absent_from_the_copy(tmp_path: Path) -> None:
    new = {
        ".llm-do/unreviewed.json": json.dumps({"version": 1, "files": {"tools.py": "shell: make"}}),
        "tools.py": "x = 1",
    }
    root = desk(tmp_path, WRITES.format(copy=""), files=new)
    with open_workspace(root, copies=True, agents={}) as workspace:
        assert not (workspace.root / "tools.py").exists()


def test_a_variant_that_does_not_link_says_why(tmp_path: Path) -> None:
    broken = {"variants/strict.agent": "---\nname: secretary\nmodle: test\n---\n"}
    root = desk(tmp_path, WRITES.format(copy=""), files=broken)
    variant = open_workspace(root, copies=True, agents={"secretary": "variants/strict.agent"})
    with pytest.raises(LinkError, match=r"variants/strict.agent:3:1: unknown key `modle`"):
        variant.__enter__()


def test_a_project_of_one_file_is_copied_with_its_folder(tmp_path: Path) -> None:
    root = desk(tmp_path, WRITES.format(copy=""))
    (root / "project.json").unlink()
    with open_workspace(root / "secretary.agent", copies=True, agents={}) as workspace:
        assert workspace.project.entry.name == "secretary"
        assert (workspace.root / "notes.txt").exists()
