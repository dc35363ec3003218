"""The process's own streams, without a process."""

from __future__ import annotations

import os
import sys

from llm_do.cli.process.streams import Capture, Results


def written(*texts: tuple[str, str]) -> str:
    reads, writes = os.pipe()
    results = Results(writes)
    for how, text in texts:
        getattr(results, how)(text)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as source:
        return source.read()


def test_an_output_ends_once() -> None:
    assert written(("write", "a\n"), ("write_last", "the end\n"), ("write_last", "killed\n")) == "a\nthe end\n"


def test_what_others_print_is_handed_on_in_whole_lines_however_long() -> None:
    heard: list[str] = []
    line = "ü" * 200_000
    kept = sys.stdout, sys.stderr
    caught = Capture(heard.append)
    try:
        for part in (line.encode(), b" and\nmo", b"re\nhalf"):
            rest = part
            while rest:
                rest = rest[os.write(1, rest) :]
    finally:
        caught.close()
    assert (sys.stdout, sys.stderr) == kept

    assert "".join(heard) == f"{line} and\nmore\nhalf\n"
    assert all(text.endswith("\n") for text in heard)
    assert heard[0].startswith(f"{line} and\n")
