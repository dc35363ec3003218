"""Signals outside a run: a second one, and one while a command links in another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import environment
from tests.cli.cli_terminal import start_process

SCRIPT = """
import os, signal, sys
from llm_do.cli.process import signals

signals.PATIENCE = 1000  # so that only the second signal can end this process
interrupts = signals.Interrupts()
interrupts.stop = lambda: os.write(1, b"first\\n")
interrupts.restore = lambda: os.write(1, b"restored\\n")
interrupts.last_words = lambda: os.write(1, b"last words\\n")
interrupts.install()
for number in sys.argv[1:]:
    os.kill(os.getpid(), int(number))
    while interrupts.signum is None:
        pass
while True:
    signal.pause()
"""


@pytest.mark.parametrize(
    ("numbers", "code"),
    [((signal.SIGINT, signal.SIGINT), 130), ((signal.SIGTERM, signal.SIGINT), 143)],
    ids=["Ctrl-C twice", "Ctrl-C after SIGTERM"],
)
def test_a_second_signal_ends_the_process_without_waiting(numbers: tuple[int, ...], code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *(str(int(number)) for number in numbers)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (code, "first\nrestored\nlast words\n")


HANGING = """\
import os
from pathlib import Path

Path("begun").write_text(str(os.getpid()))
os.mkfifo("never")
open("never")
TOOLS = []
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGINT, 130, id="Ctrl-C", marks=pytest.mark.slow),
    ],
)
def test_ending_a_command_ends_its_linking_process_too(project: Callable[..., Path], number: int, code: int) -> None:
    root = project(agent="---\nname: main\nmodel: test\n---\n", **{"tools.py": HANGING})
    process = start_process(["check"], root)
    while not (root / "begun").exists() or not (root / "begun").read_text():
        assert process.poll() is None
        os.sched_yield()

    process.send_signal(number)
    out, _ = process.communicate(timeout=30)  # a process that survived would hold the pipe open

    assert (process.returncode, out) == (code, "")
