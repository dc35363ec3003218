"""Commands that only show something read a store that can't be written."""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_do.threads.sql import migrations
from tests.cli.cli_processes import BATCH, Ended, environment
from tests.support.runs import agent, runtime_of
from tests.support.scripted import script
from tests.threads.thread_support import on_thread

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders have no such rights there")

NOBODY = "65534"


@pytest.fixture
def project() -> Iterator[Path]:
    """Create a project with a recorded turn, in a folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "project.json").write_text('{"version": 1, "agent_files": ["main.agent"], "entry": {"agent": "main"}}')
        (root / "main.agent").write_text("---\nname: main\nmodel: test\n---\nHi.\n")
        on_thread(runtime_of([agent("main", script("fine"))], root=root), "hello")
        yield root
        protect(root, writable=True)


def protect(root: Path, *, writable: bool = False) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod((0o777 if writable else 0o555) if path.is_dir() else (0o666 if writable else 0o444))


def do(root: Path, *args: str) -> Ended:
    """Run a command as somebody who may write nothing."""
    return BATCH.run(args, root, b"", environment(NO_COLOR="1", TEST_AS_USER=NOBODY, HOME=str(root)))


def check_reading(root: Path) -> None:
    (run,) = json.loads(do(root, "runs", "list", "--json").out)
    assert run["status"] == "completed"
    assert "run_finished" in do(root, "runs", "show", run["run_id"], "--events").out
    assert "t  2 messages" in do(root, "threads", "list").out
    assert "assistant: fine" in do(root, "threads", "show", "t").out
    assert len(do(root, "threads", "export", "t").out.splitlines()) == 3
    assert do(root, "memory", "list").out == "nothing is remembered\n"


def test_a_store_that_can_only_be_read_is_shown(project: Path) -> None:
    before = (project / ".llm-do" / "state.db").read_bytes()
    protect(project)

    check_reading(project)

    refused = do(project, "threads", "set", "t", "history_limit=3")
    assert refused.code == 1
    assert "state.db can't be written: it is read-only" in refused.err
    assert (project / ".llm-do" / "state.db").read_bytes() == before


def test_a_store_that_somebody_else_is_writing_is_shown(project: Path) -> None:
    db = sqlite3.connect(project / ".llm-do" / "state.db", isolation_level=None)
    db.execute("UPDATE threads SET state = '{\"n\": 1}'")
    protect(project)

    check_reading(project)
    assert '"n": 1' in do(project, "threads", "show", "t").out
    db.close()


def test_an_older_store_is_migrated_in_memory(project: Path) -> None:
    path = project / ".llm-do" / "state.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("DROP INDEX runs_unended; DROP INDEX runs_used; ALTER TABLE runs DROP COLUMN tokens")
    db.executescript("DROP INDEX threads_head; DROP INDEX threads_branched; DROP TABLE memories")
    db.execute(f"PRAGMA user_version = {len(migrations.MIGRATIONS) - 4}")
    db.close()
    before = path.read_bytes()
    protect(project)

    check_reading(project)

    assert "it is read-only" in do(project, "threads", "delete", "t").err
    assert path.read_bytes() == before


def test_a_run_recalls_what_it_can_read_and_is_told_that_nothing_can_be_remembered(project: Path) -> None:
    (project / "main.agent").write_text("---\nname: main\nmodel: script:answers.yaml\ntoolsets: [memory]\n---\nHi.\n")
    note = "{name: remember, args: {text: %s, scope: project}}"
    for text, file in (("The first.", "first.yaml"), ("The second.", "answers.yaml")):
        turns = f"- tools: [{note % text}, {{name: recall, args: {{}}}}]\n"
        (project / file).write_text(turns.replace("}}, {", "}}]\n- tools: [{") + "- text: '{tool}'\n")
    protect(project, writable=True)
    allowing = ("run", ".", "hi", "--allow", "remember(project)", "--format", "json")
    assert do(project, *allowing, "--model", "script:first.yaml").code == 0
    protect(project)

    for more in ([], ["--user", "ann"]):
        result = json.loads(do(project, *allowing, *more).out)
        first, second = (
            message["parts"][0] for message in result["messages"] if message["parts"][0]["part_kind"] == "tool-return"
        )
        assert "The first." in str(second["content"])
        assert "The second." not in str(second["content"])
        assert "the memory can't be used" in str(first["content"])
        assert "is read-only" in str(first["content"])
