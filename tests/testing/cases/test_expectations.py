"""Expectations: which runs meet them, and what is said at which line of one that doesn't."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from tests.testing.cases.case_projects import ANSWERS, desk, result, shown

HEAD = """\
tests:
  - name: keeps minutes
    input: Write the minutes.
    answer: {write_file: once}
    expect:
"""
LINE = HEAD.count("\n") + 1


def expecting(root: Path, expect: str, **project: Any) -> list[str]:
    """The failures of a case with these expectations, the first of which is on line 1."""
    project.setdefault("files", {"tests/checks.py": CHECKS})
    found = result(desk(root, HEAD + indent(expect, "      "), **project))
    assert found.status == ("failed" if found.failures else "passed")
    texts = [shown(failure) for failure in found.failures]
    prefix = "tests/minutes.test.yaml:"
    lines = [text.removeprefix(prefix).partition(":") for text in texts]
    return [f"{int(line) - LINE + 1}:{rest}" for line, _, rest in lines]


CHECKS = """\
import asyncio


def passes(output):
    assert output == "Made out/minutes.md."


def fails(output):
    return False


def raises(output):
    assert output == 42, f"{output} isn't 42"


async def waits(output):
    await asyncio.sleep(0)
    return "minutes" in output


def looks(output, run):
    return run.tools == ["read_file", "write_file"]


def text(output):
    return output.startswith("# Minutes")


number = 5
"""

MET = [
    "output: {contains: minutes}",
    "output: {contains: [Made, minutes.md], lacks: [TODO, sorry]}",
    "output: {equals: Made out/minutes.md.}",
    "output: {matches: '^Made .*\\.md\\.$'}",
    "output: {lacks: nothing}",
    "output: {python: checks.py:passes}",
    "output: {python: 'tests/checks.py:waits'}",
    "output: {python: checks.py:looks}",
    "tools: [read_file, write_file]",
    "tools: [write_file]",
    "tools: [read_file(notes.txt), write_file(out/**)]",
    "tools: ['secretary:write_file(path=out/*.md)']",
    "tools: [files.read(*.txt), files.write(out/**)]",
    "tools: ['*', '*']",
    "never: [delete_file, 'write_file(notes.txt)', 'files.write(*.txt)']",
    "denied: []",
    'files: {out/minutes.md: {}, notes.txt: {equals: "Decided: one.\\n"}}',
    "files: {out/minutes.md: {contains: '# Minutes', lacks: two, matches: '^- one$', python: checks.py:text}}",
    "files: {minutes.md: {absent: true}}",
    "at_most: {steps: 3, tool_calls: 2, usd: 0, seconds: 100}",
    "status: completed",
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("expect", MET)
def test_an_expectation_is_met(tmp_path: Path, expect: str) -> None:
    assert expecting(tmp_path, expect) == []


UNMET: list[tuple[str, list[str]]] = [
    ("output: {contains: minutes of}", ["1: the output doesn't contain the text"]),
    (
        "output:\n  contains: [Made, TODO]\n  lacks: [Made]\n",
        ["2: the output doesn't contain the text", "3: the output contains a text that it must not"],
    ),
    ("output:\n  equals: Made it.", ["2: the output isn't what was expected"]),
    ("output:\n  equals: 42", ["2: the output isn't what was expected"]),
    ("output: {matches: ^made}", ["1: the output doesn't match the pattern"]),
    ("output: {json: {$.a: 1}}", ["1: the output is not JSON: Expecting value: line 1 column 1 (char 0)"]),
    ("output: {python: checks.py:fails}", ["1: the check checks.py:fails returned False"]),
    (
        "output: {python: checks.py:raises}",
        ["1: the check checks.py:raises failed: AssertionError: Made out/minutes.md. isn't 42"],
    ),
    ("output: {python: checks.py:number}", ["1: the check checks.py:number is not a function"]),
    ("tools:\n  - read_file\n  - delete_file", ["3: no call of delete_file after read_file"]),
    ("tools: [write_file, read_file]", ["1: no call of read_file after write_file: it ran before"]),
    ("tools: [read_file, read_file]", ["1: no call of read_file after read_file: it ran before"]),
    ("tools: [write_file(notes/**)]", ["1: no call of write_file(notes/**)"]),
    ("never:\n  - delete_file\n  - write_file(out/**)", ["3: write_file was called"]),
    ("never: [files.write(**)]", ["1: write_file was called"]),
    ("denied: [write_file]", ["1: no call of write_file was denied: it ran"]),
    ("denied: [delete_file]", ["1: no call of delete_file was denied"]),
    ("files: {minutes.md: {}}", ["1: there is no file minutes.md"]),
    ("files: {out: {contains: x}}", ["1: there is no file out"]),
    ("files: {out: {absent: true}}", ["1: out exists"]),
    ("files:\n  out/minutes.md:\n    contains: two", ["3: out/minutes.md doesn't contain the text"]),
    ("at_most: {steps: 2}", ["1: too many steps"]),
    ("at_most:\n  steps: 5\n  tool_calls: 1", ["3: too many tool calls"]),
    ("status: denied", ["1: the run ended as completed"]),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("expect", "failures"), UNMET)
def test_an_unmet_expectation_is_named_with_its_line(tmp_path: Path, expect: str, failures: list[str]) -> None:
    assert expecting(tmp_path, expect) == failures


def test_a_failure_has_what_was_expected_and_what_there_was(tmp_path: Path) -> None:
    expect = """
          output: {equals: Done.}
          files: {out/minutes.md: {equals: "# Minutes\\n- two\\n"}}
          tools: [read_file, delete_file]
          never: [write_file]
    """
    text, calls, file, forbidden = result(desk(tmp_path, HEAD + expect)).failures
    assert (text.expected, text.got, text.block) == ("Done.", "Made out/minutes.md.", None)
    assert (calls.expected, calls.got) == ("read_file, delete_file", "read_file, write_file")
    assert calls.block is not None
    assert calls.block.splitlines()[0] == 'read_file(path="notes.txt")'
    assert file.block is not None
    assert file.block.splitlines()[-2:] == ["-- two", "+- one"]
    assert forbidden.got == 'write_file(path="out/minutes.md", content="# Minutes\\n- one\\n")'


JSON = [{"output": {"items": [{"net total": 42, "paid": True}], "note": None}}]
STRUCTURED = """\
---
name: secretary
model: script:answers.yaml
toolsets: [filesystem_project]
output: {type: object, properties: {items: {type: array}, note: {}}, required: [items]}
---
"""


@pytest.mark.parametrize(
    ("expect", "failures"),
    [
        ('output: {json: {\'$.items[0]["net total"]\': 42.0, "$.items[-1].paid": true, $.note: null}}', []),
        ("output: {equals: {items: [{net total: 42, paid: true}], note: null}}", []),
        ("output: {schema: {required: [note], properties: {items: {minItems: 1}}}}", []),
        ("output: {contains: '\"net total\": 42'}", []),
        ('output: {json: {"$.items[0].paid": 1}}', ["1: $.items[0].paid of the output isn't what was expected"]),
        ('output: {json: {"$.items[1]": 1}}', ["1: the output has no $.items[1]: $.items has 1 items"]),
        ("output: {json: {$.items.paid: 1}}", ["1: the output has no $.items.paid: $.items is a list"]),
        ("output: {json: {$.total: 1}}", ['1: the output has no $.total: $ has no key "total"']),
        (
            "output: {schema: {properties: {items: {minItems: 2}, note: {type: string}}}}",
            ["1: the output doesn't fit the schema: $.items: "],
        ),
    ],
)
def test_structured_output_is_compared_as_data(tmp_path: Path, expect: str, failures: list[str]) -> None:
    found = expecting(tmp_path, expect, answers=JSON, files={"secretary.agent": STRUCTURED})
    assert len(found) == len(failures)
    assert all(one.startswith(other) for one, other in zip(found, failures, strict=True))


NOBODY = """
tests:
  - name: asks before it writes
    input: Write the minutes.
    {answer}
    expect: {expect}
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("answer", "expect", "failures"),
    [
        ("answer: nobody", "{status: denied, denied: [write_file], never: [delete_file]}", []),
        ("copy: project", "{status: denied, denied: ['write_file(out/**)'], tools: [read_file]}", []),
        ("answer: deny", "{denied: [write_file], files: {out/minutes.md: {absent: true}}}", []),
        ("answer: {delete_file: once}", "{denied: [write_file]}", []),
        ("answer: once", "{tools: [write_file]}", []),
        ("answer: nobody", "{output: {contains: x}}", ["the run ended as denied"]),
        ("answer: deny", "{tools: [write_file]}", ["no call of write_file: it was requested, but didn't run"]),
        ("answer: deny", "{never: [write_file]}", ["write_file was requested"]),
        ("answer: abort", "{status: completed}", ["the run ended as failed"]),
    ],
)
def test_requests_for_approval_are_answered_as_the_case_says(
    tmp_path: Path, answer: str, expect: str, failures: list[str]
) -> None:
    found = result(desk(tmp_path, NOBODY.format(answer=answer, expect=expect)))
    assert [failure.what for failure in found.failures] == failures


def test_a_run_that_was_denied_says_what_to_answer(tmp_path: Path) -> None:
    (failure,) = result(desk(tmp_path, NOBODY.format(answer="copy: project", expect="{}"))).failures
    assert (failure.expected, failure.got) == ("completed", "denied")
    assert failure.hint == "Answer it, such as with `answer: {write_file: once}`, or expect `status: denied`."


def test_each_turn_of_a_conversation_counts(tmp_path: Path) -> None:
    tests = """
        tests:
          - name: remembers
            inputs: [Hello., Write the minutes.]
            answer: once
            expect: {output: {contains: Made}, tools: [write_file], at_most: {steps: 4}}
    """
    found = result(desk(tmp_path, tests, answers=[{"text": "Hello, Ann."}, *ANSWERS]))
    assert (found.status, found.steps, found.tool_calls) == ("passed", 4, 2)


def test_defaults_hold_unless_a_case_says_otherwise(tmp_path: Path) -> None:
    tests = """
        defaults: {answer: once, at_most: {steps: 2}}
        tests:
          - name: keeps minutes
            expect: {at_most: {tool_calls: 5}}
    """
    (failure,) = result(desk(tmp_path, tests, entry={"agent": "secretary", "args": {"input": "Hi"}})).failures
    assert shown(failure) == "tests/minutes.test.yaml:2: too many steps"


def test_usage_of_a_scripted_run_costs_nothing(tmp_path: Path) -> None:
    found = result(desk(tmp_path, HEAD + "      at_most: {usd: 0}"))
    assert (found.status, found.cost, found.usage.requests) == ("passed", 0, 3)
    assert found.output == "Made out/minutes.md."


def test_the_projects_folder_has_a_name_that_doesnt_change(tmp_path: Path) -> None:
    answers = [
        {"tools": [{"name": "read_file", "args": {"path": "notes.txt"}}], "expect": f"{os.sep}desk/notes.txt"},
        {"text": "{input}"},
    ]
    tests = """
        tests:
          - name: reads a path
            input: Read <project>/notes.txt
            expect: {output: {equals: Read <project>/notes.txt}, tools: [read_file(notes.txt)]}
    """
    assert result(desk(tmp_path / "desk", tests, answers=answers)).failures == ()
