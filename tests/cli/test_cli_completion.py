"""What the shell completes, as it asks for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.files.changes.keeping import kept_by
from llm_do.files.changes.run_keeper import RunKeeper
from llm_do.files.root import Root
from tests.cli.cli_processes import LLM_DO, environment, run_forked, run_many

MANIFEST = """\
{
  "version": 1,
  "entry": {"agent": "main"},
  "agent_files": ["*.agent"],
  "python_files": ["tools.py"],
  "models": {"fast": "script:answers.yaml", "fine": "test"}
}
"""


def complete(line: str, cwd: Path, **env: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    asked = {"_LLM_DO_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ended = subprocess.run(LLM_DO, cwd=cwd, env=environment(**asked, **env), capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
    return ended.stdout.decode().split()


def test_models_are_completed_with_aliases_and_those_whose_key_is_set(project: Callable[..., Path]) -> None:
    root = project(manifest=MANIFEST)

    assert complete("llm-do run -m f", root) == ["fast", "fine"]
    assert complete("llm-do run -m main=f", root) == ["main=fast", "main=fine"]
    assert complete("llm-do test --model te", root) == ["test"]
    assert complete("llm-do run -m anthropic", root) == []
    assert complete("llm-do run -m anthropic", root, ANTHROPIC_API_KEY="k") == ["anthropic:claude-sonnet-5-5"]


@pytest.mark.slow
def test_ids_of_threads_and_runs_are_completed_with_the_most_recent_first(project: Callable[..., Path]) -> None:
    root = project("- text: 'got {input}'")
    for thread in ("desk-1", "desk-2"):
        run_forked("run", "hi", "--thread", thread, cwd=root)
    listed = run_forked("runs", "list", "--format", "json", cwd=root).json
    runs = [row["run_id"] for row in listed]

    assert complete("llm-do run --thread d", root) == ["desk-2", "desk-1"]
    assert complete("llm-do threads show ", root) == ["desk-2", "desk-1"]
    assert complete("llm-do threads show . desk-1", root) == ["desk-1"]
    assert complete("llm-do runs show ", root) == runs
    assert complete(f"llm-do resume {runs[1][:8]}", root) == [runs[1]]
    assert complete("llm-do worker --batch ", root) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "manifest", ["{", "[]", '{"models": 5, "threads": 5}', "\xff", '{"threads": {"store": "postgresql://h/d"}}']
)
def test_whatever_is_broken_completes_nothing_and_says_nothing(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "project.json").write_text(manifest, encoding="latin-1")
    (tmp_path / ".llm-do").mkdir()
    (tmp_path / ".llm-do" / "state.db").write_text("no database" * 100)

    assert complete("llm-do run --thread ", tmp_path) == []
    assert complete("llm-do run -m t", tmp_path) == ["test"]


def test_completing_imports_neither_pydantic_ai_nor_the_project(project: Callable[..., Path]) -> None:
    root = project(manifest=MANIFEST)
    (root / "tools.py").write_text("raise SystemExit(1)")
    for run in ("first", "second"):
        with kept_by(RunKeeper(root, run)):
            Root(root).write(run, b"")
    code = (
        "import sys\nfrom llm_do.cli.arguments.completions import models_here, runs_here, threads_here, undoable_here\n"
        "assert models_here('fa') == ['fast'] and threads_here('') == [] and runs_here('') == []\n"
        "assert undoable_here('') == ['second', 'first'] and undoable_here('f') == ['first']\n"
        "print([name for name in ('pydantic_ai', 'pydantic', 'llm_do.linker.linker', 'tools') if name in sys.modules])"
    )

    ended = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment(), capture_output=True, timeout=60)

    assert (ended.stdout, ended.stderr) == (b"[]\n", b"")


@pytest.mark.slow
def test_every_command_has_its_help_under_one_letter(tmp_path: Path) -> None:
    from llm_do.cli.app import COMMANDS

    ended = run_many({name: ([name, "-h"], tmp_path, b"") for name in COMMANDS})

    assert {name: each.code for name, each in ended.items()} == dict.fromkeys(COMMANDS, 0)
    assert [name for name, each in ended.items() if not each.out.startswith(f"Usage: llm-do {name} ")] == []
