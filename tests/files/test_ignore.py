from __future__ import annotations

from hypothesis import given, strategies as st

from llm_do.files.gitignore import is_ignored, is_never_listed, parse_rules
from tests.support.tables import each_row


@each_row(
    "lines, path, folder, expected",
    [
        (["*.log"], "a/b.log", False, True),
        (["*.log"], "a/b.txt", False, False),
        (["/b.log"], "a/b.log", False, False),
        (["/b.log"], "b.log", False, True),
        (["a/b"], "a/b", False, True),
        (["a/b"], "x/a/b", False, False),
        (["**/a/b"], "x/a/b", False, True),
        (["build/"], "x/build", True, True),
        (["build/"], "x/build", False, False),
        (["a/**"], "a", True, False),
        (["a/**"], "a/x", False, True),
        (["*.log", "!keep.log"], "keep.log", False, False),
        (["!keep.log", "*.log"], "keep.log", False, True),
        (["# a comment"], "# a comment", False, False),
        (["\\#a"], "#a", False, True),
        (["\\!a"], "!a", False, True),
        (["a  "], "a", False, True),
        (["a\\ "], "a ", False, True),
        (["a\r"], "a", False, True),
        (["", "/", "!"], "a", False, False),
        (["[ab].c"], "b.c", False, True),
        (["*"], "anything", True, True),
    ],
)
def test_a_rule_ignores_what_git_ignores(lines: list[str], path: str, folder: bool, expected: bool) -> None:
    assert is_ignored(parse_rules(lines), path, folder=folder) is expected


def test_a_rule_applies_only_below_its_file() -> None:
    rules = parse_rules(["/x", "*.log"], base="sub")
    assert [is_ignored(rules, path, folder=False) for path in ("sub/x", "x", "sub/a/x", "sub/a/b.log", "b.log")] == [
        True,
        False,
        False,
        True,
        False,
    ]


def test_an_inner_gitignore_overrides_an_outer_one() -> None:
    rules = parse_rules(["*.log"]) + parse_rules(["!keep.log"], base="sub")
    assert is_ignored(rules, "keep.log", folder=False)
    assert not is_ignored(rules, "sub/keep.log", folder=False)


def test_some_folders_are_never_listed() -> None:
    assert [name for name in (".git", ".GIT", ".llm-do", ".venv", ".github", "venv") if is_never_listed(name)] == [
        ".git",
        ".GIT",
        ".llm-do",
        ".venv",
    ]


@given(st.lists(st.text(max_size=20), max_size=5), st.text(min_size=1, max_size=20), st.booleans())
def test_any_text_can_be_ignore_rules(lines: list[str], path: str, folder: bool) -> None:
    assert is_ignored(parse_rules(lines), path, folder=folder) in (True, False)
