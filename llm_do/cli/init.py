"""`llm-do init`: writes a small project that runs, with its test and what an editor needs. It never overwrites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from llm_do.cli.lean import LeanCommand

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)

MANIFEST = """\
{
  "$schema": ".schema/project.schema.json",
  "version": 1,
  "name": NAME,
  "entry": { "agent": "main", "args": { "input": "What is 17 times 23?" } },
  "agent_files": ["*.agent"],
  "python_files": ["tools.py"],
  "approvals": { "allow": ["multiply"] }
}
"""

AGENT = """\
---
name: main
description: Answers questions, and multiplies with a tool.
tools: [multiply]
---
You answer in one sentence. Multiply with the tool `multiply`, never in your head.
"""

TOOLS = '''\
"""The functions that agents may call, by name."""

from __future__ import annotations


def multiply(a: int, b: int) -> int:
    """Multiply two whole numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a * b


TOOLS = [multiply]
'''

TEST = '''\
"""Runs the project with the answers that stand in answers.yaml: without a network, and always the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llm_do import Project, Runtime

HERE = Path(__file__).parent


def test_the_agent_multiplies_with_its_tool() -> None:
    runtime = Runtime(Project.load(HERE.parent), model=f"script:{HERE / 'answers.yaml'}")

    result = runtime.run_sync("What is 17 times 23?")

    assert result.output == "17 times 23 is 391."
    assert result.usage.tool_calls == 1
'''

ANSWERS = """\
# What the model answers, turn by turn, when it is named as script:PATH. {tool} is the last result of a tool.
- tools:
    - name: multiply
      args: { a: 17, b: 23 }
- text: "17 times 23 is {tool}."
"""

EDITOR = """\
{
  "files.associations": { "*.agent": "yaml" },
  "yaml.schemas": { ".schema/agent.schema.json": "*.agent" },
  "yaml.validate": false
}
"""


@app.command(cls=LeanCommand)
def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where to write it; made if it isn't there.")] = ".",
) -> int:
    """Write a small project that runs: an agent, a tool, a test, and the schema for editors."""
    import json

    from llm_do.cli.streams import claim_stdout, warn, without_plugins

    results = claim_stdout()
    without_plugins()
    from llm_do.spec.editor_schema import agent_schema, project_schema

    root = Path(folder).expanduser()
    name = root.resolve().name or "project"
    write(
        root,
        {
            "project.json": MANIFEST.replace("NAME", json.dumps(name, ensure_ascii=False)),
            "main.agent": AGENT,
            "tools.py": TOOLS,
            "tests/test_project.py": TEST,
            "tests/answers.yaml": ANSWERS,
            ".schema/project.schema.json": json.dumps(project_schema(), indent=2) + "\n",
            ".schema/agent.schema.json": json.dumps(agent_schema(), indent=2) + "\n",
            ".vscode/settings.json": EDITOR,
        },
        results.write,
    )
    warn(_next_steps(folder))
    return 0


def write(root: Path, files: dict[str, str], said: Callable[[str], object]) -> None:
    """Write files where none is yet; when one is there, nothing is written.

    Args:
        root: The folder.
        files: Path below it to text.
        said: Told the path of each file.

    Raises:
        UsageError: A file is there already, or the folder can't be written to.
    """
    import os

    from llm_do.errors import UsageError

    there = [file for file in files if os.path.lexists(root / file)]
    if there:
        raise UsageError(
            f"{root} has {', '.join(there)} already, and nothing was written",
            hint="Name another folder: llm-do init DIR.",
        )
    try:
        for file, text in files.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            said(f"{path}\n")
    except OSError as error:
        raise UsageError(f"{error.filename or root} can't be written: {error.strerror or error}") from error


def _next_steps(folder: str) -> str:
    import shlex

    where = "" if folder == "." else f" {shlex.quote(folder)}"
    script = shlex.quote(f"script:{'' if folder == '.' else folder.rstrip('/') + '/'}tests/answers.yaml")
    return (
        "\nIt runs at once with answers that are written down:\n"
        f"  llm-do run{where} --model {script}\n"
        "and with a model, which `llm-do models` lists:\n"
        f"  llm-do run{where} --model PROVIDER:NAME\n"
    )
