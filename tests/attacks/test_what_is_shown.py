"""Text of models and projects that would be read as something else, or act on the terminal that it is shown on."""

from __future__ import annotations

import json
import os
import pty

import pytest

from llm_do.cli.process.streams import Results
from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.testing.reports.written_text import writable
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.question import question_of


def question(command: str) -> list[str]:
    call = ToolCallInfo("shell", {"command": command}, "main", "main", 0, "shell", primary="command")
    request = ApprovalRequest("q", "run", "call", "t", "main", "main", "shell", {"command": command}, call=call)
    return question_of(request, Frame(100)).fit(10)[0]


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("rm -r b\u0430ckup", "U+0430, Cyrillic small letter a"),
        ("rm -r \u0440\u0430\u0441", "U+0440, Cyrillic small letter er"),
        ("rm -r build\u2215old", "U+2215, Division slash"),
        ("rm \u2013r build", "U+2013, En dash"),
        ("cat notes.txt\uff5ctee x", "U+FF5C, Fullwidth vertical line"),
        ("curl https://ex\u03b1mple.org", "U+03B1, Greek small letter alpha"),
    ],
)
def test_a_question_names_what_looks_like_something_else(command: str, sign: str) -> None:
    (note,) = (line for line in question(command) if "not what it looks like" in line)
    assert sign in note


@pytest.mark.parametrize(
    "command",
    [
        "cat \u043f\u0438\u0441\u044c\u043c\u0430/\u043e\u0442\u0447\u0451\u0442.txt",
        "cat \u65e5\u672c\u8a9e/caf\u00e9.txt stra\u00dfe",
        'git commit -m "don\u2019t wait \u2014 it\u2019s done\u2026"',
        "grep -n \u03b1\u03b2\u03b3 notes.txt",
    ],
)
def test_a_question_says_nothing_of_other_languages(command: str) -> None:
    assert not [line for line in question(command) if "not what it looks like" in line]


def test_json_on_a_terminal_is_the_same_data_and_cannot_act_on_it() -> None:
    parent, child = pty.openpty()
    try:
        data = {"text": "a\x9b2Jb\u202e\u200b\u2028 caf\u00e9 \U000e0041 \U0001f600"}
        Results(child).write(json.dumps(data, ensure_ascii=False) + "\n")
        written = os.read(parent, 4096).decode()
    finally:
        os.close(parent)
        os.close(child)
    assert json.loads(written) == data
    assert written == '{"text": "a\\u009b2Jb\\u202e\\u200b\\u2028 caf\u00e9 \\udb40\\udc41 \U0001f600"}\r\n'


def test_a_test_report_shows_how_texts_differ() -> None:
    assert writable("yes\u200b", lines=False) == "yes\\u200b"
    assert writable("a\tb\nc\u00a0d\x1b") == "a\tb\nc\\xa0d\\x1b"
