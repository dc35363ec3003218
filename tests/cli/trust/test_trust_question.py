"""The first run on a terminal in a folder that isn't trusted asks, and names what will run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.formats.lock_file import write_lock
from llm_do.runtime.approval import trusted_folders
from tests.cli.cli_processes import REPOSITORY, run_forked, write_project
from tests.cli.cli_terminal import Screen
from tests.cli.trust.hostile_clone import traces, write_hostile_clone

ASKED = "trust? "


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    root.mkdir()
    return write_hostile_clone(root)


def test_the_question_comes_first_and_names_what_will_run(clone: Path, terminal: Callable[..., Screen]) -> None:
    child = terminal("run", "hi", cwd=clone)
    child.wait(ASKED)

    assert traces(clone) == []
    shown = "\n".join(child.lines)
    assert child.lines[0] == "╭ this folder isn't trusted, and running it runs its Python code"
    assert str(clone) in "".join(line.removeprefix("│").strip() for line in child.lines[1:3])
    for expected in (
        "│ Python:\n│   linked.py\n│   tools.py\n│   unlisted.py",
        "│ Python that these can import:\n│   conftest.py\n│   helper.py",
        "and 6 more; s shows all",
        "│ starts the server: db: sh server.sh  (project.json:30)",
        "│ allowed too once you trust it:\n│   shell(touch *)  (.llm-do/approvals.json:1)\n│   *",
        "⋯ and",
        "│ allowed without asking you:\n│   sh: touch canary-shell  (project.json:37)\n│   shell(touch *)",
    ):
        assert expected in shown, shown
    assert child.lines[-2] == "t trust this folder and run   o run once   s show the code   n no"
    child.type("n\n")

    assert child.end() == 3
    assert "isn't trusted, and nothing of it has run. --trust runs it once" in " ".join(" ".join(child.lines).split())
    assert traces(clone) == []
    assert trusted_folders.load() == ()


def test_showing_the_code_shows_all_of_it(clone: Path, terminal: Callable[..., Screen]) -> None:
    child = terminal("check", cwd=clone)
    child.wait(ASKED)
    child.type("yes\n")  # not an answer: the choices are shown again
    child.wait(ASKED)
    child.type("s\n")
    child.wait("denies: ")
    for _ in range(2):
        child.type("\n")
        child.wait("denies: ")
    for text in ('    "Send."', "open('/", "server.sh:", "typer.py:"):
        assert text in child.raw, text
    child.type("\n")
    child.wait(ASKED)
    child.type("n\n")

    assert child.end() in (0, 3)
    assert "this folder isn't trusted" in " ".join(child.lines)
    assert traces(clone) == []


def test_lines_break_between_choices(clone: Path, terminal: Callable[..., Screen]) -> None:
    child = terminal("check", cwd=clone, columns=80)
    child.wait(ASKED)
    choices = ["t trust this folder and look   o look once   s show the code", "n no, only read its text"]
    assert child.lines[-3:-1] == choices
    child.type("n\n")
    assert child.end() in (0, 3)


def test_once_runs_and_is_forgotten_and_trust_is_kept(
    tmp_path: Path, terminal: Callable[..., Screen], state: dict[str, str | None]
) -> None:
    root = write_project(tmp_path / "project")
    inner = write_project(root / "inner")
    for answer in ("o\n", "t\n"):
        child = terminal("run", "hi", "--model", "script:answers.yaml", cwd=root)
        child.wait(ASKED)
        child.type(answer)
        child.wait("answer to hi")
        assert child.end() == 0
    assert [each.path for each in trusted_folders.load()] == [str(root)]

    for folder in (root, inner):
        child = terminal("run", "hi", "--model", "script:answers.yaml", cwd=folder)
        child.wait("answer to hi")
        assert child.end() == 0
        assert ASKED not in child.raw
    assert "isn't trusted" not in run_forked("check", cwd=root, env=state).err


def test_what_is_typed_before_the_question_answers_nothing_and_the_end_of_input_is_no(
    clone: Path, terminal: Callable[..., Screen]
) -> None:
    child = terminal("run", "hi", cwd=clone)
    child.type("t\n")
    child.wait(ASKED)
    child.type("\x04")

    assert child.end() == 3
    assert traces(clone) == []


def test_texts_of_the_project_cannot_act_on_the_terminal(tmp_path: Path, terminal: Callable[..., Screen]) -> None:
    root = tmp_path / "a\x1b[2Jb"
    root.mkdir()
    (root / "main.agent").write_text("---\nname: main\n---\nHelp.\n")
    (root / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "toolsets": '
        '{"db": {"type": "mcp", "command": ["x\\u001b[2J\\u202e", "' + "y" * 400 + '"]}}}'
    )
    child = terminal("run", "hi", cwd=root)
    child.wait(ASKED)

    shown = "".join(line.removeprefix("│ \\ ").removeprefix("│   ") for line in child.lines)
    assert child.lines[0] == "╭ this folder isn't trusted, and running it runs servers that it names"
    assert "a\\x1b[2Jb" in shown
    assert "db: x\\x1b[2J\\u202e yyy" in shown
    assert "more characters; s shows all]" in shown
    child.type("n\n")
    assert child.end() == 3


def test_a_home_folder_can_be_run_once_but_not_trusted(
    tmp_path: Path, terminal: Callable[..., Screen], state: dict[str, str | None]
) -> None:
    root = write_project(tmp_path / "home")
    state["HOME"] = str(root)
    child = terminal("run", "hi", "--model", "script:answers.yaml", cwd=root)
    child.wait(ASKED)
    assert child.lines[-2] == "o run once   s show the code   n no"
    child.type("t\n")
    child.wait(ASKED)
    child.type("o\n")
    child.wait("answer to hi")

    assert child.end() == 0
    assert trusted_folders.load() == ()


def test_without_a_terminal_a_run_runs(tmp_path: Path, state: dict[str, str | None]) -> None:
    root = write_project(tmp_path / "project")

    ended = run_forked("run", "hi", "--model", "script:answers.yaml", cwd=root, env=state)

    assert (ended.code, ended.out) == (0, "answer to hi\n")


def test_an_answer_beforehand_asks_nothing(tmp_path: Path, terminal: Callable[..., Screen]) -> None:
    root = write_project(tmp_path / "project")
    child = terminal("run", "hi", "--trust", "--model", "script:answers.yaml", cwd=root)
    child.wait("answer to hi")

    assert child.end() == 0
    assert ASKED not in child.raw
    assert trusted_folders.load() == ()


def test_a_project_without_code_is_never_asked_about(tmp_path: Path, terminal: Callable[..., Screen]) -> None:
    root = tmp_path / "agents"
    root.mkdir()
    (root / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [shell_readonly]\n---\nHelp.\n")
    (root / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "approvals": {"allow": ["shout"]}}'
    )
    child = terminal("check", cwd=root)

    assert child.end() == 0
    assert ASKED not in child.raw


def test_a_rule_that_allows_commands_is_asked_about_before_a_run_but_not_before_a_look(
    tmp_path: Path, terminal: Callable[..., Screen]
) -> None:
    root = tmp_path / "agents"
    root.mkdir()
    (root / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [sh]\n---\nHelp.\n")
    manifest = '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "toolsets": {"sh": %s}}'
    (root / "project.json").write_text(manifest % '{"type": "shell", "allow": ["touch canary"]}')
    child = terminal("check", cwd=root)
    assert child.end() == 0
    assert ASKED not in child.raw

    child = terminal("run", "hi", cwd=root)
    child.wait(ASKED)
    assert child.lines[0] == "╭ this folder isn't trusted, and running it runs commands that it allows"
    child.type("n\n")
    assert child.end() == 3


def test_a_database_that_a_run_would_contact_is_asked_about(tmp_path: Path, terminal: Callable[..., Screen]) -> None:
    root = tmp_path / "agents"
    root.mkdir()
    (root / "main.agent").write_text("---\nname: main\nmodel: test\n---\nHelp.\n")
    threads = {"store": "postgresql://app:${SOME_KEY}@127.0.0.1:9/runs"}
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "threads": threads}
    (root / "project.json").write_text(json.dumps(manifest))
    child = terminal("run", "hi", cwd=root)
    child.wait(ASKED)
    assert child.lines[0] == "╭ this folder isn't trusted, and running it contacts a database that it names"
    assert "keeps its records in: postgresql://app:${SOME_KEY}@127.0.0.1:9/runs" in "\n".join(child.lines)
    child.type("n\n")
    assert child.end() == 3


def test_what_a_lock_that_came_with_the_folder_allows_is_asked_about(
    tmp_path: Path, terminal: Callable[..., Screen]
) -> None:
    root = tmp_path / "locked"
    root.mkdir()
    (root / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [shell_file_ops]\n---\nHelp.\n")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"]}
    (root / "project.json").write_text(json.dumps(manifest))
    lock = write_lock({}, [{"agent": "main", "rule": "shell(touch canary)"}])
    (root / "llm-do.lock").write_text(lock)
    child = terminal("run", "hi", cwd=root)
    child.wait(ASKED)
    shown = "\n".join(child.lines)
    assert "shell(touch canary)" in shown
    assert "llm-do.lock:" in shown
    child.type("n\n")
    assert child.end() == 3


@pytest.mark.slow
def test_a_new_project_is_trusted_but_not_one_among_other_files(
    tmp_path: Path, terminal: Callable[..., Screen], state: dict[str, str | None]
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "helper.py").write_text("")
    for name in ("new", "old"):
        assert run_forked("init", name, "--template", "toolkit", cwd=tmp_path, env=state).code == 0

    assert [each.path for each in trusted_folders.load()] == [str(tmp_path / "new")]
    child = terminal("check", "new", cwd=tmp_path)
    assert child.end() == 0
    assert ASKED not in child.raw


@pytest.mark.slow
def test_an_example_of_the_checkout_that_llm_do_runs_from_is_never_asked_about(terminal: Callable[..., Screen]) -> None:
    child = terminal("check", "calculator", cwd=REPOSITORY / "examples")

    assert child.end() == 0
    assert ASKED not in child.raw


@pytest.mark.slow
def test_a_file_of_approvals_in_the_folder_is_part_of_the_question_and_moves_with_the_answer(
    tmp_path: Path, terminal: Callable[..., Screen], state: dict[str, str | None]
) -> None:
    root = write_project(tmp_path / "project")
    (root / ".llm-do").mkdir()
    found = root / ".llm-do" / "approvals.json"
    found.write_text('{"version": 1, "allow": ["main:send(to=ann)"]}')
    for answer in ("o\n", "t\n"):
        child = terminal("run", "hi", "--model", "script:answers.yaml", cwd=root)
        child.wait(ASKED)
        shown = "│ allowed too once you trust it: main:send(to=ann)  (.llm-do/approvals.json:1)"
        assert shown in "\n".join(child.lines)
        assert found.exists()
        child.type(answer)
        child.wait("answer to hi")
        assert child.end() == 0

    assert not found.exists()
    assert run_forked("approvals", "list", cwd=root, env=state).out.startswith("1 main:send(to=ann)  (")
