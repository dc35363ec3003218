"""Project files that replace or close the process's standard streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked

TOOLS = '''
import io, os, sys
{done}
def speak() -> str:
    """Speak."""
    print("aside")
    return "spoken"
TOOLS = [speak]
'''
AGENT = "---\nname: main\nmodel: script:answers.yaml\ntools: [speak]\n---\nHelp.\n"
ANSWERS = '- tools: [{name: speak}]\n- text: "{tool} {input}"'

LOST = [
    "sys.stdout.close(); sys.stderr.close()",
    "sys.stdout = sys.stderr = None",
    "sys.stdout = sys.stderr = object()",
    "del sys.stdout, sys.stderr",
    "sys.stdout = io.TextIOWrapper(sys.stdout.detach()); sys.stderr = io.TextIOWrapper(sys.stderr.detach())",
    "sys.stdout, sys.stderr = io.StringIO(), io.StringIO()",
]


@pytest.mark.parametrize("done", [LOST[0], *(pytest.param(done, marks=pytest.mark.slow) for done in LOST[1:])])
def test_replacing_the_standard_streams_loses_neither_results_nor_errors(
    project: Callable[..., Path], done: str
) -> None:
    root = project(ANSWERS, **{"tools.py": TOOLS.format(done=done), "agent": AGENT})

    good = run_forked("run", "--approve-all", cwd=root, stdin=b"hello")
    bad = run_forked("run", "--approve-all", "--model", "unknown:x", cwd=root, stdin=b"hello")

    assert (good.code, good.out) == (0, "spoken hello\n")
    assert (bad.code, bad.out) == (7, "")
    assert bad.err.startswith("error: the model 'unknown:x' names an unknown provider")


def test_closing_the_file_descriptors_does_not_lose_the_result(project: Callable[..., Path]) -> None:
    root = project(ANSWERS, **{"tools.py": TOOLS.format(done="os.close(1); os.close(2)"), "agent": AGENT})

    ended = run_forked("run", "--approve-all", cwd=root, stdin=b"hello")

    assert (ended.code, ended.out) == (0, "spoken hello\n")
