"""A program is told about its arguments, and a person at the command line about flags."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llm_do
from llm_do import LlmDoError, Runtime
from tests.support.runs import agent, carry_out, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def asked(**options: Any) -> None:
    Runtime(project_of([agent("main", "test")]), **options)


def ran(thread_id: str | None = None, **options: Any) -> None:
    model = script(call("main"), "x")
    runtime = runtime_of([agent("main", model, toolsets=["main"])], options=options)
    carry_out(runtime, thread_id=thread_id).raise_for_status()


def mapped(**options: Any) -> None:
    async def results() -> None:
        async for _ in Runtime(project_of([agent("main", "test")]), record=False).map(["x"], **options):
            pass

    asyncio.run(results())


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "an invalid pattern": (lambda: asked(allow=["fi nd"]), "allow='fi nd': there is a blank in a name"),
    "an invalid pattern that denies": (lambda: asked(deny=["a", "fi nd"]), "deny='fi nd': there is a blank in a name"),
    "an agent that doesn't exist": (lambda: asked(deny=["mian:send"]), "deny='mian:send' names 'mian'"),
    "a file that isn't there": (lambda: asked(env_file="/nowhere/x.env"), "env_file= names a file of lines"),
    "too many requests": (lambda: ran(max_steps=1), "in project.json or with max_steps=."),
    "a thread without a record": (lambda: ran("t", record=False), "Leave out record=False or"),
    "a batch without a record": (mapped, "Leave out record=False, "),
}


@each_row("kind", FAULTS)
def test_a_program_is_told_about_its_arguments(kind: str) -> None:
    make, text = FAULTS[kind]
    with pytest.raises(LlmDoError) as error:
        make()

    shown = f"{error.value.message}. {error.value.hint}"
    assert text in shown
    assert re.search(r"(?<!\w)--[a-z]", shown) is None


ROOMS = ("runtime", "models", "threads/sql", "threads/sqlite", "policy", "project")
COMMANDS = re.compile(r"`[^`]*(llm-do|createdb|sqlite3|pip|ensurepip) [^`]*`|on the command line,.*")


def flags_in_hints(file: Path) -> Iterator[str]:
    """The flags that hints of errors name themselves."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            texts = [node.value] if isinstance(node.value, ast.Constant) else getattr(node.value, "values", [])
            text = "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in texts)
            yield from re.findall(r"(?<!\w)--[a-z][a-z-]*", COMMANDS.sub("", text))


def test_hints_of_what_programs_use_leave_the_names_of_options_to_one_function() -> None:
    package = Path(llm_do.__file__).parent
    files = [file for room in ROOMS for file in sorted((package / room).rglob("*.py"))]
    found = [f"{file.relative_to(package)}: {flag}" for file in files for flag in flags_in_hints(file)]

    assert len(files) > 100
    assert found == []
