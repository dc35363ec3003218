"""Reading by lines and by characters, in bounded memory for any file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from llm_do.files.refusals import FileRefusedError
from tests.toolsets.filesystem.support import Call


def test_a_file_is_read_as_it_is(call: Call, project: Path) -> None:
    (project / "a.txt").write_bytes("one\r\ntwö\n\n".encode())
    assert call("read_file", path="a.txt") == "one\r\ntwö\n\n"


def test_offset_and_limit_count_lines(call: Call, project: Path) -> None:
    (project / "a.txt").write_text("1\n2\n3\n4\n")
    assert call("read_file", path="a.txt", offset=2) == "3\n4\n"
    expected = "2\n3\n[lines 2 to 3; the file continues at offset=3]"
    assert call("read_file", path="a.txt", offset=1, limit=2) == expected
    assert call("read_file", path="a.txt", offset=2, limit=2) == "3\n4\n"
    assert call("read_file", path="a.txt", offset=4) == "[a.txt has no line after the first 4]"
    assert call("read_file", path="a.txt", offset=3, line_numbers=True) == "4\t4\n"


def test_max_chars_counts_characters(call: Call, project: Path) -> None:
    (project / "a.txt").write_text("äbcdef")
    assert call("read_file", path="a.txt", max_chars=3, offset=1) == {
        "content": "bcd",
        "truncated": True,
        "total_chars": 6,
        "offset": 1,
        "chars_read": 3,
    }


def test_the_parts_of_a_long_file_add_up_to_it(call: Call, project: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(4500))
    (project / "a.txt").write_text(text)
    parts: list[str] = []
    offset = 0
    while True:
        part = call("read_file", path="a.txt", offset=offset)
        if not part.endswith("]"):
            break
        part, _, note = part.rpartition("[")
        parts.append(part)
        offset = int(note.rpartition("=")[2].rstrip("]"))
    assert "".join([*parts, part]) == text
    assert offset == 4000


def test_reading_a_binary_file_returns_a_short_notice(call: Call, project: Path) -> None:
    (project / "a.bin").write_bytes(b"\x7fELF\0\0")
    (project / "empty").touch()
    (project / "latin").write_bytes(b"caf\xe9\n")
    assert call("read_file", path="a.bin") == "[a.bin is a binary file of 6 bytes; it is not shown]"
    assert call("read_file", path="empty") == "[empty is empty]"
    assert call("read_file", path="latin") == "caf\ufffd\n[bytes that are not UTF-8 are shown as \ufffd]"
    with pytest.raises(FileRefusedError, match="binary"):
        call("read_file", path="a.bin", max_chars=10)


def test_a_file_may_contain_a_replacement_character(call: Call, project: Path) -> None:
    (project / "a.txt").write_text("\ufffd")
    assert call("read_file", path="a.txt") == "\ufffd"


@pytest.mark.slow
def test_fifty_megabytes_are_read_with_little_memory(call: Call, project: Path) -> None:
    with (project / "lines").open("wb") as stream:
        for _ in range(50):
            stream.write(b"x" * 999_999 + b"\n")
    with (project / "line").open("wb") as stream:
        for _ in range(50):
            stream.write(b"y" * 1_000_000)
    call("read_file", path="lines")
    tracemalloc.start()
    try:
        assert call("read_file", path="lines").startswith("[lines is huge: 50,000,000 bytes")
        assert "line 41 is too long and cut" in call("read_file", path="lines", offset=40, limit=3)
        assert "line 1 is too long and cut" in call("read_file", path="line", limit=1)
        assert call("read_file", path="line", offset=49_999_990, max_chars=100)["content"] == "y" * 10
        assert call("search_files", pattern="z") == "[2 files larger than 5,000,000 bytes were not searched]"
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


def test_multibyte_text_is_cut_where_reading_can_resume(call: Call, project: Path) -> None:
    text = "".join(chr(0x1F600 + n % 64) for n in range(40_000))
    (project / "a.txt").write_text(f"x{text}")
    parts: list[str] = []
    while (part := call("read_file", path="a.txt", max_chars=30_000, offset=sum(map(len, parts))))["truncated"]:
        parts.append(part["content"])
        assert part["chars_read"] == len(part["content"])
        assert len(part["content"].encode()) <= 60_000
    assert "".join([*parts, part["content"]]) == f"x{text}"


def test_a_line_is_cut_between_characters(call: Call, project: Path) -> None:
    (project / "a.txt").write_text("x" + "ä" * 100_000)
    result = call("read_file", path="a.txt")
    assert "\ufffd" not in result
    assert result.startswith("xää")


@pytest.mark.parametrize("args", [{"offset": -1}, {"limit": 0}, {"max_chars": 0}])
def test_out_of_range_numbers_are_invalid_arguments(call: Call, args: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="greater than"):
        call("read_file", path="a.txt", **args)
