"""A signal ends a command wherever it comes: while modules are imported, and in code that loses its exception."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.cli_processes import Ended, write_project
from tests.cli.process.import_forks import run_with_faults

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has other signals")

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

RAISED = "import os\nos.kill(os.getpid(), NUMBER)"

DROPPED = """\
import os


class Finalized:
    def __del__(self):
        os.kill(os.getpid(), NUMBER)  # Python reports what a finalizer raises, and continues


Finalized()
"""

CONVERTED = """\
import os

try:
    os.kill(os.getpid(), NUMBER)
except BaseException as error:  # as native code does that raises an error of its own
    raise ValueError(f"nothing can be built: {error!r}") from None
"""

LATE = {"check": "llm_do.cli.arguments.target", "tools": "llm_do.cli.arguments.target", "run": "llm_do.assembly"}
"""What a command imports when it has begun; `run` already owes a result then."""


def interrupted(
    tmp_path: Path, bodies: Sequence[str], numbers: Sequence[signal.Signals], module: str, *words: str
) -> Iterator[tuple[signal.Signals, Ended]]:
    """Run a command with each signal in each body of code; return each signal and how the command ended."""
    codes = [(number, body.replace("NUMBER", str(int(number)))) for number in numbers for body in bodies]
    root = write_project(tmp_path / "project", "- {text: late, delay: 300}")
    ended = run_with_faults(tmp_path / "faults", root, module, {code: code for _, code in codes}, words)
    return ((number, ended[code]) for number, code in codes)


@pytest.mark.parametrize("module", ["typer", "llm_do.cli.app", "llm_do.cli.commands.check"])
def test_a_signal_during_imports_ends_without_a_traceback(tmp_path: Path, module: str) -> None:
    for number, ended in interrupted(tmp_path, [RAISED], SIGNALS, module, "check"):
        assert ended == Ended(128 + number, "", "")


def test_ctrl_c_at_the_very_beginning_ends_without_a_traceback(tmp_path: Path) -> None:
    for number, ended in interrupted(tmp_path, [RAISED], [signal.SIGINT], "llm_do.cli.process", "check"):
        assert ended == Ended(128 + number, "", "")


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", list(LATE))
def test_a_signal_whose_exception_is_lost_ends_the_command_all_the_same(tmp_path: Path, command: str) -> None:
    words = [command, *(["x"] if command == "run" else [])]
    for number, ended in interrupted(tmp_path, [DROPPED, CONVERTED], SIGNALS, LATE[command], *words):
        assert (ended.code, ended.out) == (128 + number, "")
        assert ended.err == (f"interrupted by {number.name}\n" if command == "run" else "")
