"""`*.test.yaml` files: their models, and parsing one.

The linker resolves the names in them; `llm_do.testing.cases` runs the cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag

from llm_do.diagnostics.codes import cases as problems
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.errors import Status
from llm_do.formats.memory_scopes import MemoryScope
from llm_do.formats.parts.shared import CassetteOptions
from llm_do.formats.syntax.source import KeyPath, Node, Source
from llm_do.formats.syntax.yaml_nodes import parse_yaml
from llm_do.formats.validation.fields import (
    FunctionRef,
    Models,
    Name,
    Opt,
    Path,
    Strict,
    Text,
    empty_dict,
    empty_list,
    text_or_list,
    text_or_object,
)
from llm_do.formats.validation.output_schema import check_schema
from llm_do.formats.validation.regexes import regex_fault, unreadable_patterns
from llm_do.formats.validation.validator import Parsed, parse_result, report_exclusive_keys, validate
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.text.json_paths import JsonPathError, parse_json_path

__all__ = [
    "Answers",
    "AtMost",
    "CaseFile",
    "ColumnFile",
    "ContentFile",
    "DefaultsFile",
    "ExpectFile",
    "FileContentFile",
    "JudgeFile",
    "LiveFile",
    "TestsFile",
    "case_slug",
    "parse_tests",
]

AnswerWord: TypeAlias = Literal["once", "all", "session", "always", "deny", "abort", "nobody"]

Answers: TypeAlias = Annotated[
    Annotated[AnswerWord, Tag("<text>")] | Annotated[dict[Text, AnswerWord], Tag("<object>")],
    Discriminator(
        text_or_object,
        custom_error_type="text_or_object",
        custom_error_message="must be an answer, or answers by the name of the tool",
    ),
]
"""One answer to every request for approval, or answers by tool."""

Texts: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[list[Text], Field(min_length=1), Tag("<list>")],
    Discriminator(
        text_or_list, custom_error_type="text_or_list", custom_error_message="must be text or a list of texts"
    ),
]

_Count: TypeAlias = Annotated[int, Field(ge=0)]


class ContentFile(Strict):
    """What is expected of an output."""

    contains: Opt[Texts] = Field(default=None, description="Text that is in it; of a list, each.")
    lacks: Opt[Texts] = Field(default=None, description="Text that isn't in it; of a list, none.")
    equals: Any = Field(default=None, description="What it is: text, or any JSON value.")
    matches: Opt[Text] = Field(default=None, description="A regular expression that matches somewhere in it.")
    json_schema: Opt[dict[str, Any]] = Field(
        default=None, alias="schema", description="A JSON Schema that it fits; text is read as JSON."
    )
    json_values: Opt[Annotated[dict[Text, Any], Field(min_length=1)]] = Field(
        default=None, alias="json", description="Values in it by their path, such as `$.items[0].total`."
    )
    python: Opt[FunctionRef] = Field(
        default=None, description="A function that checks it: it fails by raising, or by returning False."
    )


class FileContentFile(ContentFile):
    """What is expected of a file."""

    absent: Opt[bool] = Field(default=None, description="Whether there must be no such file.")


class AtMost(Strict):
    """Limits that the run must keep."""

    steps: Opt[_Count] = Field(default=None, description="Model responses.")
    tool_calls: Opt[_Count] = Field(default=None, description="Tool calls that run.")
    usd: Opt[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default=None, description="US dollars.")
    seconds: Opt[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default=None, description="Seconds; a run that takes longer is ended."
    )


class JudgeFile(Strict):
    """A model that decides whether a sentence is true of the output."""

    says: Text = Field(description="The sentence that has to be true.")
    model: Opt[Text] = Field(default=None, description="The model that decides; the project's by default.")


class ExpectFile(Strict):
    """What is expected of a run."""

    status: Opt[Status] = Field(default=None, description="How it ends; `completed` by default.")
    output: Opt[ContentFile] = Field(default=None, description="What the entry returns.")
    tools: list[Text] = Field(
        default_factory=empty_list,
        description="Calls that run, in this order, others between them; written like approval rules.",
    )
    never: list[Text] = Field(
        default_factory=empty_list, description="Calls that aren't even requested; written like approval rules."
    )
    denied: list[Text] = Field(default_factory=empty_list, description="Calls that are denied.")
    files: dict[Path, FileContentFile] = Field(
        default_factory=empty_dict, description="Files of the project after the run, by path."
    )
    at_most: Opt[AtMost] = Field(default=None, description="Limits that the run must keep.")
    judge: Opt[JudgeFile] = Field(default=None, description="A model that decides whether a sentence is true.")


class LiveFile(Strict):
    """How a case is run with `--live`."""

    repeat: int = Field(default=1, ge=1, description="How many times it is run.")
    pass_rate: float = Field(default=1.0, gt=0, le=1, alias="pass", description="The part of these that has to pass.")


class DefaultsFile(Strict):
    """What holds for each test that doesn't say otherwise."""

    entry: Opt[Name] = Field(default=None, description="The agent, flow or function that runs; the project's entry.")
    answer: Opt[Answers] = Field(
        default=None,
        description="The answer to requests for approval, or answers by tool, where all other calls are denied. "
        "`nobody`, the default: no one can be asked.",
    )
    thread: Opt[Text] = Field(default=None, description="The id of a thread, kept in memory, that the run belongs to.")
    user: Opt[Text] = Field(default=None, description="The id of the user that the run belongs to.")
    remembered: dict[MemoryScope, list[Text]] = Field(
        default_factory=empty_dict,
        description="What agents remember before the run, by scope; nothing by default.",
    )
    copy_: Opt[Literal["project", "none"]] = Field(
        default=None,
        alias="copy",
        description="Run in a fresh copy of the project (`project`, the default), or in the project itself.",
    )
    model: Opt[Models] = Field(default=None, description="The model of every agent.")
    models: dict[Name, Text] = Field(default_factory=empty_dict, description="The models of single agents.")
    cassette: Opt[CassetteOptions] = Field(default=None, description="How requests are compared with recorded ones.")
    live: Opt[LiveFile] = Field(default=None, description="How it is run with `--live`.")
    at_most: Opt[AtMost] = Field(default=None, description="Limits that each run must keep.")


class CaseFile(DefaultsFile):
    """One test."""

    name: Text = Field(description="Its name, in a line.")
    input: Any = Field(default=None, description="The input; the entry's default if left out.")
    inputs: Opt[Annotated[list[Any], Field(min_length=1)]] = Field(
        default=None, description="The inputs of a conversation; each continues the run before."
    )
    expect: ExpectFile = Field(default_factory=ExpectFile, description="What is expected of the run.")


class ColumnFile(Strict):
    """A variant of the project in which every test is run too."""

    model: Opt[Models] = Field(default=None, description="The model of every agent.")
    models: dict[Name, Text] = Field(default_factory=empty_dict, description="The models of single agents.")
    agents: dict[Name, Path] = Field(
        default_factory=empty_dict, description="Files that stand in for those of single agents."
    )


class TestsFile(Strict):
    """Tests of an llm-do project."""

    __test__ = False  # pytest takes whatever is called `Test...` for tests

    model_config = ConfigDict(title="llm-do tests")

    schema_: Opt[str] = Field(default=None, alias="$schema", description="Ignored; lets an editor complete the file.")
    defaults: DefaultsFile = Field(
        default_factory=DefaultsFile, description="What holds for each test that doesn't say otherwise."
    )
    tests: list[CaseFile] = Field(default_factory=empty_list, description="The tests.")
    matrix: dict[Name, ColumnFile] = Field(
        default_factory=empty_dict, description="Variants of the project for `--matrix`, by name."
    )


def parse_tests(text: str, file: str) -> Parsed[TestsFile]:
    """Read a file of tests.

    Args:
        text: The text of a `*.test.yaml` file.
        file: How diagnostics name it.

    Returns:
        The tests, their nodes, and all that is wrong with them.

    Example:
        >>> result = parse_tests("tests:\\n  - name: greets\\n    inptu: Ann\\n", "tests/a.test.yaml")
        >>> print(result.diagnostics[0].message, "|", result.diagnostics[0].hint)
        unknown key `inptu` in `tests[0]` | did you mean `input`?
    """
    result = parse_yaml(Source(file, text.removeprefix("\ufeff")))
    value, found = validate(TestsFile, result)
    node = result.node
    if node is not None and node.kind == "mapping":
        found += _rules(node)
    return parse_result(value, node, found)


def case_slug(name: str) -> str:
    """The name of a test in file names; two tests of one file have different ones.

    Example:
        >>> case_slug("writes the minutes"), case_slug("5/6 🙂")
        ('writes-the-minutes', '5-6-ff6a84')
    """
    import hashlib

    plain = name.replace(" ", "-")
    slug = re.sub(r"[^\w.-]+", "-", plain).strip("-.")[:60]
    if slug == plain:
        return slug
    return f"{slug or 'test'}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _rules(node: Node) -> list[Diagnostic]:
    """Check what the models can't express."""
    tests = node.entries.get("tests")
    found: list[Diagnostic] = []
    if tests is None or (tests.kind == "sequence" and not tests.items):
        place = node.source.place(node.start, min(node.start + 1, node.end)) if tests is None else tests.place
        found.append(problems.no_tests().at(place))
    first: dict[str, Node] = {}
    for index, test in enumerate(tests.items if tests is not None else ()):
        loc: KeyPath = ("tests", index)
        found += report_exclusive_keys(node, "input", "inputs", "keep one of the two", loc)
        found += _name_rules(test, first)
        found += _option_rules(node, loc)
        if "expect" in test.entries:
            found += _expect_rules(node, (*loc, "expect"))
    return [*found, *_option_rules(node, ("defaults",))]


def _name_rules(test: Node, first: dict[str, Node]) -> Iterator[Diagnostic]:
    named = test.entries.get("name")
    if named is None or not isinstance(named.scalar, str) or not named.scalar:
        return
    name = named.scalar
    if len(name.splitlines()) > 1 or name != name.strip():
        yield problems.malformed_case_name(name).at(named.place)
    other = first.setdefault(case_slug(name).casefold(), named)
    if other is not named:
        yield problems.duplicate_case(name, str(other.scalar), other.place).at(named.place)


def _option_rules(node: Node, loc: KeyPath) -> Iterator[Diagnostic]:
    yield from unreadable_patterns(node, (*loc, "cassette", "ignore"))


def _expect_rules(node: Node, loc: KeyPath) -> Iterator[Diagnostic]:
    for key in ("tools", "never", "denied"):
        for path in _texts_at(node, (*loc, key)):
            found = node.at(path)
            try:
                parse_pattern(str(found.scalar) if found is not None else "")
            except PatternError as error:
                yield problems.unreadable_pattern(error.text, error.message, error.hint).at(node.place_of(path))
    yield from _content_rules(node, (*loc, "output"))
    files = node.at((*loc, "files"))
    for path, file in files.entries.items() if files is not None else ():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            yield problems.path_outside_project(path).at(node.key_place((*loc, "files", path)))
        absent = file.entries.get("absent")
        if absent is not None and absent.scalar is True and len(file.entries) > 1:
            other = next(key for key in file.entries if key != "absent")
            hint = "a file that isn't there has no content: keep one of the two"
            yield from report_exclusive_keys(node, "absent", other, hint, (*loc, "files", path))
        yield from _content_rules(node, (*loc, "files", path))


def _content_rules(node: Node, loc: KeyPath) -> Iterator[Diagnostic]:
    yield from regex_fault(node, (*loc, "matches"))
    yield from check_schema(node, (*loc, "schema"))
    values = node.at((*loc, "json"))
    for path in values.entries if values is not None else ():
        try:
            parse_json_path(path)
        except JsonPathError as error:
            yield problems.unreadable_path(path, str(error)).at(node.key_place((*loc, "json", path)))


def _texts_at(node: Node, loc: KeyPath) -> list[KeyPath]:
    """The paths of the texts in a list, those that are empty or of another type left out."""
    found = node.at(loc)
    items = found.items if found is not None else ()
    return [(*loc, index) for index, item in enumerate(items) if isinstance(item.scalar, str) and item.scalar]
