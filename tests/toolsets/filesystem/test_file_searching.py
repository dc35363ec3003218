"""Searching line by line, in order, limited in number, time and memory, and skipping blocked files."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.errors import ToolError
from llm_do.files.folders import temporary_name
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from tests.toolsets.filesystem.support import Call


@pytest.fixture(autouse=True)
def files(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src/a.py").write_text("import os\n# TODO: this\r\n\nos.getcwd()\n")
    (project / "b.md").write_text("to do\nTODO that\n")
    (project / ".env").write_text("TODO=secret\n")
    (project / "c.bin").write_bytes(b"TODO\0")
    (project / "latin").write_bytes(b"TOD\xe9\n")


def test_matches_are_lines_with_their_location_in_order(call: Call) -> None:
    assert call("search_files", pattern="TODO") == "b.md:2: TODO that\nsrc/a.py:2: # TODO: this"
    assert call("search_files", pattern=r"(?i)to ?do$") == "b.md:1: to do"
    assert call("search_files", pattern=r"os\.\w+\(") == "src/a.py:4: os.getcwd()"
    assert call("search_files", pattern="nowhere") == "[nothing matches nowhere]"


def test_only_existing_lines_match(call: Call, project: Path) -> None:
    for name, text in {"none": "", "empty": "\n", "open": "x\n\ny", "two": "x\n\n"}.items():
        (project / "src" / name).write_text(text)
    assert call("search_files", pattern="^$", path="src") == "src/a.py:3: \nsrc/empty:1: \nsrc/open:2: \nsrc/two:2: "


@pytest.mark.parametrize(
    ("data", "pattern", "found"),
    [
        (b"one\r\ntwo\r\n", "^one$", "a.txt:1: one"),
        (b"one\r\ntwo\r\n", "two$", "a.txt:2: two"),
        (b"one\r\n\r\nthree\r\n", "^$", "a.txt:2: "),
        (b"one\r\ntwo", r"^\w+$", "a.txt:1: one\na.txt:2: two"),
        (b"one \r\n", r"\s$", "a.txt:1: one "),
        (b"\xef\xbb\xbfimport os\n", "^import", "a.txt:1: import os"),
        (b"\xef\xbb\xbfone\r\n", "^one$", "a.txt:1: one"),
        (b"a\xef\xbb\xbfb\n", "a.b", "a.txt:1: a\ufeffb"),
    ],
)
def test_anchors_match_as_in_the_text_that_is_edited(
    call: Call, project: Path, data: bytes, pattern: str, found: str
) -> None:
    (project / "a.txt").write_bytes(data)

    assert call("search_files", pattern=pattern, path="a.txt").encode() == found.encode()


def test_a_file_that_is_being_written_is_neither_listed_nor_searched(call: Call, project: Path) -> None:
    (project / temporary_name()).write_text("TODO half of a file")
    (project / "src" / temporary_name()).write_text("TODO half of a file")
    (project / ".llm-do-notes.tmp").write_text("TODO mine")

    listed = call("list_files").splitlines()
    assert [path for path in listed if "llm-do" in path] == [".llm-do-notes.tmp"]
    assert "half" not in call("search_files", pattern="TODO")
    assert len(Root(project).list()) == len(list(project.iterdir())) - 1


def test_path_and_glob_narrow_it(call: Call) -> None:
    assert call("search_files", pattern="TODO", path="src") == "src/a.py:2: # TODO: this"
    assert call("search_files", pattern="TODO", path="b.md") == "b.md:2: TODO that"
    assert call("search_files", pattern="TODO", glob="*.py") == "src/a.py:2: # TODO: this"
    assert call("search_files", pattern="TODO", glob="*/*") == "src/a.py:2: # TODO: this"
    assert call("search_files", pattern="TODO", path="src", glob="src/*") == "[nothing matches TODO]"


def test_a_blocked_file_is_neither_found_nor_searched(call: Call) -> None:
    assert "secret" not in call("search_files", pattern="=")
    with pytest.raises(FileRefusedError, match="secrets"):
        call("search_files", pattern="=", path=".env")


def test_matches_are_limited_in_number_and_length(call: Call, project: Path) -> None:
    (project / "long").write_text("x" * 5000 + "needle" + "x" * 5000)
    (project / "many").write_text("thread\n" * 1000)
    line = call("search_files", pattern="needle")
    assert line.startswith("long:1: ...")
    assert "needle" in line
    assert len(line) < 400
    lines = call("search_files", pattern="thread").split("\n")
    assert len(lines) == 201
    assert lines[-1].startswith("[the first 200 matches;")


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<", "a{2,1}", "(" * 900, "(?R)?a", "(?P<n>a(?&n)?)", "a" * 2000])
def test_an_invalid_pattern_is_reported(call: Call, pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern") as caught:
        call("search_files", pattern=pattern)
    assert "\n" not in caught.value.message


@pytest.mark.sample(1)
@pytest.mark.parametrize("pattern", ["(a|aa)+$", pytest.param("(x+x+)+y|(a|a)*b", marks=pytest.mark.slow)])
def test_a_pattern_that_would_run_for_ever_is_stopped(
    call: Call, project: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do.toolsets.filesystem.search._MAX_SECONDS_A_LINE", 0.1)
    (project / "evil").write_text("a" * 5000 + "!\n")
    with pytest.raises(ToolError, match="takes too long to match"):
        call("search_files", pattern=pattern, path="evil")
