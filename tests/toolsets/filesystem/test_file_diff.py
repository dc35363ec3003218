"""Applying the diff that a person is shown yields exactly the new file."""

from __future__ import annotations

import re
import time

from hypothesis import example, given, strategies as st

from llm_do.files.changes.file_diff import unified_diff

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "a\r\n", "d"]), max_size=25).map("".join)


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def applied(before: str, diff: str) -> str:
    old, out, at = lines_of(before), list[str](), 0
    lines = lines_of(diff)[2:]
    for n, line in enumerate(lines):
        if line.startswith("@@"):
            numbers = re.match(r"@@ -(\d+)(?:,(\d+))?", line)
            assert numbers
            start = int(numbers[1]) - (numbers[2] != "0")
            out += old[at:start]
            at = start
        elif not line.startswith("\\"):
            unended = n + 1 < len(lines) and lines[n + 1].startswith("\\")
            content = line[1:].removesuffix("\n") if unended else line[1:]
            if line[0] in " -":
                assert old[at] == content
                at += 1
            if line[0] in " +":
                out.append(content)
    return "".join(out + old[at:])


@given(TEXTS, TEXTS)
@example("a\n" * 20 + "b\n" + "a\n" * 20, "a\n" * 20 + "c\n" + "a\n" * 20)
@example("", "a\n")
@example("a\n", "")
@example("\n" * 300, "a\n" + "\n" * 280)
def test_a_diff_turns_the_old_text_into_the_new(before: str, after: str) -> None:
    diff = unified_diff(before, after, "x")
    assert (diff == "") == (before == after)
    assert before == after or applied(before, diff) == after


def test_a_diff_of_repetitive_texts_is_fast() -> None:
    start = time.process_time()
    before, after = "x\n" * 2000 + "y\n" * 2000, "z\n" + "y\nx\n" * 2000
    assert unified_diff(before, after, "x").count("\n") > 2000
    assert time.process_time() - start < 1
