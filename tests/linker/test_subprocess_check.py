"""Linking in a subprocess: files that hang, exit or crash there are reported together with every other fault."""

from __future__ import annotations

import os
import select
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from llm_do.diagnostics.codes.names import unknown_name
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import UsageError
from llm_do.linker.subprocess_check import CheckResult, check_in_subprocess
from tests.linker.conftest import Make, agent, manifest, write_files

TOOLS = "def add(a: int) -> int:\n    return a\nTOOLS = [add]\n"


def codes(report: CheckResult) -> list[tuple[str, str, int]]:
    return [(item.code, item.file, item.line) for item in report.diagnostics]


def project(tools: str = TOOLS, **files: object) -> Mapping[str, object]:
    named = {name.replace("__", "."): text for name, text in files.items()}
    return {
        "project.json": manifest(python_files=["*.py"]),
        "main.agent": agent("main", "tools: [add]"),
        "tools.py": tools,
        **named,
    }


@pytest.mark.slow
def test_files_that_hang_or_exit_are_reported_with_every_other_fault(make: Make) -> None:
    root = make(
        project(
            a__py="import os\nos._exit(7)\n",
            c__py="import time\ndef sub(): ...\ntime.sleep(1000)\nTOOLS = [sub]\n",
            d__py="import a\n",
            e__py="1 / 0\n",
            main__agent=agent("main", "tools: [add, sub, mul]\nmodle: x"),
        )
    )
    report = check_in_subprocess(root, seconds=2)
    assert codes(report) == [
        ("LD311", "a.py", 2),
        ("LD310", "c.py", 3),
        ("LD302", "e.py", 1),
        ("LD201", "main.agent", 3),
        ("LD120", "main.agent", 4),
    ]
    assert report.failed
    assert "`mul`" in report.diagnostics[3].message  # and not `sub`, which the file that hangs may have


@pytest.mark.slow
def test_files_that_hang_and_crash_in_native_code_are_reported_together(make: Make) -> None:
    crash = "import ctypes\n\ndef crash():\n    ctypes.string_at(0)\n\ncrash()\n"
    report = check_in_subprocess(
        make(project(b__py=crash, c__py="while True:\n    pass\n", d__py="import b\n")), seconds=2
    )
    assert [(code, file) for code, file, _ in codes(report)] == [("LD311", "b.py"), ("LD310", "c.py")]
    assert report.diagnostics[0].line == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os\nos._exit(0)", "it left with exit code 0"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "it was killed by SIGKILL"),
        ("import os\nos.abort()", "it crashed: aborted"),
        ("import os\nos.execv('/bin/true', ['true'])", "it left with exit code 0"),
    ],
)
def test_a_file_that_ends_the_process_is_reported_by_name(make: Make, code: str, how: str) -> None:
    (found,) = check_in_subprocess(make(project(f"{TOOLS}{code}\n"))).diagnostics
    assert (found.code, found.file) == ("LD311", "tools.py")
    assert how in found.message


@pytest.mark.slow
def test_a_file_that_hangs_when_its_exports_are_read_is_reported(make: Make) -> None:
    code = "import time\nclass Slow(dict):\n    def items(self):\n        time.sleep(1000)\nTOOLS = Slow()\n"
    report = check_in_subprocess(make({**project(code), "main.agent": agent("main")}), seconds=2)
    assert codes(report) == [("LD310", "tools.py", 4)]


@dataclass(frozen=True)
class Lively:
    """The check of a project whose files read stdin, print, shadow a module and start a process, run in its folder."""

    report: CheckResult
    stderr: str
    line: int


@pytest.fixture(scope="module")
def lively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lively]:
    root = tmp_path_factory.mktemp("lively")
    os.mkfifo(root / "line")  # alive as long as its other end is open
    line = os.open(root / "line", os.O_RDONLY | os.O_NONBLOCK)
    write_files(
        root,
        {
            **project(),
            "project.json": manifest(python_files=["tools.py", "a.py", "b.py", "c.py"]),
            "a.py": "input()\n",
            "b.py": "import tools\nprint('hello')\n",
            "c.py": """
                import subprocess
                started = subprocess.Popen(
                    ["sh", "-c", "echo; sleep 60"], stdout=subprocess.PIPE, stderr=open("line", "wb")
                )
                started.stdout.readline()
                """,
            "json.py": "raise SystemExit(3)\n",
        },
    )
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as stderr:
        patch.chdir(root)
        ours = os.dup(2)
        os.dup2(stderr.fileno(), 2)
        try:
            report = check_in_subprocess(Path())
        finally:
            os.dup2(ours, 2)
            os.close(ours)
        stderr.seek(0)
        stderr_text = stderr.read().decode()
    yield Lively(report, stderr_text, line)
    os.close(line)


@pytest.mark.slow
def test_a_file_that_reads_stdin_gets_end_of_file(lively: Lively) -> None:
    (found,) = (item for item in lively.report.diagnostics if item.file == "a.py")
    assert found.code == "LD302"
    assert "EOFError" in found.message


@pytest.mark.slow
def test_output_of_a_file_goes_to_stderr(lively: Lively, capfd: pytest.CaptureFixture[str]) -> None:
    assert lively.stderr == "hello\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_modules_in_the_working_directory_never_shadow_ours(lively: Lively) -> None:
    assert [(code, file) for code, file, _ in codes(lively.report)] == [("LD302", "a.py")]


@pytest.mark.slow
def test_processes_started_by_a_file_end_with_the_check(lively: Lively) -> None:
    ended, _, _ = select.select([lively.line], [], [], 30)
    assert ended
    assert os.read(lively.line, 1) == b""


def test_a_project_without_python_files_is_linked_in_process(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    assert codes(check_in_subprocess(make({"main.agent": agent("main", "tools: [add]")}))) == [
        ("LD201", "main.agent", 3)
    ]


@pytest.mark.slow
def test_a_task_gets_the_linked_project_in_or_out_of_process(make: Make) -> None:
    task = "llm_do.ui.reports.project_graph:graph_data"
    check_files = check_in_subprocess(make(project()), task)
    assert check_files.data["entry"] == {"kind": "agent", "name": "main"}
    assert [tool["name"] for tool in check_files.data["agents"][0]["tools"]] == ["add"]


def test_a_dynamic_toolset_is_shown_under_its_listed_name(make: Make) -> None:
    from llm_do import Project
    from llm_do.ui.reports.tool_list import tools_data

    tools = (
        "from pydantic_ai.toolsets import ExternalToolset\n"
        "TOOLSETS = {'stock': ExternalToolset([]).approval_required(lambda ctx, tool, args: True)}\n"
    )
    folder = make({**project(), "tools.py": tools, "main.agent": agent("main", "toolsets: [stock]")})
    assert [each["open"] for each in tools_data(Project.load(folder))["agents"]] == [["stock"]]


@pytest.mark.slow
def test_an_error_of_a_task_is_raised_in_the_caller(make: Make) -> None:
    with pytest.raises(UsageError, match="no agent 'mian'"):
        check_in_subprocess(make(project()), "llm_do.ui.reports.tool_list:tools_data", {"agent": "mian"})


def test_a_diagnostic_survives_json() -> None:
    found = unknown_name("tool", "a", "did you mean `b`?").at(Location("a.agent", 2, 3, 2, 4))
    assert Diagnostic.from_dict(found.to_dict()) == found


@pytest.mark.slow
def test_a_keyboard_interrupt_raised_by_a_file_is_reported_like_any_fault(
    make: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    root = make(project(a__py="import b\n", b__py="def stop():\n    raise KeyboardInterrupt('enough')\nstop()\n"))

    report = check_in_subprocess(root)

    assert [(item.code, item.file, item.line) for item in report.diagnostics] == [("LD302", "b.py", 2)]
    assert "KeyboardInterrupt: enough" in report.diagnostics[0].message
    assert "Traceback" not in capfd.readouterr().err
