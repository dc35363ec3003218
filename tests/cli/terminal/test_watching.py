"""`llm-do test --watch` in a real terminal: what it runs again, and how it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.cli_terminal import Screen

TESTS = """\
defaults: {model: "script:tests/answers.yaml"}
tests:
  - name: greets
    input: Ann
    expect: {output: {contains: Hello}}
"""
OTHER = TESTS.replace("greets", "others").replace("defaults: {", "defaults: {entry: other, ")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("main", "other"):
        (tmp_path / f"{name}.agent").write_text(f"---\nname: {name}\ndescription: greets\n---\nGreet.\n")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}
    (tmp_path / "project.json").write_text(json.dumps(manifest))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/answers.yaml").write_text('- text: "Hello, {input}!"\n')
    (tmp_path / "tests/a.test.yaml").write_text(TESTS)
    (tmp_path / "tests/b.test.yaml").write_text(OTHER)
    return tmp_path


def save(path: Path, text: str) -> None:
    """Save as most editors do: write another file, and rename it."""
    other = path.with_name(f".{path.name}.swp")
    other.write_text(text)
    other.replace(path)


@pytest.mark.slow
def test_a_change_runs_what_it_reaches_and_ctrl_c_ends_with_the_last_exit_code(root: Path) -> None:
    screen = Screen(["test", "-j", "1", "--watch"], root)
    screen.wait("2 passed")
    screen.wait("watching for changes")

    save(root / "tests/a.test.yaml", TESTS.replace("Hello", "Goodbye"))
    screen.wait("\x1b[H\x1b[2J")
    screen.wait("tests/a.test.yaml changed")
    screen.wait("1 failed")
    screen.wait("watching for changes")
    assert not any("tests/b.test.yaml" in line for line in screen.lines)

    save(root / "main.agent", "---\nname: main\ntools: [serch]\n---\nGreet.\n")
    screen.wait("main.agent changed")
    screen.wait("LD201")
    screen.wait("watching for changes")

    save(root / "main.agent", "---\nname: main\n---\nGreet them.\n")
    screen.wait("main.agent changed")
    screen.wait("1 failed")
    screen.wait("watching for changes")
    screen.type("\x03")

    assert screen.end() == 1


@pytest.mark.slow
def test_what_a_test_writes_into_the_project_is_no_change(root: Path) -> None:
    answers = [{"tools": [{"name": "write_file", "args": {"path": "out.txt", "content": "x"}}]}, {"text": "Hello"}]
    (root / "tests/answers.yaml").write_text(json.dumps(answers))
    (root / "main.agent").write_text("---\nname: main\ntoolsets: [filesystem_project]\n---\nGreet.\n")
    (root / "tests/a.test.yaml").write_text(TESTS.replace("defaults: {", "defaults: {copy: none, answer: once, "))
    (root / "tests/b.test.yaml").unlink()
    screen = Screen(["test", "-j", "1", "-w"], root)
    screen.wait("watching for changes")
    assert (root / "out.txt").exists()

    save(root / "tests/a.test.yaml", (root / "tests/a.test.yaml").read_text().replace("Hello", "Goodbye"))
    screen.wait("tests/a.test.yaml changed")
    screen.wait("1 failed")
    screen.wait("watching for changes")
    screen.type("\x03")

    assert screen.end() == 1
    assert "out.txt changed" not in screen.raw


@pytest.mark.slow
def test_nothing_to_run_and_no_tests_at_all_are_said_and_watched_on(root: Path) -> None:
    (root / "tests/cassettes").mkdir()
    screen = Screen(["test", "-j", "1", "--watch", "-k", "greets"], root)
    screen.wait("1 passed")
    screen.wait("watching for changes")

    (root / "tests/cassettes/old.json").write_text("{}")
    screen.wait("no test can be affected")
    screen.wait("watching for changes")
    save(root / "tests/b.test.yaml", OTHER.replace("Hello", "Goodbye"))
    screen.wait("no test can be affected")
    screen.wait("watching for changes")
    (root / "tests/a.test.yaml").unlink()
    screen.wait("no tests found")
    screen.wait("watching for changes")
    (root / "tests/a.test.yaml").write_text(TESTS)
    screen.wait("1 passed")
    screen.wait("watching for changes")
    screen.type("\x03")

    assert screen.end() == 0


@pytest.mark.slow
def test_ctrl_c_ends_a_run_and_the_watch(root: Path) -> None:
    resting = root.with_name(f"{root.name}.fifo")
    os.mkfifo(resting)
    (root / "tools.py").write_text(
        'import time\n\ndef rest() -> str:\n    """Rest."""\n'
        f"    open({str(resting)!r}, 'w').close()\n    time.sleep(60)\n    return 'x'\n\nTOOLS = [rest]\n"
    )
    (root / "main.agent").write_text("---\nname: main\ntools: [rest]\n---\nGreet.\n")
    (root / "project.json").write_text(
        json.dumps({"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]})
    )
    (root / "tests/answers.yaml").write_text(json.dumps([{"tools": [{"name": "rest", "args": {}}]}, {"text": "x"}]))
    (root / "tests/a.test.yaml").write_text(TESTS.replace("defaults: {", "defaults: {answer: once, "))
    screen = Screen(["test", "-j", "1", "--watch", "-k", "greets"], root)
    resting.read_text()
    screen.type("\x03")

    assert screen.end() == 130
    assert "watching for changes" not in screen.raw
