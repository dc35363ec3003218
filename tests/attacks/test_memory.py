"""Requests that are small and would take all of the machine's memory."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from llm_do.errors import ToolError
from llm_do.files.root import Root
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.filesystem.search import search
from llm_do.toolsets.shell import shell_readonly
from llm_do.toolsets.shell.sandbox.memory import MEMORY
from tests.toolsets.shell.support import context, run


def found(root: Path, pattern: str) -> str:
    return search(Protection(Root(root)), pattern, ".", "**/*", ())


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:a{600}){1000}",
        "(?:(?:a{100}){100}){100}",
        "(?:a{600} ) {1000,}(?x)",
        "(?x)(?:a{600}) # ten\n{1000}",
        "(?:a{600})(?#ten){1000}",
        "(?:" + "[ab]c" * 150 + "){1000}",
        "".join(f"{letter}{{60000}}" for letter in "abcdefghij"),
    ],
)
def test_a_pattern_that_would_grow_beyond_memory_is_refused(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.txt").write_text("aaa")
    with pytest.raises(ToolError, match=r"memory|valid"):
        found(tmp_path, pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"),
        (r"(?:[^,]*,){20}x", "," * 20 + "x"),
        (r"(?:ab{0,1000}){0,1000}c", "abbc"),
        (r"\d{4}-\d{2}-\d{2}", "2026-01-02"),
        (r"function \w+\(\) \{", "function f() {"),
    ],
)
def test_ordinary_repetitions_are_searched(tmp_path: Path, pattern: str, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert found(tmp_path, pattern).startswith("a.txt:1: ")


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="the machine has no `prlimit`")
def test_a_command_that_needs_no_approval_cannot_exhaust_memory(tmp_path: Path) -> None:
    result = run(shell_readonly(context(tmp_path)), "cat /proc/self/limits")
    assert re.search(rf"Max address space +{MEMORY} +{MEMORY} ", result["stdout"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="the machine has no `prlimit`")
def test_grep_is_stopped_if_a_pattern_exhausts_memory(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("aaa")
    result = run(shell_readonly(context(tmp_path)), "grep -E '((a{1000}){1000}){1000}' a.txt", timeout=300)
    assert "memory" in result["stderr"].lower(), result
