"""Continuing a run that is recorded in a folder is asked about, since what is recorded may be code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked
from tests.cli.cli_terminal import Screen

ASKED = "trust? "


IMPORTED = """\
from pathlib import Path

Path("canary").touch()


def send(to: str) -> str:
    \"\"\"Send a text.\"\"\"
    return to


TOOLS = [send]
"""


@pytest.fixture
def recorded(tmp_path: Path, state: dict[str, str | None]) -> Path:
    """A folder of agents alone, with a record of a run that began with Python code and waits for an answer."""
    root = tmp_path / "recorded"
    root.mkdir()
    (root / "main.agent").write_text("---\nname: main\nmodel: script:answers.yaml\ntools: [send]\n---\nHelp.\n")
    (root / "answers.yaml").write_text("- tools: [{name: send, args: {to: ann}}]\n- text: done\n")
    (root / "tools.py").write_text(IMPORTED)
    assert run_forked("run", "hi", "--durable", "--run-id", "one", cwd=root, env=state).code == 5
    (root / "main.agent").write_text("---\nname: main\nmodel: script:answers.yaml\n---\nHelp.\n")
    for name in ("tools.py", "canary"):
        (root / name).unlink()
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["resume", "one", "--as-begun"],
        ["resume", "one", "--accept-changes"],
        ["worker", "--exit-when-empty"],
        ["serve", "--port", "0", "--no-browser"],
    ],
    ids=" ".join,
)
def test_a_record_that_came_with_the_folder_is_asked_about_before_its_run_is_continued(
    recorded: Path, command: list[str], terminal: Callable[..., Screen]
) -> None:
    child = terminal(*command, cwd=recorded)
    child.wait(ASKED)
    assert child.lines[0] == "╭ this folder isn't trusted, and running it continues what is recorded in it"
    assert "continues by the answers and files that are recorded in: .llm-do/state.db" in "\n".join(child.lines)
    child.type("n\n")
    assert child.end() == 3
    assert not (recorded / "canary").exists()


def test_resuming_as_begun_imports_the_code_of_then_where_the_folder_may_run(
    recorded: Path, state: dict[str, str | None]
) -> None:
    ended = run_forked("resume", "one", "--as-begun", cwd=recorded, env=state)

    assert ended.code == 5, ended.err
    assert (recorded / "canary").exists()
    assert "waits" in ended.err or "answer is needed" in ended.err


def test_a_run_of_a_trusted_folder_is_continued_without_a_question(
    recorded: Path, state: dict[str, str | None], terminal: Callable[..., Screen]
) -> None:
    assert run_forked("trust", cwd=recorded, env=state).code == 0
    child = terminal("resume", "one", "--as-begun", "--reject-all", cwd=recorded)
    assert child.end() == 0
    assert ASKED not in child.raw
    assert (recorded / "canary").exists()
