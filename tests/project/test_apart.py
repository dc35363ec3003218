"""Linking in a process of its own: what hangs, exits or crashes there is told, and the rest with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_do.errors import UsageError
from llm_do.project.apart import Checked, check_apart, diagnostic_of
from llm_do.spec.codes import diagnostic
from llm_do.spec.diagnostics import Place
from tests.project.conftest import Make, agent, manifest

TOOLS = "def add(a: int) -> int:\n    return a\nTOOLS = [add]\n"


def codes(report: Checked) -> list[tuple[str, str, int]]:
    return [(item.code, item.file, item.line) for item in report.diagnostics]


def project(tools: str = TOOLS, **files: object) -> Mapping[str, object]:
    named = {name.replace("__", "."): text for name, text in files.items()}
    return {
        "project.json": manifest(python_files=["*.py"]),
        "main.agent": agent("main", "tools: [add]"),
        "tools.py": tools,
        **named,
    }


def test_everything_else_is_told_beside_a_file_that_hangs_and_one_that_crashes(make: Make) -> None:
    root = make(
        project(
            a__py="import os\nos._exit(7)\n",
            b__py="import ctypes\n\ndef crash():\n    ctypes.string_at(0)\n\ncrash()\n",
            c__py="while True:\n    pass\n",
            d__py="import a\n",
            e__py="1 / 0\n",
            main__agent=agent("main", "tools: [add, sub]\nmodle: x"),
        )
    )
    report = check_apart(root, seconds=3)
    assert codes(report) == [
        ("LD311", "a.py", 2),
        ("LD311", "b.py", 4),
        ("LD310", "c.py", report.diagnostics[2].line),
        ("LD302", "e.py", 1),
        ("LD201", "main.agent", 3),
        ("LD120", "main.agent", 4),
    ]
    assert report.failed


def test_a_name_of_a_file_that_hangs_is_not_told_as_unknown(make: Make) -> None:
    report = check_apart(make(project(TOOLS + "import time\ntime.sleep(1000)\n")), seconds=2)
    assert codes(report) == [("LD310", "tools.py", 5)]


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os\nos._exit(0)", "it left with exit code 0"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "it was killed by SIGKILL"),
        ("import os\nos.abort()", "it crashed: aborted"),
        ("import os\nos.execv('/bin/true', ['true'])", "it left with exit code 0"),
    ],
)
def test_whatever_ends_the_process_is_told_at_its_file(make: Make, code: str, how: str) -> None:
    (found,) = check_apart(make(project(f"{TOOLS}{code}\n"))).diagnostics
    assert (found.code, found.file) == ("LD311", "tools.py")
    assert how in found.message


def test_a_file_that_hangs_when_its_exports_are_looked_at_is_told(make: Make) -> None:
    code = "import time\nclass Slow(dict):\n    def items(self):\n        time.sleep(1000)\nTOOLS = Slow()\n"
    report = check_apart(make({**project(code), "main.agent": agent("main")}), seconds=2)
    assert codes(report) == [("LD310", "tools.py", 4)]


def test_what_was_started_by_a_file_ends_with_the_check(make: Make, tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    code = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 2; touch {mark}'])\n"
    assert codes(check_apart(make(project(TOOLS + code)))) == []
    subprocess.run([sys.executable, "-c", "import time; time.sleep(2.5)"], check=True)
    assert not mark.exists()


def test_a_file_that_reads_from_stdin_finds_nothing_there(make: Make) -> None:
    (found,) = check_apart(make(project(TOOLS + "input()\n"))).diagnostics
    assert found.code == "LD302"
    assert "EOFError" in found.message


def test_what_a_file_prints_goes_to_stderr(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    assert codes(check_apart(make(project(TOOLS + "print('hello')\n")))) == []
    assert capfd.readouterr() == ("", "hello\n")


def test_a_module_in_the_working_directory_is_never_imported_instead_of_ours(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make({**project(), "json.py": "raise SystemExit(3)", "project.json": manifest(python_files=["tools.py"])})
    monkeypatch.chdir(root)
    assert codes(check_apart(Path())) == []


def test_a_project_without_python_files_is_linked_here(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    assert codes(check_apart(make({"main.agent": agent("main", "tools: [add]")}))) == [("LD201", "main.agent", 3)]


def test_a_task_gets_the_linked_project_in_either_place(make: Make) -> None:
    task = "llm_do.ui.graph:graph_data"
    apart = check_apart(make(project()), task)
    assert apart.data["entry"] == {"kind": "agent", "name": "main"}
    assert [tool["name"] for tool in apart.data["agents"][0]["tools"]] == ["add"]


def test_a_task_that_refuses_says_so_here(make: Make) -> None:
    with pytest.raises(UsageError, match="no agent 'mian'"):
        check_apart(make(project()), "llm_do.ui.toollist:tools_data", {"agent": "mian"})


def test_a_diagnostic_survives_the_way_through_json() -> None:
    found = diagnostic("LD201", "there is no tool `a`", Place("a.agent", 2, 3, 2, 4), "did you mean `b`?")
    assert diagnostic_of(found.to_dict()) == found
