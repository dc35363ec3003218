from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import Ended, run_forked, write_project


@pytest.fixture
def llm_do(tmp_path: Path) -> Callable[..., Ended]:
    env = {"LLM_DO_TRUST": None, "XDG_STATE_HOME": str(tmp_path / "state")}
    return lambda *args, cwd=tmp_path: run_forked(*args, cwd=cwd, env=env)


def test_a_folder_is_trusted_shown_and_revoked(tmp_path: Path, llm_do: Callable[..., Ended]) -> None:
    root = write_project(tmp_path / "project")
    assert "isn't trusted" in llm_do("check", "project").err

    trusted = llm_do("trust", "project")
    shown = llm_do("trust", "--show")
    data = llm_do("trust", "--show", "project/main.agent", "--format", "json").json

    assert (trusted.code, trusted.err) == (0, f"trusted: {root}\n")
    assert shown.out.startswith(f"{root}  20")
    assert [(each["path"], each["exists"]) for each in data["trusted"]] == [(str(root), True)]
    assert "isn't trusted" not in llm_do("check", "project").err
    revoked = llm_do("trust", "--revoke", "project")
    assert (revoked.code, revoked.err) == (0, f"not trusted any longer: {root}\n")
    gone = llm_do("trust", "--show", "project")
    assert (gone.code, gone.out, gone.err) == (1, "", "project isn't trusted\n")
    assert llm_do("trust", "--show").err == "no folder is trusted\n"


def test_without_a_folder_it_is_the_current_project(tmp_path: Path, llm_do: Callable[..., Ended]) -> None:
    root = write_project(tmp_path / "project", manifest='{"version": 1, "entry": {"agent": "main"}, "agent_files": []}')
    (root / "inner").mkdir()

    assert llm_do("trust", cwd=root / "inner").err.splitlines() == ["project: ../project.json", f"trusted: {root}"]


def test_what_cannot_be_revoked_or_trusted_says_why(tmp_path: Path, llm_do: Callable[..., Ended]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    llm_do("trust", "a")

    below, never = llm_do("trust", "--revoke", "a/b"), llm_do("trust", "--revoke", "c")
    both, missing, root = llm_do("trust", "--show", "--revoke"), llm_do("trust", "c"), llm_do("trust", "/")
    nothing = llm_do("trust")

    assert {each.code for each in (below, never, both, missing, root, nothing)} == {2}
    assert f"It is below {tmp_path / 'a'}, which is." in below.err
    assert "`llm-do trust --show` lists those that are." in never.err
    assert "exclude each other" in both.err
    assert "can't be trusted" in missing.err
    assert "holds everything that you download" in root.err
    llm_do("trust", "a/b")
    assert f"warning: it is below {tmp_path / 'a'}, which still is" in llm_do("trust", "--revoke", "a/b").err
