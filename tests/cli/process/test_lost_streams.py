"""Files of a project that put something else in the place of the process's streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run

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
def test_a_file_that_takes_the_streams_away_takes_neither_the_result_nor_the_errors(
    project: Callable[..., Path], done: str
) -> None:
    root = project(ANSWERS, **{"tools.py": TOOLS.format(done=done), "agent": AGENT})

    good = run("run", "--approve-all", cwd=root, stdin=b"hello")
    bad = run("run", "--approve-all", "--model", "nobody:x", cwd=root, stdin=b"hello")

    assert (good.code, good.out) == (0, "spoken hello\n")
    assert (bad.code, bad.out) == (7, "")
    assert bad.err.startswith("error: the model 'nobody:x' names an unknown provider")


def test_a_file_that_closes_the_descriptors_leaves_the_result(project: Callable[..., Path]) -> None:
    root = project(ANSWERS, **{"tools.py": TOOLS.format(done="os.close(1); os.close(2)"), "agent": AGENT})

    ended = run("run", "--approve-all", cwd=root, stdin=b"hello")

    assert (ended.code, ended.out) == (0, "spoken hello\n")
