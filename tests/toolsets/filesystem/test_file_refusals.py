"""What a model may not touch, and the messages it gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.errors import ToolError
from llm_do.files.refusals import FileRefusedError
from tests.support.tables import each_row
from tests.toolsets.filesystem.support import Call


@pytest.mark.parametrize(
    ("name", "args", "why"),
    [
        ("read_file", {"path": "nothing"}, "nothing: there is no such file or folder"),
        ("read_file", {"path": "."}, "it is a folder, not a file"),
        ("read_file", {"path": "../x"}, "outside the root folder"),
        ("read_file", {"path": ".env"}, "secrets"),
        ("read_file", {"path": "x/server.PEM"}, "secrets"),
        ("list_files", {"path": "/etc"}, "outside the root folder"),
        ("list_files", {"pattern": "{a,b}" * 20}, "alternatives"),
        ("search_files", {"pattern": "x", "path": "nothing"}, "there is no such"),
        ("write_file", {"path": "~/.bashrc", "content": ""}, "home folder"),
        ("write_file", {"path": ".git/hooks/x", "content": ""}, "nothing may be written in .git"),
        ("write_file", {"path": ".GIT/hooks/x", "content": ""}, "nothing may be written in .git"),
        ("edit_file", {"path": ".llm-do/approvals.json", "old": "a", "new": "b"}, "nothing may be written in"),
        ("make_directory", {"path": "a/.git/x"}, "nothing may be written in .git"),
        ("move_file", {"source": ".env", "target": "env.txt"}, "secrets"),
        ("move_file", {"source": "x", "target": ".llm-do/x"}, "nothing may be written in"),
        ("delete_file", {"path": "id.key"}, "secrets"),
    ],
)
def test_a_refusal_is_one_sentence_with_the_reason(
    call: Call, project: Path, name: str, args: dict[str, str], why: str
) -> None:
    for path in (".env", "x/server.PEM", ".llm-do/approvals.json", "id.key"):
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text("a")
    before = sorted(project.rglob("*"))
    with pytest.raises(ToolError) as caught:
        call(name, **args)
    assert why in caught.value.message
    assert "\n" not in caught.value.message
    assert str(project) not in caught.value.message
    assert sorted(project.rglob("*")) == before


@each_row(
    "name, args, hint",
    [
        ("read_file", {"path": "sub"}, "List it instead."),
        ("write_file", {"path": "sub", "content": ""}, None),
        ("delete_file", {"path": "sub"}, None),
        ("move_file", {"source": "sub", "target": "other"}, None),
    ],
)
def test_only_who_reads_a_folder_is_told_to_list_it(
    call: Call, project: Path, name: str, args: dict[str, str], hint: str | None
) -> None:
    (project / "sub").mkdir(exist_ok=True)
    with pytest.raises(FileRefusedError, match="sub: it is a folder, not a file") as caught:
        call(name, **args)
    assert caught.value.hint == hint


def test_a_link_to_a_blocked_file_is_blocked(call: Call, project: Path) -> None:
    (project / ".env").write_text("secret")
    (project / "harmless.txt").symlink_to(".env")
    (project / "hooks").symlink_to(".git")
    (project / ".git").mkdir()
    with pytest.raises(FileRefusedError, match="secrets"):
        call("read_file", path="harmless.txt")
    with pytest.raises(FileRefusedError, match=r"\.git"):
        call("write_file", path="hooks/x", content="")
    assert "secret" not in call("search_files", pattern=".")
