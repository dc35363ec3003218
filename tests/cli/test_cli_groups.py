from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.cli_processes import run_many


def test_a_group_without_a_command_shows_its_help_and_not_an_error_in_one_line(project: Callable[..., Path]) -> None:
    root = project()
    ended = run_many({name: ([name], root, b"") for name in ("threads", "runs", "approvals")})

    for name, each in ended.items():
        assert (each.code, each.out) == (2, "")
        assert each.err.startswith(f"Usage: llm-do {name}")
        assert "..." not in each.err.partition("Commands:")[2]


def test_threads_and_runs_are_those_of_the_project_that_a_folder_belongs_to(project: Callable[..., Path]) -> None:
    root = project(
        manifest='{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["*.py"]}'
    )
    below = root / "notes" / "old"
    below.mkdir(parents=True)
    run_many({"run": (["run", ".", "hello", "--model", "test", "--thread", "t", "--reject-all"], root, b"")})

    ended = run_many(
        {
            "threads": (["threads", "list"], below, b""),
            "runs": (["runs", "list"], below, b""),
            "named": (["runs", "list", "-p", "../.."], below, b""),
        }
    )

    assert [each.code for each in ended.values()] == [0, 0, 0]
    assert ended["threads"].out.startswith("t  ")
    assert ended["runs"].out == ended["named"].out != ""


def test_a_project_given_as_an_argument_where_none_is_taken_is_told_the_option(project: Callable[..., Path]) -> None:
    root = project()
    ended = run_many(
        {
            "threads": (["threads", "list", "shop"], root, b""),
            "tools": (["tools", "shop"], root, b""),
            "schema": (["schema", "agent", "shop"], root, b""),
        }
    )

    assert [each.code for each in ended.values()] == [2, 2, 2]
    assert "The project is named with --project." in ended["threads"].err
    assert "another project is named with --project" in ended["tools"].err
    assert "--project" not in ended["schema"].err
