"""The ticket desk and the release gate, against a model that doesn't behave."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from llm_do import Project, Runtime

Load = Callable[[str], Project]


def play_script(project: Project) -> tuple[Any, list[tuple[str, str]], list[str]]:
    """Run a project; return its result, how each call ended, and the result of each call."""
    runtime, ends, results = Runtime(project), [], []
    runtime.on(
        "tool_result", lambda event: (ends.append((event.tool_name, event.status)), results.append(str(event.result)))
    )
    return runtime.run_sync(), ends, results


def issues(file: Path) -> list[tuple[int, int, str]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("select id, priority, state from issues order by id").fetchall()


def test_the_clerk_uses_only_available_tools(example: Load) -> None:
    project = example("ticket_desk")
    before = issues(project.root / "tickets.db")

    result, ends, results = play_script(project)

    assert result.output == "Issue 3 of atlas has priority 1, and the project is closed."
    assert ends == [
        ("login", "failed"),
        ("select_project", "refused"),
        ("edit_issue", "refused"),
        ("list_issues", "refused"),
        ("login", "success"),
        ("login", "refused"),
        ("select_project", "refused"),
        ("select_project", "success"),
        ("list_issues", "success"),
        ("edit_issue", "refused"),
        ("edit_issue", "success"),
        ("close_project", "success"),
        ("edit_issue", "refused"),
    ]
    assert results[1] == "not run: login, called before it in the same response, did not succeed"
    assert "'mothballed' is not one of ['atlas', 'borealis']" in results[6]
    assert "4 is not one of [1, 3]" in results[9]
    assert result.toolkits["desk"].unlocked_states == {"logged_in", "selected", "closed"}
    assert result.toolkits["desk"].context["project"] == "atlas"
    assert not result.denials
    assert issues(project.root / "tickets.db") == before
    after = [(number, 1 if number == 3 else priority, state) for number, priority, state in before]
    assert issues(project.root / "out" / "tickets.db") == after


def test_a_second_run_starts_afresh_unless_it_continues_the_thread(example: Load) -> None:
    project = example("ticket_desk")
    first, again = (play_script(project) for _ in range(2))
    assert first[1] == again[1]

    kept = first[0].execution_context
    assert kept.toolkits["desk"].to_dict()["context"]["user"] == "ann"
    assert kept.toolkits["desk"].to_dict() == again[0].execution_context.toolkits["desk"].to_dict()


def test_the_changelog_waits_for_the_tests(example: Load) -> None:
    project = example("release_gate")

    result, ends, results = play_script(project)

    assert result.output == "Released 1.1.0: slugs have hyphens."
    assert ends == [
        ("changelog_edit_file", "refused"),
        ("tests_shell", "refused"),
        ("tests_shell", "success"),
        ("changelog_edit_file", "refused"),
        ("source_edit_file", "success"),
        ("tests_shell", "success"),
        ("source_edit_file", "success"),
        ("changelog_edit_file", "refused"),
        ("tests_shell", "success"),
        ("changelog_edit_file", "success"),
    ]
    assert "'exit_code': 1" in results[2]
    assert results[3] == "not run: tests_shell, called before it in the same response, did not succeed"
    assert results[7].endswith("it needs the state 'tests_passed', which tests_shell unlocks")
    changelog = (project.root / "release" / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog.count("## 1.1.0") == 1
    assert "Slugs have hyphens." in changelog
    assert not result.denials
