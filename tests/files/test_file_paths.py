from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from llm_do.files.paths import display_path, fold_name, split_path
from llm_do.files.refusals import FileRefusedError
from tests.support.tables import each_row


@each_row(
    "path, parts",
    [
        ("a\\b/c", ["a", "b", "c"]),
        ("C:\\srv\\a", ["a"]),
        ("c:/SRV/a", ["a"]),
        ("..\\a", ["..", "a"]),
    ],
)
def test_windows_separates_with_both_slashes(path: str, parts: list[str]) -> None:
    assert split_path(path, ["C:\\srv"], windows=True) == parts


@each_row(
    "path",
    ["D:\\x", "C:x", "C:\\srv2\\x", "\\\\host\\share\\x", "\\x", "a:stream", "con", "NUL.txt", "a/lpt1", "a.", "b "],
)
def test_paths_with_a_special_meaning_on_windows_are_refused(path: str) -> None:
    with pytest.raises(FileRefusedError):
        split_path(path, ["C:\\srv"], windows=True)


def test_elsewhere_a_backslash_is_an_ordinary_character() -> None:
    assert split_path("..\\a", ["/srv"], windows=False) == ["..\\a"]


@each_row("name", [".git", ".GIT", ".Git", ".git.", ".git ", "GIT~1", ".g\u200cit", ".git::$INDEX_ALLOCATION", "．git"])
def test_every_spelling_of_a_protected_name_is_recognised(name: str) -> None:
    assert fold_name(name) == ".git"


@each_row("name", [".github", "git", ".gitignore", "..git", "a.git"])
def test_similar_names_are_not_protected(name: str) -> None:
    assert fold_name(name) != ".git"


@given(st.text(max_size=400))
def test_a_shown_path_is_one_printable_line(text: str) -> None:
    line = display_path(text)
    assert line.isprintable()
    assert len(line) <= 300 * 10 + 3
    line.encode()
