"""Files that a model would have read to it by attaching them to another agent's call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do import Runtime
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script

SECRETS = [".env", "id_rsa", "./a/../.env", "plain.txt", "deep/.ssh/config", ".llm-do/state.db"]
"""`plain.txt` is a link to `.env`."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (".env", "id_rsa", "deep/.ssh/config", ".llm-do/state.db", "kept/a.txt", "open.txt", "a/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}")
    (tmp_path / "plain.txt").symlink_to(".env")
    (tmp_path / "way").symlink_to("kept")
    return tmp_path


def heard_by_reader(root: Path, attachments: list[str], **options: Any) -> str:
    """Everything that an agent is sent whose call attaches files, and what its caller is told."""
    heard: list[str] = []

    def read(messages: Any, _: Any) -> str:
        parts = [part for message in messages for part in message.parts]
        contents = [each for part in parts for each in (part.content if isinstance(part.content, list) else [])]
        heard.extend(str(getattr(each, "data", each)) for each in contents)
        return "read"

    def told(messages: Any, _: Any) -> str:
        heard.append(str(messages[-1].parts[0].content))
        return "done"

    main = agent("main", script([call("reader", input="Read.", attachments=attachments)], told), toolsets=["reader"])
    project = project_of([main, agent("reader", script(read))], root=root, record=False)
    result = carry_out(Runtime(project, approvals="approve_all", **options))
    assert result.status == "completed", result.error
    return " ".join(heard)


@pytest.mark.parametrize("path", SECRETS)
def test_no_secret_is_attached(root: Path, path: str) -> None:
    found = heard_by_reader(root, ["open.txt", path])
    assert "content of" not in found
    assert "secrets" in found or ".llm-do" in found


def test_rules_about_reading_hold_for_what_is_attached(root: Path) -> None:
    deny = ["files.read(kept/**)"]
    for paths in (
        ["kept/a.txt"],
        ["open.txt", "kept/a.txt"],
        ["way/a.txt"],
        ["./a/../kept/a.txt", "open.txt"],
        ["KEPT/a.txt"],
    ):
        found = heard_by_reader(root, paths, deny=deny)
        assert "is denied by the rule files.read(kept/**)" in found, paths
        assert "content of" not in found
    assert "content of open.txt" in heard_by_reader(root, ["open.txt"], deny=deny)
    assert "content of kept/a.txt" in heard_by_reader(
        root, ["kept/a.txt"], deny=["files.read(open.txt)", "files.write(kept/**)"]
    )
