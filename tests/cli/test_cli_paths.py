"""Paths in diagnostics are relative to the current folder, so that terminals and GitHub find the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.cli_processes import run_forked, run_many, write_project

BROKEN = "---\nname: main\nmodle: x\n---\nHelp.\n"


def write(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "main.agent").write_text(BROKEN, encoding="utf-8")
    return folder


def test_paths_are_relative_to_the_current_folder_and_absolute_elsewhere(tmp_path: Path) -> None:
    project, other = write(tmp_path / "sub" / "pro ject"), tmp_path / "other"
    other.mkdir()

    ended = run_many(
        {
            "github": (["check", "sub/pro ject", "--format", "github"], tmp_path, b""),
            "sarif": (["check", "sub/pro ject", "--format", "sarif"], tmp_path, b""),
            "text": (["check", "sub/pro ject/main.agent"], tmp_path, b""),
            "inside": (["check"], project, b""),
            "elsewhere": (["check", str(project)], other, b""),
            "data": (["check", "sub/pro ject", "--format", "json"], tmp_path, b""),
            "graph": (["graph", "sub/pro ject"], tmp_path, b""),
        }
    )

    assert {name: done.code for name, done in ended.items()} == dict.fromkeys(ended, 3)
    assert ended["github"].out.startswith("::error file=sub/pro ject/main.agent,line=3,")
    assert '"uri": "sub/pro%20ject/main.agent"' in ended["sarif"].out
    assert ended["text"].out.startswith("sub/pro ject/main.agent:3:1: error[LD120]")
    assert ended["inside"].out.startswith("main.agent:3:1: error[LD120]")
    assert ended["elsewhere"].out.startswith(f"{project.resolve()}/main.agent:3:1: error[LD120]")
    assert ended["graph"].err.startswith("sub/pro ject/main.agent:3:1: error[LD120]")
    assert json.loads(ended["data"].out)["diagnostics"][0]["file"] == "main.agent"
    for name in ("text", "inside", "elsewhere", "graph"):
        assert "3 | modle: x" in ended[name].out + ended[name].err


def test_a_project_above_the_current_folder_is_named(project: Callable[..., Path], tmp_path: Path) -> None:
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "python_files": ["tools.py"]}
    root = project("- text: hello", manifest=json.dumps({**manifest, "model": "script:answers.yaml"}))
    below = root / "deep" / "er"
    below.mkdir(parents=True)
    calls = {
        "above": ("run hi", below),
        "quiet": ("run hi -q", below),
        "here": ("run hi", root),
    }
    ended = {
        name: run_forked(*words.split(), cwd=cwd, env={"HOME": str(tmp_path.parent)})
        for name, (words, cwd) in calls.items()
    }

    assert {name: each.out or each.err for name, each in ended.items()} == dict.fromkeys(ended, "hello\n")
    assert ended["above"].err.startswith("project: ../../project.json\n")
    assert [name for name, each in ended.items() if "project:" in each.err] == ["above"]


def test_a_folder_named_by_a_tilde_is_not_the_home_folder(tmp_path: Path) -> None:
    write_project(tmp_path / "~")
    ended = run_forked("run", "./~", "hello", cwd=tmp_path)

    assert (ended.code, ended.out) == (0, "answer to hello\n"), ended.err
