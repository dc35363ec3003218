"""`llm-do test --watch` in a real terminal: what it runs again, and how it ends."""

from __future__ import annotations

import json
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
