"""What changes in a folder while a person reads the question whether it is trusted is asked about again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.linker.analysis.survey import Survey, Surveyed, file_digests
from llm_do.runtime.approval import trusted_folders
from tests.cli.cli_processes import write_project
from tests.cli.cli_terminal import Screen
from tests.cli.trust.hostile_clone import traces

ASKED = "trust? "

MANIFEST = '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}'


def write_python(root: Path) -> None:
    tools = root / "tools.py"
    tools.write_text('open("canary-tools", "w").close()\n' + tools.read_text())


def add_helper(root: Path) -> None:
    (root / "helper.py").write_text("")


def link_python(root: Path) -> None:
    write_python(root)
    (root / "tools.py").rename(root / "other")
    (root / "tools.py").symlink_to("other")


def start_server(root: Path) -> None:
    manifest = json.loads((root / "project.json").read_text())
    manifest["toolsets"] = {"db": {"type": "mcp", "command": ["touch", "canary-server"]}}
    (root / "project.json").write_text(json.dumps(manifest))


def allow_more(root: Path) -> None:
    (root / ".llm-do").mkdir(exist_ok=True)
    (root / ".llm-do" / "approvals.json").write_text('{"version": 1, "allow": ["send"]}')


CHANGES = (write_python, add_helper, link_python, start_server, allow_more)


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("command", [("run", "hi"), ("check",)], ids=lambda each: each[0])
def test_what_changes_while_the_question_is_read_is_asked_about_again(
    tmp_path: Path, terminal: Callable[..., Screen], command: tuple[str, ...], change: Callable[[Path], None]
) -> None:
    root = write_project(tmp_path / "project", manifest=MANIFEST)
    child = terminal(*command, cwd=root)
    child.wait(ASKED)
    change(root)
    child.type("t\n")
    child.wait("the folder has changed since it was asked about; this is how it is now")
    child.wait(ASKED)

    assert traces(root) == []
    assert trusted_folders.load() == ()
    child.type("n\n")
    assert child.end() == (3 if command[0] == "run" else 0)
    assert traces(root) == []
    assert trusted_folders.load() == ()


def test_a_manifest_that_is_gone_when_the_question_is_answered_opens_nothing(
    tmp_path: Path, terminal: Callable[..., Screen]
) -> None:
    root = write_project(tmp_path / "project", manifest=MANIFEST)
    write_python(root)
    child = terminal("run", "hi", cwd=root)
    child.wait(ASKED)
    (root / "project.json").write_text("{")
    child.type("t\n")

    assert child.end() == 3
    assert traces(root) == []
    assert trusted_folders.load() == ()


def test_a_change_of_a_file_that_is_too_large_to_read_is_noticed(tmp_path: Path) -> None:
    program = tmp_path / "server"
    with program.open("wb") as stream:
        stream.truncate(64 * 1024 * 1024)
    seen = Survey(tmp_path, programs=(Surveyed("server"),))
    before, times = file_digests(seen), program.stat()
    assert file_digests(seen) == before

    with program.open("r+b") as stream:
        stream.write(b"#!")
    os.utime(program, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert file_digests(seen) != before
