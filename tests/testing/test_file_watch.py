"""`FileWatch`: which changes it reports, and which it doesn't."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.testing.watching.file_watch import FileWatch


class Waits:
    """Waits by doing what others do in the meantime, one step at a time."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = list(steps)
        self.count = 0

    def __call__(self, seconds: float) -> None:
        assert seconds > 0.05
        self.count += 1
        if self.steps:
            self.steps.pop(0)()


def nothing() -> None:
    pass


def names(paths: set[Path], root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in paths)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/main.agent").write_text("one")
    (tmp_path / "notes.txt").write_text("notes")
    for path in tmp_path.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return tmp_path


def replace(path: Path, text: str) -> None:
    """Save as most editors do."""
    other = path.with_name(f".{path.name}.swp")
    other.write_text(text)
    other.replace(path)


@pytest.mark.parametrize(
    "save",
    [
        lambda path: path.write_text("other"),
        lambda path: replace(path, "two"),
        lambda path: path.unlink(),
        lambda path: os.utime(path, (2e9, 2e9)),
    ],
    ids=["written", "replaced", "deleted", "touched"],
)
def test_a_change_is_reported_once(root: Path, save: Callable[[Path], object]) -> None:
    watch = FileWatch(root, wait=nothing)
    save(root / "agents/main.agent")

    assert names(watch.changed(), root) == ["agents/main.agent"]
    assert watch.changed() == set()


def test_new_files_and_folders_are_seen(root: Path) -> None:
    watch = FileWatch(root, wait=nothing)
    (root / "tests/deep").mkdir(parents=True)
    (root / "tests/deep/a.test.yaml").write_text("tests: []")

    assert names(watch.changed(), root) == ["tests/deep/a.test.yaml"]
    (root / "tests/deep/b.test.yaml").write_text("tests: []")
    assert names(watch.changed(), root) == ["tests/deep/b.test.yaml"]
    (root / "tests").rename(root / "old")
    assert names(watch.changed(), root) == [
        "old/deep/a.test.yaml",
        "old/deep/b.test.yaml",
        "tests/deep/a.test.yaml",
        "tests/deep/b.test.yaml",
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("main.agent~", "#main.agent#", ".#main.agent", ".main.agent.swp", ".main.agent.swx", "4913", "a.tmp"),
        *("main.agent___jb_tmp___", ".goutputstream-X1", "__pycache__/a.pyc", ".git/index", ".llm-do/runs.db"),
        *("node_modules/x/index.js", "ignored/x.txt"),
    ],
)
def test_files_that_are_no_sources_are_not(root: Path, name: str) -> None:
    (root / ".gitignore").write_text("ignored/\n")
    watch = FileWatch(root, wait=nothing)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")

    assert watch.changed() == set()


def test_named_files_are_watched_wherever_they_are(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("elsewhere") / "answers.yaml"
    (root / ".gitignore").write_text("*.py\n")
    watch = FileWatch(root, [other], wait=nothing)
    other.write_text("turns: []")
    (root / "tools.py").write_text("")

    assert watch.changed() == {other}
    watch.watch_also([root / "tools.py"])
    assert watch.changed() == set()
    (root / "tools.py").write_text("TOOLS = []")
    assert names(watch.changed(), root) == ["tools.py"]


def test_saving_in_several_steps_is_one_change(root: Path) -> None:
    path = root / "agents/main.agent"
    waits = Waits(nothing, lambda: path.unlink(), lambda: path.write_text("two"), lambda: path.write_text("three"))

    changed = FileWatch(root, wait=waits).wait_for_changes()

    assert names(changed, root) == ["agents/main.agent"]
    assert waits.count == 5


def test_a_folder_that_is_away_for_a_moment_is_no_error(root: Path) -> None:
    away = root.with_name("away")
    watch = FileWatch(root, wait=nothing)
    root.rename(away)
    assert len(watch.changed()) == 2
    away.rename(root)

    assert names(watch.changed(), root) == ["agents/main.agent", "notes.txt"]
