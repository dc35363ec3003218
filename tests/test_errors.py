"""Errors as values: each survives copying and pickling with all its data."""

from __future__ import annotations

import ast
import copy
import pickle
import re
import traceback
from functools import cache
from pathlib import Path

import pytest

import llm_do.errors
from llm_do import Project
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import ContextValidationError, LinkError, LlmDoError, ProviderError, UsageError
from tests.support.tables import each_row

CLASSES = [
    kind
    for kind in vars(llm_do.errors).values()
    if isinstance(kind, type) and issubclass(kind, LlmDoError) and kind is not ContextValidationError
]
ERRORS = [
    *(kind("it failed", hint="do this") for kind in CLASSES),
    ContextValidationError("no number", key="count", rule="type", hint="give a number"),
    LinkError("no", [Diagnostic("LD201", "error", "there is no tool `a`", Location("a.agent", 2, 3))]),
    ProviderError("down", agent_path="main/analyst", status_code=503),
]


@each_row("error", ERRORS)
def test_an_error_survives_copying_and_pickling(error: LlmDoError) -> None:
    for made in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(made) is type(error)
        assert (str(made), made.args, vars(made)) == (str(error), error.args, vars(error))


def test_a_traceback_shows_the_hint_of_an_error_and_the_other_errors_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\ntols: [x]\nmax_stps: 3\n---\nx")
    with pytest.raises(LinkError) as caught:
        Project.load(tmp_path)
    shown = "".join(traceback.format_exception(caught.value)).splitlines()

    assert shown[-3:] == [
        "llm_do.errors.LinkError: the project has 2 errors, the first at main.agent:3:1: unknown key `tols`",
        "hint: did you mean `tools`?",
        "main.agent:4:1: unknown key `max_stps` (did you mean `max_steps`?)",
    ]


def test_a_changed_hint_takes_the_place_of_the_first_in_tracebacks_and_copies() -> None:
    error = UsageError("no", hint="one")
    error.add_note("kept")
    error.hint = "two"

    assert error.__notes__ == ["kept", "hint: two"]
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["kept", "hint: two"]
    error.hint = None
    assert error.__notes__ == ["kept"]


SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(Path(llm_do.errors.__file__).parent.rglob("*.py"))}
REFUSALS = ("UsageError", "InputError", "StoreError")


def test_whatever_the_command_line_refuses_says_what_to_do() -> None:
    """Each usage error that the command line and its texts raise has a hint."""
    root = Path(llm_do.errors.__file__).parent
    calls = [
        (file.relative_to(root), node)
        for room in ("cli", "ui")
        for file in (root / room).rglob("*.py")
        if any(f"{name}(" in SOURCES[file] for name in REFUSALS)
        for node in ast.walk(ast.parse(SOURCES[file]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFUSALS and node.args
    ]
    without = [
        f"{file}:{node.lineno}" for file, node in calls if not any(keyword.arg == "hint" for keyword in node.keywords)
    ]

    assert len(calls) > 140
    assert without == []


WITHOUT_HINT = {
    "ModelUnavailableError(problem)": "the problem ends with what to do",
    "LinkError('the project does not link', report.diagnostics)": "each diagnostic has its fix",
    "LinkError(message, found)": "the message has the fix of each problem",
    "ModelError('the request was cancelled')": "whoever cancelled it wanted that",
    "AbortedError(f'a person ended the run at {info.tool_name}', agent_path=info.path)": "the person wanted that",
    "RunInterruptedError('the run was interrupted', agent_path=ctx.path)": "the person wanted that",
    "CassetteMissError(": "the cassette's player says how to record it again, and what that costs",
}
"""Errors that no hint would help with, and why."""


def error_names() -> set[str]:
    """The classes of errors for people; those of tools are for a model, which reads their message."""
    classes = [pair for text in SOURCES.values() for pair in re.findall(r"^class (\w+)\((\w+)\)", text, re.MULTILINE)]
    names: set[str] = {"LlmDoError"}
    while found := {name for name, base in classes if base in names and name != "ToolError"} - names:
        names |= found
    return names


@cache
def errors_without_hint() -> list[str]:
    names = error_names()
    called = re.compile(rf"\b({'|'.join(names)})\(")
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, text in SOURCES.items()
        if called.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in names
        and not {"hint", None} & {keyword.arg for keyword in node.keywords}
    ]


def test_every_error_for_people_says_what_to_do() -> None:
    missing = [each for each in errors_without_hint() if not any(call in each for call in WITHOUT_HINT)]

    assert not missing, "\n".join(missing)


def test_every_exception_to_that_is_still_needed() -> None:
    assert [call for call in WITHOUT_HINT if not any(call in each for each in errors_without_hint())] == []
