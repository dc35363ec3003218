"""The process's standard streams, tested without a subprocess."""

from __future__ import annotations

import os
import sys

from llm_do.cli.process.streams import Capture, Results


def write_results(*texts: tuple[str, str]) -> str:
    reads, writes = os.pipe()
    results = Results(writes)
    for how, text in texts:
        getattr(results, how)(text)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as source:
        return source.read()


def test_the_last_line_of_an_output_is_written_once() -> None:
    assert write_results(("write", "a\n"), ("write_last", "the end\n"), ("write_last", "killed\n")) == "a\nthe end\n"


def test_captured_output_is_passed_on_in_complete_lines_of_any_length() -> None:
    received: list[str] = []
    line = "ü" * 200_000
    kept = sys.stdout, sys.stderr
    caught = Capture(received.append)
    try:
        for part in (line.encode(), b" and\nmo", b"re\nhalf"):
            rest = part
            while rest:
                rest = rest[os.write(1, rest) :]
    finally:
        caught.close()
    assert (sys.stdout, sys.stderr) == kept

    assert "".join(received) == f"{line} and\nmore\nhalf\n"
    assert all(text.endswith("\n") for text in received)
    assert received[0].startswith(f"{line} and\n")
