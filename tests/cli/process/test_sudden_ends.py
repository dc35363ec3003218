"""However the process ends, killed or its terminal closed, nothing that it has started keeps running."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.concurrency.lifeline import MARK, find_marked
from llm_do.toolsets.shell.sandbox import command_sandbox
from tests.cli.cli_processes import run_forked, write_project
from tests.cli.cli_terminal import Screen, start_process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are listed in /proc")

SERVER = Path(__file__).parents[2] / "toolsets" / "mcp_servers" / "plain_server.py"

TOOLS = '''\
import os, subprocess, sys, time
from pathlib import Path


def spawn() -> str:
    """Start processes in every way that leaves them to themselves."""
    subprocess.Popen(["sleep", "300"])
    subprocess.Popen(["sleep", "301"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "setsid sleep 302 & setsid sleep 303 &"])
    ignoring = "import signal, time; signal.signal(15, 1); signal.signal(1, 1); time.sleep(304)"
    subprocess.Popen([sys.executable, "-c", ignoring], start_new_session=True)
    Path("begun").write_text(os.environ["LLM_DO_LIFELINE"])
    time.sleep(300)
    return "never"


TOOLS = [spawn]
'''

AGENT = "---\nname: main\nmodel: script:answers.yaml\ntools: [spawn]\ntoolsets: [commands, server]\n---\nGo.\n"

ANSWERS = """\
- tools:
    - {name: shell, args: {command: "sh -c 'touch ready; sleep 305; true'"}}
    - {name: spawn}
- text: never
"""


SERVER_CALL = "    - {name: server_whoami}\n"
"""Importing the client of servers takes seconds."""


def busy_project(root: Path, *, server: bool = False) -> Path:
    """A project whose run has a command, a tool with processes of its own, and perhaps a server."""
    manifest = {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent"],
        "python_files": ["tools.py"],
        "toolsets": {
            "commands": {"type": "shell"},
            "server": {"type": "mcp", "command": [sys.executable, str(SERVER)], "timeout": 60},
        },
    }
    answers = ANSWERS.replace("- tools:\n", f"- tools:\n{SERVER_CALL}") if server else ANSWERS
    agent = AGENT if server else AGENT.replace(", server]", "]")
    return write_project(root, answers, agent=agent, manifest=json.dumps(manifest), **{"tools.py": TOOLS})


def started(root: Path, expected: int = 1) -> str:
    """Wait until the run's processes have been started, those of its command too; return their mark."""
    begun, ready = root / "begun", root / "ready"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # The number alone may be that of processes which end at once.
        is_begun = begun.exists() and ready.exists()
        if is_begun and (token := begun.read_text()) and len(find_marked(f"{MARK}={token}")) >= expected:
            return f"{MARK}={token}"
        time.sleep(0.01)
    raise AssertionError(f"it hasn't begun: {sorted(path.name for path in root.iterdir())}")


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary directory of the runs."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def left_behind(temporary: Path) -> list[Path]:
    """Wait until the temporary directory is empty; return what stays there."""
    deadline = time.monotonic() + 60
    while (found := list(temporary.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def left_running(mark: str) -> list[int]:
    """Wait until nothing with the mark runs; return what still does."""
    deadline = time.monotonic() + 30
    while (found := find_marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


RUN = ["run", "x", "--approve-all"]
PROCESSES = 7
"""The command's `sh` and `sleep`, and five of the tool."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_signal_leaves_nothing_running_and_no_temporary_folder(tmp_path: Path, temporary: Path, number: int) -> None:
    ends_everything(busy_project(tmp_path), number, PROCESSES, temporary)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_server_running(tmp_path: Path, temporary: Path, number: int) -> None:
    ends_everything(busy_project(tmp_path, server=True), number, PROCESSES + 1, temporary)


def ends_everything(root: Path, number: int, processes: int, temporary: Path) -> None:
    """Send a busy run a signal, and check that all of its processes end and its temporary folders are removed."""
    process = start_process(RUN, root)
    mark = started(root, processes)
    assert bool(list(temporary.iterdir())) == command_sandbox.status().active

    process.send_signal(number)
    process.communicate(timeout=30)

    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert left_running(mark) == []
    assert left_behind(temporary) == []


def close_terminal(root: Path) -> str:
    """Close the terminal of a busy run; return what marks its processes."""
    screen = Screen([*RUN, "-q"], root)
    mark = started(root, PROCESSES)
    assert screen.hang_up() == 128 + signal.SIGHUP
    return mark


def test_a_closed_terminal_leaves_nothing_running_and_the_run_is_recorded(tmp_path: Path) -> None:
    root = busy_project(tmp_path)
    assert left_running(close_terminal(root)) == []
    assert "interrupted" in run_forked("runs", "list", cwd=root).out


@pytest.mark.slow
def test_a_hundred_closed_terminals_leave_nothing_running(tmp_path: Path) -> None:
    for number in range(100):
        assert left_running(close_terminal(busy_project(tmp_path / str(number), server=number % 10 == 0))) == []


@pytest.mark.slow
def test_kills_at_any_moment_leave_nothing_running(tmp_path: Path) -> None:
    for number in range(100):
        root = busy_project(tmp_path / str(number), server=number % 10 == 0)
        process = start_process(RUN, root)
        if number % 2:
            started(root)
        time.sleep(random.random() * (0.3 if number % 2 else 2.0))
        process.kill()
        process.communicate(timeout=30)
        begun = root / "begun"
        if begun.exists() and (token := begun.read_text()):
            assert left_running(f"{MARK}={token}") == []
        deadline = time.monotonic() + 10
        while of_project(root) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert of_project(root) == []


def of_project(root: Path) -> list[str]:
    """Return the commands of processes that run in the project's folder."""
    found: list[str] = []
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and Path(entry.path, "cwd").readlink() == root:
                found.append(Path(entry.path, "cmdline").read_text())
        except OSError:
            continue
    return found


def test_what_a_tool_leaves_behind_stays_when_the_run_ends_in_order(project: Callable[..., Path]) -> None:
    tools = """\
    import os, subprocess
    from pathlib import Path

    def serve() -> str:
        \"\"\"Start a service that is meant to stay.\"\"\"
        away = subprocess.DEVNULL
        child = subprocess.Popen(["sleep", "300"], stdout=away, stderr=away, start_new_session=True)
        Path("child").write_text(str(child.pid))
        return "started"

    TOOLS = [serve]
    """
    agent = "---\nname: main\nmodel: script:answers.yaml\ntools: [serve]\n---\nGo.\n"
    root = project("- tools: [{name: serve}]\n- text: done\n", agent=agent, **{"tools.py": tools})
    process = start_process(["run", "x", "--approve-all"], root)
    out, _ = process.communicate(timeout=30)
    child = int((root / "child").read_text())
    try:
        assert (process.returncode, out) == (0, "done\n")
        time.sleep(0.3)  # a lifeline that took the end for a kill would have ended it
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


LINES = {
    "model": "- {text: late, delay: 60}",
    "blocked tool": "- tools: [{name: block, args: {seconds: 60}}]\n- text: never",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("model", signal.SIGINT),
        ("model", signal.SIGTERM),
        ("model", signal.SIGHUP),
        ("blocked tool", signal.SIGTERM),
    ],
)
def test_an_interrupted_run_says_so_in_one_line_where_no_terminal_shows_it(
    tmp_path: Path, what: str, number: signal.Signals
) -> None:
    root = write_project(tmp_path, LINES[what])
    process = start_process(["run", "x", "--approve-all", "-v"], root)
    assert process.stderr is not None
    assert process.stderr.readline() == "main: called with x\n"
    while what == "blocked tool" and not (root / "begun").exists():
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (128 + number, "")
    assert [line for line in err.splitlines() if "interrupted by" in line] == [f"interrupted by {number.name}"]


@pytest.mark.slow
def test_an_interrupted_wait_for_input_says_so_too(project: Callable[..., Path]) -> None:
    process = start_process(["run"], project(), stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("waiting for input on stdin")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (143, "", "interrupted by SIGTERM\n")


WAITING_TOOLS = '''\
import os, time
from pathlib import Path

HERE = Path({root!r})


def wait() -> str:
    """Wait for a file."""
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return "waited"


if {hangs}:
    wait()
TOOLS = [wait]
'''

WAITING_AGENT = "---\nname: main\nmodel: script:answers.yaml\ntools: [wait]\n---\nGo.\n"
WAITING_TEST = "tests:\n  - name: waits\n    input: x\n    expect: {output: {equals: done}}\n"


def waiting_command(kind: str, root: Path) -> list[str]:
    """A command that makes a temporary folder of a kind, in a project whose code waits for the file `go`."""
    tools = WAITING_TOOLS.format(root=str(root), hangs=kind == "check")
    answers = "- tools: [{name: wait}]\n- text: done\n"
    write_project(root, answers, agent=WAITING_AGENT, **{"tools.py": tools})
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}
    approvals = {"allow": ["wait"] if kind == "tests" else []}
    (root / "project.json").write_text(json.dumps({**manifest, "approvals": approvals}))
    if kind == "check":
        return ["check"]
    if kind == "tests":
        (root / "tests").mkdir()
        (root / "tests" / "main.test.yaml").write_text(WAITING_TEST)
        return ["test"]
    began = run_forked("run", "x", "--durable", "--run-id", "r", cwd=root)
    assert began.code == 5, began.err
    assert run_forked("approvals", "answer", "r.1", "allow", cwd=root).code == 0
    return ["resume", "r", "--as-begun"]


ENDS = [None, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("kind", ["check", "tests", "as-begun"])
def test_no_command_leaves_a_temporary_folder(
    tmp_path: Path, temporary: Path, kind: str, number: signal.Signals | None
) -> None:
    words = waiting_command(kind, tmp_path)
    assert left_behind(temporary) == []
    process = start_process(words, tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    (found,) = temporary.iterdir()
    assert found.name.startswith(f"llm-do-{kind}-")

    if number is None:
        (tmp_path / "go").touch()
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=60)

    signalled = None if number is None else -number if number == signal.SIGKILL else 128 + number
    assert process.returncode == (signalled or 0), out + err
    assert left_behind(temporary) == []
    deadline = time.monotonic() + 60
    while of_project(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert of_project(tmp_path) == []
