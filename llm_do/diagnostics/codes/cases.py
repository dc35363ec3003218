"""LD9xx: test files."""

from __future__ import annotations

from collections.abc import Iterable

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.diagnostics.diagnostic import Location
from llm_do.text.words import did_you_mean

LD901 = Code(
    "LD901",
    "Test file without tests",
    "error",
    "A `*.test.yaml` file lists its tests under `tests`. A file without any would pass whatever the project does.",
    "add a test: `tests: [{name: ..., input: ...}]`",
    wrong="tests: []",
    right="tests:\n  - name: greets",
)


def no_tests() -> Problem:
    """A file without tests."""
    return LD901.problem("the file has no tests")


LD902 = Code(
    "LD902",
    "Two tests of one name",
    "error",
    "The tests of a file have different names: reports, `-k` and cassettes tell them apart by it. Names that differ "
    "only in capitals or between a space and a hyphen have the same cassette.",
    "give each a name of its own",
    wrong="  - name: greets\n  - name: Greets",
    right="  - name: greets\n  - name: says goodbye",
)


def duplicate_case(name: str, other: str, first: Location) -> Problem:
    """A test whose name another one has, or one like it."""
    if name == other:
        return LD902.problem(f"there is a test `{name}` already, at line {first.line}")
    return LD902.problem(f"`{name}` has the same cassette as `{other}`, at line {first.line}")


LD903 = Code(
    "LD903",
    "Malformed name of a test",
    "error",
    "The name of a test is one line, without spaces around it: it is part of the lines of a report.",
    "write it in one line",
    wrong='  - name: " greets"',
    right="  - name: greets",
)


def malformed_case_name(name: str) -> Problem:
    """A name with line breaks, or with spaces around it."""
    what = "has several lines" if len(name.splitlines()) > 1 else "has spaces around it"
    shown = name.strip().partition("\n")[0][:60]
    return LD903.problem(f"the name of the test {shown!r} {what}")


LD904 = Code(
    "LD904",
    "Expectation that can't be read",
    "error",
    "A regular expression, a JSON path or the pattern of a tool call is malformed. Tool calls are written like "
    "approval rules: `tool`, `tool(PATTERN)` or `tool(name=PATTERN)`.",
    "correct it",
    wrong='output: {matches: "[0-9"}',
    right='output: {matches: "[0-9]"}',
)


def unreadable_regex(text: str, reason: str) -> Problem:
    """A text that isn't a regular expression."""
    return LD904.problem(f"{text[:60]!r} is not a regular expression: {reason}")


def unreadable_path(text: str, reason: str) -> Problem:
    """A text that isn't a JSON path."""
    return LD904.problem(f"{text[:60]!r} is not a path: {reason}", "write it like `$.items[0].total`")


def unreadable_pattern(text: str, reason: str, hint: str) -> Problem:
    """A tool call that can't be read."""
    return LD904.problem(f"the tool call {text} can't be read: {reason}", hint)


LD905 = Code(
    "LD905",
    "Path outside of the project",
    "error",
    "A test looks at files of the project only; their paths are relative to the project's folder.",
    "write a path inside the project",
    wrong="files: {../out.md: {contains: done}}",
    right="files: {out.md: {contains: done}}",
)


def path_outside_project(path: str) -> Problem:
    """An absolute path, or one with `..`."""
    return LD905.problem(f"the path {path} is not inside the project")


LD906 = Code(
    "LD906",
    "Expectation about an unknown tool",
    "error",
    "No agent of the project has the tool, or the tool doesn't have the argument. Such a call never happens: expecting "
    "it always fails, and forbidding it never does.",
    "correct the name",
    wrong="never: [delete_fil]",
    right="never: [delete_file]",
)


def idle_pattern(reason: str) -> Problem:
    """A tool call that no agent can make; `reason` is a sentence, and a hint after a semicolon."""
    message, _, hint = reason.partition("; ")
    return LD906.problem(message, hint or None)


def unknown_agent_in_pattern(text: str, agent: str, known: Iterable[str]) -> Problem:
    """A tool call of an agent that doesn't exist."""
    return LD906.problem(f"{text} can't match: no agent is called `{agent}`", did_you_mean(agent, known))


def answer_for_unknown_tool(tool: str, known: Iterable[str]) -> Problem:
    """An answer to requests of a tool that no agent has."""
    return LD906.problem(f"`answer` names `{tool}`, which no agent has", did_you_mean(tool, known))


LD907 = Code(
    "LD907",
    "Missing check",
    "error",
    "A `python` check is `path.py:function`. The path starts at the test file's folder, or at the project's; the file "
    "needn't be listed in the manifest.",
    "write `path.py:function`, and define the function in that file",
    wrong="output: {python: checks.py:totl}",
    right="output: {python: checks.py:total}",
)


def missing_check_file(reference: str, looked: Iterable[str]) -> Problem:
    """A check in a file that isn't there."""
    return LD907.problem(f"there is no file for the check `{reference}`: {' and '.join(looked)} don't exist")


def missing_check(reference: str, name: str, file: str, defined: Iterable[str]) -> Problem:
    """A check that its file doesn't define."""
    return LD907.problem(f"the check `{reference}` doesn't exist: {file} has no `{name}`", did_you_mean(name, defined))


LD908 = Code(
    "LD908",
    "Test file that isn't read",
    "warning",
    "Tests are read from files below `tests` whose names end in `.test.yaml`; this one's name is almost that.",
    "rename it to end in `.test.yaml`",
    wrong="# tests/greeting.test.yml",
    right="# tests/greeting.test.yaml",
)


def unread_file(name: str, suggestion: str) -> Problem:
    """A file that was probably meant to hold tests."""
    return LD908.problem(f"{name} is not read as tests", f"rename it to {suggestion}")


LD909 = Code(
    "LD909",
    "File that can't stand in for an agent",
    "error",
    "In a column of a test file's `matrix`, `agents` names a file to read instead of an agent's own. That agent is "
    "defined in a file, not in Python, and both files give it the same name.",
    "name an agent that has a file, and give the agent in the other file the same name",
    wrong="---\nname: strict\n---",
    right="---\nname: main\n---",
)


def other_agent(file: str, name: str, expected: str) -> Problem:
    """A file that defines an agent of another name."""
    message = f"{file} stands in for the agent `{expected}`, and defines `{name}`"
    return LD909.problem(message, f"write `name: {expected}`")


def agent_in_python(name: str, file: str) -> Problem:
    """A file for an agent that Python code defines."""
    return LD909.problem(f"no file can stand in for the agent `{name}`: {file} defines it")


LD910 = Code(
    "LD910",
    "Judge without a model",
    "error",
    "A judge is asked by the model that it names, or by the project's. With neither, the verdict would depend on which "
    "keys the machine has.",
    "name a model beside the statement",
    wrong='judge: {says: "It is polite."}',
    right='judge: {says: "It is polite.", model: "openai:gpt-5-mini"}',
)


def judge_without_model() -> Problem:
    """A judge in a project that has no model."""
    return LD910.problem("the judge has no model, and neither has the project")
