"""Runs the documents: each is a session in its own folder with a copy of the examples.

In document order, a fenced block whose info string names a file (```` ```python tools.py ````) is written there;
`python` blocks run as scripts, `output` is what the one before printed; in `console` blocks, lines that begin with
`$ ` run in a shell and the lines below are what they print, `...` standing for anything. `text` is not code. A block
that can't run here has a comment above it that says why: `<!-- not run: ... -->`.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.cli_processes import BATCH
from tests.support.tables import sampled

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"diagnostics.md"}
"""Pages whose examples other tests run."""

NEEDS = {"fastapi.md": "fastapi"}
"""Pages whose examples need a package that only the tests install."""

LONG = {
    "approvals.md",
    "ci.md",
    "durable-runs.md",
    "editors.md",
    "embedding.md",
    "fastapi.md",
    "flows.md",
    "map.md",
    "proxies.md",
    "running.md",
    "test-reports.md",
    "test-runs.md",
    "testing.md",
    "thinking-and-caching.md",
    "threads.md",
    "toolkits.md",
    "toolsets.md",
    "tutorial.md",
    "undo.md",
}
"""Pages of many commands, or commands that take long: they run among the slow tests."""

DOCUMENTS = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in ELSEWHERE)]
FENCE = re.compile(
    r"^(?P<skip><!-- not run: .+ -->\n+)?```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
SHELL = re.compile(r"[$`~]")
PUNCTUATION = set("();<>|&")


@dataclass(frozen=True)
class Block:
    """One fenced block of a document."""

    line: int
    kind: str
    path: str
    body: str


def named(document: Path) -> str:
    """Return a document's name as a test id."""
    return document.relative_to(ROOT).as_posix()


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks that run, in order."""
    for found in FENCE.finditer(text):
        kind, _, path = found["info"].strip().partition(" ")
        if not found["skip"] and kind != "text":
            yield Block(text.count("\n", 0, found.start()) + 1, kind, path, found["body"])


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, where `llm-do` is the one under test and no model comes from outside."""
    folder = tmp_path / "session"
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("out", "__pycache__", ".llm-do")
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "llm-do").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m llm_do.cli "$@"\n', encoding="utf-8")
    (programs / "llm-do").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LLM_DO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "document",
    [pytest.param(each, marks=pytest.mark.slow) if each.name in LONG else each for each in DOCUMENTS],
    ids=named,
)
def test_documented_output_is_the_actual_output(document: Path, session: Path) -> None:
    if document.name in NEEDS:
        pytest.importorskip(NEEDS[document.name], reason="make test installs it")
    printed = ""
    for block in blocks_of(document.read_text(encoding="utf-8")):
        where = f"{document.name}:{block.line}"
        if block.path:
            target = session / block.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")
        elif block.kind == "python":
            printed = run_script(block.body, where)
        elif block.kind == "output":
            check_output(printed, block.body, where)
        elif block.kind == "console":
            run_console(block.body, where)
        else:
            pytest.fail(f"{where}: a block of kind {block.kind!r} neither runs nor says why it doesn't")


def run_script(code: str, where: str) -> str:
    """Run a script in this process, restore the garbage collector's settings, and return the script's output."""
    captured = io.StringIO()
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    with contextlib.redirect_stdout(captured):
        exec(compile(code, where, "exec"), {"__name__": "__main__"})  # noqa: S102
    gc.set_threshold(*thresholds)
    if gc.get_freeze_count() > frozen:  # otherwise, what tests have in common remains frozen, which is large
        gc.unfreeze()
    return captured.getvalue()


def run_console(body: str, where: str) -> None:
    """Run the commands of a block one after the other; `$?` is the exit code of the one before."""
    code = 0
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        code, printed = run_command(command, code)
        check_output(printed, expected, f"{where}: {command}")


def run_command(command: str, before: int = 0) -> tuple[int, str]:
    """Run a shell command, and return its exit code and output.

    Args:
        command: The line. What needs no shell is run in a fork.
        before: The exit code of the command before.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if words[0] == "llm-do" and not SHELL.search(command) and not any(PUNCTUATION.issuperset(word) for word in words):
        ended = BATCH.run(words[1:], Path.cwd(), env=os.environ, together=True)
        return ended.code, ended.out
    done = subprocess.run(
        ["/bin/sh", "-c", f"(exit {before}); {command}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def check_output(printed: str, expected: str, where: str) -> None:
    """Compare output with the document; `...` matches anything."""
    pattern = r".*?".join(re.escape(piece) for piece in expected.strip().split("..."))
    assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{where} printed:\n{printed}\nand not:\n{expected}"


@pytest.mark.parametrize("name", sampled(sorted(path.parent.name for path in ROOT.glob("examples/*/answers.yaml"))))
def test_the_commands_of_an_examples_readme_run(name: str, session: Path) -> None:
    readme = (session / "examples" / name / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^ {4}((?:llm-do|cp) .+)$", readme, re.MULTILINE)

    assert any(command.startswith("llm-do run ") for command in commands)
    for command in commands:
        if "--model" not in command:
            code, printed = run_command(command)
            assert code in (0, 4), f"{command}: {printed}"
