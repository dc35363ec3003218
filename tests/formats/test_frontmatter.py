"""Where frontmatter starts and ends, whatever the editor did to line endings and encodings."""

from __future__ import annotations

import time

from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.agent_file import parse_agent
from llm_do.formats.syntax.frontmatter import Frontmatter, split_frontmatter
from llm_do.formats.syntax.source import Source
from tests.support.tables import each_row

PLAIN = "---\nname: main\ntools:\n  - search\n---\n\nYou are helpful.\n\nAlways.\n"


def parts(text: str) -> Frontmatter:
    found = split_frontmatter(Source("a.agent", text))
    assert isinstance(found, Frontmatter), found
    return found


def fault(text: str) -> Diagnostic:
    found = split_frontmatter(Source("a.agent", text))
    assert isinstance(found, Diagnostic), found
    return found


@each_row(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace("\n", "\r\n", 3),
        PLAIN.replace("You are helpful.\n", "You are helpful.\r\n"),
        "\ufeff" + PLAIN,
        "\ufeff" + PLAIN.replace("\n", "\r\n"),
        PLAIN.rstrip("\n"),
        PLAIN + "\n  \n\t\n",
    ],
)
def test_line_endings_and_a_byte_order_mark_make_no_difference(text: str) -> None:
    expected = parse_agent(PLAIN, "a.agent")
    found = parse_agent(text, "a.agent")
    assert found.ok
    assert (found.value, found.body) == (expected.value, expected.body)
    assert found.body == "You are helpful.\n\nAlways."


@each_row(
    "behind, body",
    [
        ("", ""),
        ("\n", ""),
        ("\n \n\t\n", ""),
        ("\nHello.", "Hello."),
        ("\n\n\n  indented \n\n", "  indented "),
        ("\nOne\n---\nTwo\n", "One\n---\nTwo"),
        ("\n---\n", "---"),
        ("\n----\nx", "----\nx"),
        ("\n---\nname: other\n---\n", "---\nname: other\n---"),
        ("\n{{name}} \t \n\x0c", "{{name}} \t \n\x0c"),
        ("\n\xa0\n", "\xa0"),
    ],
)
def test_the_body_is_kept_except_for_surrounding_blank_lines(behind: str, body: str) -> None:
    assert parts(f"---\nname: a\n---{behind}").body == body


def test_the_body_has_its_start_line() -> None:
    text = "---\nname: a\n---\n\n\n  Hello"
    assert text[parts(text).body_start :] == "  Hello"
    assert parts("---\nname: a\n---\n").body_start == -1


@each_row("inside", ["description: a --- b", "description: |\n  ---\n  x", "x: ----", "x: '---'"])
def test_only_a_line_of_exactly_three_dashes_closes_frontmatter(inside: str) -> None:
    text = f"---\n{inside}\n---\nBody"
    found = parts(text)
    assert text[found.start : found.end] == f"{inside}\n"
    assert found.body == "Body"


def test_frontmatter_may_be_empty() -> None:
    found = parts("---\n---\nBody")
    assert (found.start, found.end, found.body) == (4, 4, "Body")


@each_row(
    "text, line, column, word",
    [
        ("", 1, 1, "empty"),
        (" \n\t\n", 1, 1, "empty"),
        ("You are helpful.\n", 1, 1, "no frontmatter"),
        ("name: a\n---\n", 1, 1, "no frontmatter"),
        ("--\nname: a\n---\n", 1, 1, "`--`"),
        ("----\nname: a\n----\n", 1, 1, "`----`"),
        ("\u2014\u2014\u2014\nname: a\n---\n", 1, 1, "\u2014\u2014\u2014"),
        ("--- \nname: a\n---\n", 1, 1, "blanks around"),
        (" ---\nname: a\n---\n", 1, 1, "blanks around"),
        ("\n\n---\nname: a\n---\n", 3, 1, "blank lines before"),
        ("---", 1, 1, "no line end"),
        ("--- # agent\nname: a\n---\n", 1, 1, "no frontmatter"),
    ],
)
def test_a_file_that_almost_starts_with_frontmatter_is_reported(text: str, line: int, column: int, word: str) -> None:
    found = fault(text)
    assert (found.code, found.line, found.column) == ("LD107", line, column)
    assert word in found.message
    assert found.hint


@each_row(
    "text, line, word",
    [
        ("---\nname: a\n", 1, "never closed"),
        ("---\n", 1, "never closed"),
        ("---\nname: a\n--- \nBody", 3, "`--- `"),
        ("---\r\nname: a\r\n ---\r\nBody", 3, "` ---`"),
        ("---\nname: a\n----\nBody", 3, "`----`"),
        ("---\nname: a\n...\nBody", 3, "`...`"),
    ],
)
def test_unclosed_frontmatter_is_reported_where_it_should_close(text: str, line: int, word: str) -> None:
    found = fault(text)
    assert (found.code, found.line) == ("LD108", line)
    assert word in found.message


def test_a_megabyte_of_blank_lines_is_parsed_quickly() -> None:
    text = "---\nname: a\n---\n" + "\n \t" * 300_000 + "x" + "\n" * 300_000 + "y" + "\r" * 300_000
    start = time.process_time()
    assert parts(text).body == " \tx" + "\n" * 300_000 + "y"
    assert time.process_time() - start < 1
