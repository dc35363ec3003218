"""A database that a folder's manifest names is contacted only if the folder is trusted."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked
from tests.support.tables import each_row

COMMANDS = {
    "doctor": ["doctor"],
    "check": ["check"],
    "graph": ["graph", "--permissions"],
    "tools": ["tools"],
    "lock": ["lock"],
    "dry run": ["run", "--dry-run"],
    "explain": ["approvals", "explain", "shell", "ls"],
    "replay": ["approvals", "replay"],
    "pending": ["approvals", "pending"],
    "answer": ["approvals", "answer", "a.1", "allow"],
    "runs list": ["runs", "list"],
    "runs show": ["runs", "show", "last"],
    "runs costs": ["runs", "costs"],
    "threads list": ["threads", "list"],
    "threads show": ["threads", "show", "a"],
    "threads delete": ["threads", "delete", "a", "--yes"],
    "threads export": ["threads", "export", "a"],
}
"""Commands that look at a project, or at what it has recorded."""

REFUSES = ("replay", "pending", "answer", "runs list", "threads list")


class Listener:
    """A port of this machine that counts who comes, and hangs up."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.contacts = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:
                return
            self.contacts += 1
            found.close()

    def close(self) -> None:
        """Take no more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def strange(tmp_path: Path, listener: Listener) -> Path:
    """A folder of agents alone, whose manifest names a database and would tell it a key."""
    pytest.importorskip("psycopg")
    root = tmp_path / "strange"
    root.mkdir()
    store = f"postgresql://app:${{SOME_KEY}}@127.0.0.1:{listener.port}/runs?connect_timeout=5"
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "threads": {"store": store}}
    (root / "project.json").write_text(json.dumps(manifest))
    (root / "main.agent").write_text("---\nname: main\nmodel: test\n---\nHelp.\n")
    return root


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str | None]:
    return {"LLM_DO_TRUST": None, "XDG_STATE_HOME": str(tmp_path / "state"), "SOME_KEY": "secret"}


@pytest.mark.slow
@each_row("name", COMMANDS)
def test_no_command_that_looks_contacts_a_strange_folders_database(
    name: str, strange: Path, state: dict[str, str | None], listener: Listener
) -> None:
    ended = run_forked(*COMMANDS[name], cwd=strange, env=state)

    assert listener.contacts == 0
    assert "Traceback" not in ended.err
    if name in REFUSES:
        assert ended.code == 3
        assert "isn't trusted, and the database that it names was not contacted" in ended.err
        assert "`llm-do trust .` trusts it; LLM_DO_TRUST=1 does so for one command" in ended.err.replace("\n", " ")


def test_the_doctor_says_what_it_has_not_looked_at(
    strange: Path, state: dict[str, str | None], listener: Listener
) -> None:
    found = json.loads(run_forked("doctor", "--format", "json", cwd=strange, env=state).out)["checks"]
    store = next(check for check in found if check["name"] == "store")
    assert (store["status"], store["found"]) == (
        "note",
        "a database (not contacted, because the folder isn't trusted)",
    )
    assert listener.contacts == 0


@pytest.mark.parametrize("name", ["doctor", "runs list"])
@pytest.mark.slow
def test_the_database_of_a_trusted_folder_is_contacted(
    name: str, strange: Path, state: dict[str, str | None], listener: Listener
) -> None:
    run_forked(*COMMANDS[name], cwd=strange, env={**state, "LLM_DO_TRUST": "1"})
    assert listener.contacts > 0

    before = listener.contacts
    assert run_forked("trust", cwd=strange, env=state).code == 0
    run_forked(*COMMANDS[name], cwd=strange, env=state)
    assert listener.contacts > before


def test_a_store_that_the_caller_names_is_used(strange: Path, state: dict[str, str | None], listener: Listener) -> None:
    ended = run_forked("runs", "list", "--store", f"postgresql://127.0.0.1:{listener.port}/a", cwd=strange, env=state)
    assert ended.code != 0
    assert "isn't trusted" not in ended.err
    assert listener.contacts > 0


def test_a_file_elsewhere_is_no_store_of_a_manifest(tmp_path: Path, state: dict[str, str | None]) -> None:
    (tmp_path / "other.db").write_text("mine")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": [], "threads": {"store": "../other.db"}}
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "project.json").write_text(json.dumps(manifest))
    ended = run_forked("runs", "list", cwd=tmp_path / "strange", env=state)
    assert (ended.code, "is neither `sqlite`, `memory` nor the URL" in ended.err) == (2, True)
    assert (tmp_path / "other.db").read_text() == "mine"
