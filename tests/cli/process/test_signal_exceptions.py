"""A signal ends a command wherever it comes: while modules are imported, and in code that loses its exception."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.cli.cli_processes import write_project
from tests.cli.process.test_odd_machines import run_limited

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has other signals")

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

PROGRAM = """\
import os, sys
number, name = int(sys.argv.pop(1)), sys.argv.pop(1)


class Early:
    def find_spec(self, module, *_):
        if module == name:
            interrupt()


def interrupt():
    BODY


import llm_do.cli
sys.meta_path.insert(0, Early())
llm_do.cli.main()
"""
"""`llm-do` with a signal at the moment when a module is about to be imported."""

RAISED = "os.kill(os.getpid(), number)"

DROPPED = """\
class Finalized:
        def __del__(self):
            os.kill(os.getpid(), number)  # Python reports what a finalizer raises, and continues

    Finalized()
"""

CONVERTED = """\
try:
        os.kill(os.getpid(), number)
    except BaseException as error:  # as native code does that raises an error of its own
        raise ValueError(f"nothing can be built: {error!r}") from None
"""

LATE = {"check": "llm_do.cli.arguments.target", "tools": "llm_do.cli.arguments.target", "run": "llm_do.assembly"}
"""What a command imports when it has begun; `run` already owes a result then."""


def interrupted(tmp_path: Path, body: str, number: int, module: str, *command: str) -> tuple[int, str, str]:
    """Run a command with a signal; return its exit code, stdout and stderr."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("BODY", body), encoding="utf-8")
    root = write_project(tmp_path / "project", "- {text: late, delay: 300}")
    ended = run_limited([str(int(number)), module, *command], root, program=[sys.executable, str(program)])
    return ended.code, ended.out, ended.err


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("module", ["typer", "llm_do.cli.app", "llm_do.cli.commands.check"])
def test_a_signal_during_imports_ends_without_a_traceback(tmp_path: Path, number: int, module: str) -> None:
    assert interrupted(tmp_path, RAISED, number, module, "check") == (128 + number, "", "")


def test_ctrl_c_at_the_very_beginning_ends_without_a_traceback(tmp_path: Path) -> None:
    assert interrupted(tmp_path, RAISED, signal.SIGINT, "llm_do.cli.process", "check") == (130, "", "")


@pytest.mark.parametrize("command", list(LATE))
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("body", [DROPPED, CONVERTED], ids=["dropped", "converted"])
def test_a_signal_whose_exception_is_lost_ends_the_command_all_the_same(
    tmp_path: Path, command: str, number: signal.Signals, body: str
) -> None:
    code, out, err = interrupted(tmp_path, body, number, LATE[command], command, *(["x"] if command == "run" else []))

    assert (code, out) == (128 + number, "")
    assert err == (f"interrupted by {number.name}\n" if command == "run" else "")
