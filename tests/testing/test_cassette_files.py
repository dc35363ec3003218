"""A cassette's file: read back as it was written, made to be reviewed, and refused by line where it was spoiled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import BinaryContent, FilePart, ModelResponse, TextPart

from llm_do import UsageError
from llm_do.runtime.record.request_outcome import RequestFailure
from llm_do.testing.cassettes.cassette_reader import _FAILURE, parse_cassette
from llm_do.testing.cassettes.files import player_of, recorder_for
from llm_do.testing.cassettes.recorder import write_cassette
from llm_do.testing.cassettes.text_lines import with_lines, without_lines
from tests.support.no_network import no_network
from tests.support.runs import agent, carry_out, project_of, runtime_of
from tests.support.scripted import call, script


def note(path: str) -> str:
    """Read a note.

    Every line of it is returned.
    """
    return f"{path}:\nfirst line\nsecond line"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cassette of an agent that calls another, which reads a note."""
    path = tmp_path_factory.mktemp("cassette") / "c.json"
    scout = agent("scout", script(call("note", {"path": "a.txt"}, "n1"), "Read it,\nall of it."), tools=[note])
    lead = agent(
        "lead", script(call("scout", {"input": "go"}, "s1"), "Done."), toolsets=[scout], instructions="Be\nbrief."
    )
    specs = [lead, scout]
    recorder = recorder_for(project_of(specs))
    result = carry_out(runtime_of(specs, options={"transport": recorder}))
    assert result.status == "completed", result.errors
    write_cassette(path, recorder.cassette())
    return path.read_text()


def test_a_cassette_is_the_same_after_a_round_trip(text: str) -> None:
    assert parse_cassette(text, "c.json").to_text() == text


def test_a_cassette_reads_from_the_top(text: str) -> None:
    """Calls in the order of the tree, each text line by line, arguments as data, and nothing twice."""
    data = json.loads(text)

    assert list(data) == ["cassette", "made", "models", "agents", "exchanges"]
    assert [(each["path"], each["request"]) for each in data["exchanges"]] == [
        ("lead", 1), ("lead", 2), ("lead/scout", 1), ("lead/scout", 2),
    ]  # fmt: skip
    assert data["agents"]["lead"]["instructions"] == {"lines": ["Be", "brief."]}
    asked = data["exchanges"][2]["response"]["parts"]
    assert asked == [
        {"part_kind": "tool-call", "tool_name": "note", "tool_call_id": "call_1", "args": {"path": "a.txt"}}
    ]
    (returned,) = data["exchanges"][3]["new"][0]["parts"]
    assert returned["content"] == {"lines": ["a.txt:", "first line", "second line"]}
    assert max(map(len, text.splitlines())) < 120
    assert text.count("second line") == 1


def test_files_with_a_byte_order_mark_and_windows_lines_are_read(text: str) -> None:
    assert parse_cassette("\ufeff" + text.replace("\n", "\r\n"), "c.json").to_text() == text


def test_an_image_in_an_answer_is_replayed(tmp_path: Path) -> None:
    image = BinaryContent(bytes(range(256)), media_type="image/png")
    answer = ModelResponse([TextPart("Here."), FilePart(image)])
    specs = [agent("main", script(answer))]
    recorder = recorder_for(project_of(specs))
    carry_out(runtime_of(specs, options={"transport": recorder}))
    write_cassette(tmp_path / "c.json", recorder.cassette())

    player = player_of(tmp_path / "c.json", project_of(specs), again="again")
    with no_network():
        result = carry_out(runtime_of(specs, options={"transport": player}))

    assert result.messages[-1].parts[1].content.data == image.data  # type: ignore[union-attr]


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["a\nb", "\n", "a\r\nb", "a\u2028b\n"]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.sampled_from(["lines", "~lines", "~~lines", "text", "a\nb"]), each, max_size=2)
    ),
    max_leaves=8,
)


@given(DATA)
@pytest.mark.slow
def test_texts_of_several_lines_are_read_back_whatever_they_stand_in(data: Any) -> None:
    assert without_lines(json.loads(json.dumps(with_lines(data)))) == data


def put(old: str, new: str, count: int = 1) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, count)

    return change


def drop(pattern: str) -> Callable[[str], str]:
    """Delete the first line that matches."""

    def change(text: str) -> str:
        found = re.search(rf"^.*(?:{pattern}).*\n", text, re.MULTILINE)
        assert found is not None, pattern
        return text[: found.start()] + text[found.end() :]

    return change


def swap(pattern: str, new: str) -> Callable[[str], str]:
    """Replace the first text that matches."""
    return lambda text: re.sub(pattern, new, text, count=1, flags=re.DOTALL)


FAULTS: dict[str, tuple[Callable[[str], str], str, str]] = {
    "nothing": (lambda _: "", "is not JSON", ""),
    "blanks": (lambda _: "\n\n", "is not JSON", ""),
    "a list": (lambda _: "[]", "is not a cassette", ""),
    "another JSON file": (lambda _: '{"version": 1}', "is not a cassette", ""),
    "a later version": (put('"cassette": 1', '"cassette": 2'), "is not a cassette of version 1: it says 2", ""),
    "a version in words": (put('"cassette": 1', '"cassette": "1"'), 'version 1: it says "1"', ""),
    "cut off": (lambda text: text[:-40], "is not JSON", ""),
    "a merge conflict": (
        put(' "agents": {', '<<<<<<< ours\n "agents": {\n=======\n "agents": {\n>>>>>>> theirs'),
        "has a merge conflict",
        "<<<<<<< ours",
    ),
    "a comma too much": (put('"Done."\n', '"Done.",\n'), "there is a comma before `}`", '"Done.",'),
    "a comma too few": (put('"path": "lead",', '"path": "lead"'), "`,` or `}` is expected here", '"request": 1'),
    "a comment": (put('"exchanges": [', '// all of them\n "exchanges": ['), "JSON has no comments", "// all"),
    "single quotes": (put('"Done."', "'Done.'"), "a value is expected here", "'Done.'"),
    "a line break in a text": (put('"Done."', '"Do\nne."'), "the text isn't closed on its line", '"Do'),
    "a key twice": (
        put('"path": "lead",', '"path": "lead",\n   "path": "lead",'),
        "`path`",
        '"path": "lead",\n   "request"',
    ),
    "a misspelled part of the file": (put('"exchanges"', '"exchange"'), "`exchange` isn't known here", '"exchange"'),
    "a part of the file missing": (drop('"made"'), "`made` is missing in the cassette", "{"),
    "a misspelled key": (put('"response": {', '"respond": {'), "`respond` isn't known here", '"respond"'),
    "a key missing": (
        drop('"path": "lead/scout"'),
        "`path` is missing in the exchange",
        '  {\n   "call": "1.call_1",\n   "request"',
    ),
    "a text for a number": (
        put('"request": 2', '"request": "2"'),
        '`request` has to be a whole number, not "2"',
        '"request": "2"',
    ),
    "zero": (put('"request": 2', '"request": 0'), "`request` has to be at least 1, not 0", '"request": 0'),
    "a fraction": (put('"request": 2', '"request": 2.5'), "has to be a whole number, not 2.5", '"request": 2.5'),
    "true for a number": (
        put('"request": 2', '"request": true'),
        "has to be a whole number, not true",
        '"request": true',
    ),
    "a number for a list": (swap(r'"new": \[.*?\n   \]', '"new": 1'), "`new` has to be a list, not 1", '"new": 1'),
    "an unknown purpose": (
        put('"request": 2,', '"request": 2,\n   "purpose": "steps",'),
        "`purpose` has to be",
        '"purpose"',
    ),
    "an unknown setup": (
        put('"request": 2,', '"request": 2,\n   "setup": "leat",'),
        "`agents` has no `leat`",
        '"setup"',
    ),
    "an agent renamed in one place": (
        put('  "scout": {', '  "scouts": {'),
        "`agents` has no `scout`",
        '"path": "lead/scout"',
    ),
    "more kept than there was": (
        put('"request": 1,', '"request": 1,\n   "kept": 3,'),
        "`kept` is 3, but the call had 0",
        '"kept": 3',
    ),
    "an unknown kind of message": (put('"kind": "request"', '"kind": "question"'), "`kind` has to be", '"question"'),
    "a part without kind": (drop('"part_kind": "user-prompt"'), "`part_kind` is missing", '"content": "go"'),
    "an answer without parts": (
        swap(r'("response": \{\s*)"parts"', r'\1"part"'),
        "`parts` is missing in the response",
        '"response": {',
    ),
    "an unknown kind of answer": (
        put('"part_kind": "text"', '"part_kind": "test"'),
        "a part of this kind isn't known",
        '"test"',
    ),
    "a call without a tool": (drop('"tool_name": "scout"'), "`tool_name` is missing", '"tool-call"'),
    "a number as text": (put('"content": "Done."', '"content": 5'), "`content` can't be 5", '"content": 5'),
    "an unknown finish": (
        put('   "response": {', '   "response": {\n    "finish_reason": "over",'),
        "`finish_reason` can't be",
        '"over"',
    ),
    "neither answer nor failure": (
        swap(r',\n   "response": \{.*?\n   \}', ""),
        "an exchange has either a `response` or a `failure`",
        "  {",
    ),
    "an answer and a failure": (
        put('   "response": {', '   "failure": {},\n   "response": {'),
        "either a `response` or a `failure`",
        "  {",
    ),
    "a failure without words": (
        swap(r'"response": \{.*?\n   \}', '"failure": {"type": "X"}'),
        "`message` is missing in the failure",
        '"failure"',
    ),
    "lines that are no texts": (put('"second line"', "2"), "`lines` has to be a list of texts", '"lines": ['),
    "lines that are no list": (
        swap(r'"lines": \[\s*"Be".*?\]', '"lines": "Be"'),
        "`lines` has to be a list of texts",
        '"lines": "Be"',
    ),
    "negative tokens": (
        swap(r'"input_tokens": \d+', '"input_tokens": -1'),
        "`input_tokens` has to be at least 0",
        '"input_tokens": -1',
    ),
    "a model without a name": (drop('"name": "scripted"'), "`name` is missing in the model", "{"),
    "instructions as a list": (
        swap(r'"instructions": \{\s*"lines": (\[.*?\])\s*\}', r'"instructions": \1'),
        "`instructions` has to be a text",
        '"instructions": [',
    ),
    "a tool that is a text": (swap(r'"tools": \[', '"tools": [\n    "note",'), "`tool` has to be an object", '"note"'),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_file_and_line(text: str, name: str) -> None:
    change, sentence, at = FAULTS[name]
    spoiled = change(text)

    with pytest.raises(UsageError) as raised:
        parse_cassette(spoiled, "c.json")

    error = raised.value
    assert sentence in error.message
    assert error.message.startswith("c.json ")
    assert (error.file, bool(error.hint)) == ("c.json", True)
    assert error.line is not None
    if at:
        assert at in "\n".join(spoiled.splitlines()[error.line - 1 : error.line + 2]), error.message


def test_every_field_of_a_failure_is_read() -> None:
    assert _FAILURE.keys() == {field.name for field in fields(RequestFailure)}
