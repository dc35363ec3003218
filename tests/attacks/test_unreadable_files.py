"""Files of a folder that came from elsewhere: pipes, devices, files of gigabytes, and JSON of too many levels."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import llm_do
from llm_do._bounded_files import read_bounded, read_bounded_text
from llm_do.formats.syntax.source import read_text
from llm_do.models.providers.env_files import read_variables
from tests.cli.cli_processes import run_forked, write_project

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")

DEEP = "[" * 100_000 + "]" * 100_000

TESTS = "tests:\n- name: a\n  input: hi\n"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def deep(path: Path) -> None:
    path.write_text(DEEP, encoding="utf-8")


@pytest.mark.parametrize("plant", [pipe, device, sparse, loop, Path.mkdir], ids=lambda each: each.__name__)
def test_reading_neither_waits_nor_takes_memory(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    plant(tmp_path / "planted")

    for read in (read_bounded, read_bounded_text):
        with pytest.raises(OSError, match=r"ordinary|larger|symbolic links|directory"):
            read(tmp_path / "planted")


def test_reading_has_an_exact_bound_and_the_ends_of_lines_that_text_has(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\rthree\n")

    assert read_bounded(path, 15) == b"one\r\ntwo\rthree\n"
    assert read_bounded_text(path) == path.read_text(encoding="utf-8") == "one\ntwo\nthree\n"
    with pytest.raises(OSError, match="larger"):
        read_bounded(path, 14)


@pytest.mark.sample(12)
@pytest.mark.parametrize("plant", [pipe, device, sparse, deep], ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "name",
    [
        "project.json",
        "main.agent",
        "tools.py",
        "answers.yaml",
        "tests/a.test.yaml",
        "llm-do.lock",
        ".llm-do/unreviewed.json",
        ".llm-do/watch-000000000000.json",
        ".llm-do/servers.json",
        ".llm-do/approvals.json",
    ],
)
def test_looking_at_a_folder_ends_whatever_its_files_are(
    tmp_path: Path, name: str, plant: Callable[[Path], None]
) -> None:
    manifest = (
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"],'
        ' "model": "script:answers.yaml", "toolsets": {"kb": {"type": "mcp", "command": ["true"]}}}'
    )
    root = write_project(tmp_path / "p", manifest=manifest)
    (root / "tests").mkdir()
    (root / "tests" / "a.test.yaml").write_text(TESTS, encoding="utf-8")
    (root / ".llm-do").mkdir()
    (root / name).unlink(missing_ok=True)
    plant(root / name)

    ended = run_forked("check", str(root), "--text-only")

    assert ended.code in (0, 1, 2, 3)
    assert "itself failed" not in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err


ITS_OWN = {
    "_bounded_files.py": "it is what the others use",
    "_extras.py": "data of installed packages",
    "_startup/kept_file.py": "a file of this installation",
    "cli/actions/approvals/replay.py": "a file that a person names, which may be a pipe",
    "cli/actions/importing/import_action.py": "a file that is compared with the one to be written",
    "cli/actions/records/stored_threads.py": "a file that a person names, which may be a pipe",
    "cli/arguments/run_input.py": "stdin",
    "cli/process/signals.py": "the kernel's",
    "concurrency/lifeline.py": "the kernel's",
    "runtime/session/project_snapshots.py": "files that were linked, and so read before",
    "testing/reports/base_report.py": "a file that a person names, which may be a pipe",
    "toolsets/shell/sandbox/confinement.py": "the kernel's",
    "web/page_file.py": "a file of the package",
}
"""Modules that read whole files in another way, and why they may."""


def test_no_module_reads_a_whole_file_of_a_project_in_another_way() -> None:
    package = Path(llm_do.__file__).parent
    found: set[str] = set()
    for path in package.rglob("*.py"):
        source = path.read_bytes()
        if b"read_bytes" not in source and b"read_text" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("read_bytes", "read_text")
            ):
                found.add(path.relative_to(package).as_posix())

    assert found <= ITS_OWN.keys()


def test_one_module_says_where_the_home_folder_is() -> None:
    package = Path(llm_do.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any("Path.home()" in line and ">>>" not in line for line in path.read_text("utf-8").splitlines())
    }

    assert found == {"_home_folder.py"}  # it alone knows that a relative one leads into a project


@pytest.mark.parametrize("name", ["project.json", ".env"])
def test_a_file_that_becomes_a_pipe_once_it_was_looked_at_is_not_waited_for(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("A=1\n", encoding="utf-8")
    looked_at = os.stat(tmp_path / name)  # noqa: PTH116
    (tmp_path / name).unlink()
    pipe(tmp_path / name)
    stat = Path.stat
    swapped = tmp_path / name
    monkeypatch.setattr(Path, "stat", lambda self, **how: looked_at if self == swapped else stat(self, **how))

    assert read_text(swapped).text is None
    assert read_variables(tmp_path) == {}
