"""Reading files in any locale, and locations in them."""

from __future__ import annotations

import os
from pathlib import Path

from llm_do.formats.syntax.source import MAX_BYTES, Source, decode, read_text
from tests.support.tables import each_row


@each_row(
    "data, line, column, offset",
    [
        (b"\xff", 1, 1, 0),
        (b"abc\r\nd\xe9", 2, 2, 6),
        (b"\xef\xbb\xbfx\x80", 1, 2, 4),
        ("né".encode() + b"\xc3", 1, 3, 3),
        (b"\xed\xa0\x80", 1, 1, 0),
    ],
)
def test_invalid_utf8_is_reported_with_offset_line_and_column(data: bytes, line: int, column: int, offset: int) -> None:
    result = decode(data, "a.agent")
    assert result.text is None
    (item,) = result.diagnostics
    assert (item.code, item.file, item.line, item.column) == ("LD102", "a.agent", line, column)
    assert f"offset {offset}" in item.message


def test_utf16_is_recognised() -> None:
    assert "UTF-16" in str(decode("---".encode("utf-16"), "a").diagnostics[0].hint)


def test_a_byte_order_mark_is_removed_and_line_endings_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.agent"
    path.write_bytes(b"\xef\xbb\xbf---\r\nn\xc3\xa9\n")
    assert read_text(path).text == "---\r\nné\n"


def test_an_unreadable_file_is_a_diagnostic(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, word in (("gone", "No such file"), ("", "a folder"), ("pipe", "not a regular file"), ("a\x00b", "null")):
        result = read_text(tmp_path / name, "x.agent")
        assert result.text is None
        (item,) = result.diagnostics
        assert (item.code, item.file, item.line) == ("LD101", "x.agent", 1)
        assert word in item.message


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    assert read_text(path).diagnostics[0].code == "LD104"


@each_row(
    "text, offset, position",
    [
        ("", 0, (1, 1)),
        ("ab", 2, (1, 3)),
        ("a\nb", 2, (2, 1)),
        ("a\r\nb", 3, (2, 1)),
        ("a\rb", 2, (2, 1)),
        ("a\n", 2, (2, 1)),
        ("a\x0b\x85\u2028b", 4, (1, 5)),
    ],
)
def test_lines_are_counted_as_editors_count_them(text: str, offset: int, position: tuple[int, int]) -> None:
    assert Source("a", text).position(offset) == position
