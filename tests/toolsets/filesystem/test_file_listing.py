"""Directory listings: in order, limited, and with unambiguous names."""

from __future__ import annotations

from pathlib import Path

from tests.toolsets.filesystem.support import Call


def test_a_list_is_in_order_with_folders_marked(call: Call, project: Path) -> None:
    for path in ("b.md", "a/x.py", "a/c/y.py", ".git/config", "out/z"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).touch()
    (project / ".gitignore").write_text("out/\n")
    assert call("list_files") == ".gitignore\na/\na/c/\na/c/y.py\na/x.py\nb.md"
    assert call("list_files", pattern="*") == ".gitignore\na/\nb.md"
    assert call("list_files", pattern="./**/*.{py,md}") == "a/c/y.py\na/x.py\nb.md"
    assert call("list_files", path="a", pattern="*.py") == "a/x.py"
    assert call("list_files", path="out") == "out/z"
    assert call("list_files", pattern="*.c") == "[nothing in . matches *.c]"


def test_a_truncated_list_says_so(call: Call, project: Path) -> None:
    for n in range(1100):
        (project / f"{n:04}").touch()
    lines = call("list_files").split("\n")
    assert lines[0] == "0000"
    assert lines[999:] == ["0999", "[the first 1,000; narrow path or pattern for others]"]


def test_one_name_cannot_pass_for_two(call: Call, project: Path) -> None:
    (project / "a\nb\x1b[0m").touch()
    assert call("list_files") == "a\\nb\\x1b[0m"
