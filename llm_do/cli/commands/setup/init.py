"""`llm-do init`: creates a small project that runs, with a test and an editor schema. It never overwrites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder, created if it doesn't exist.")] = ".",
    template: Annotated[
        Literal["agent", "function", "toolkit", "flow"] | None,
        typer.Option(
            "--template", help="An agent, Python code that calls agents, a toolkit, or a flow.", show_default=False
        ),
    ] = None,
    _debug: p.Debug = False,
) -> int:
    """Create a small project that runs: an agent, a tool, a test and an editor schema. It never overwrites.

    \b
    Examples:
      llm-do init hello && llm-do run hello
      llm-do init rooms --template toolkit
    """
    import json

    from llm_do._startup.process import disable_plugins
    from llm_do.cli.arguments.target import user_path
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    disable_plugins()
    from llm_do.cli.actions.project_templates import TEMPLATES
    from llm_do.formats.editor_schema import project_schema

    root = user_path(folder)
    name = json.dumps(root.resolve().name or "project", ensure_ascii=False)
    files = dict(TEMPLATES[template or _ask_template()].files)
    files["project.json"] = files["project.json"].replace("NAME", name)
    files[".schema/project.schema.json"] = json.dumps(project_schema(), indent=2) + "\n"
    own = _is_empty(root)
    write(root, files, results.write)
    if own:
        _trust(root)
    warn(_next_steps(folder))
    return 0


def _is_empty(root: Path) -> bool:
    """Whether everything in a folder will be what `init` makes: other files there may be anyone's."""
    try:
        return all(path.name in (".git", ".venv", ".gitignore") for path in root.iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _trust(root: Path) -> None:
    """Trust the new project; where that can't be kept, its first run asks."""
    from llm_do.cli.process.streams import warn
    from llm_do.errors import LlmDoError
    from llm_do.runtime.approval import trusted_folders
    from llm_do.ui.reports.error_text import paragraph

    try:
        if trusted_folders.refusal(root) is None:
            trusted_folders.add(root)
    except LlmDoError as error:
        warn(paragraph(f"the new folder isn't trusted yet: {error.message}", hint=error.hint, label="warning"))


def _ask_template() -> str:
    """The template that a person chooses at a terminal; elsewhere the first one."""
    import os
    import sys

    from llm_do.cli.actions.project_templates import TEMPLATES
    from llm_do.cli.process.streams import warn, write_stderr
    from llm_do.ui.terminal.screen import can_animate

    names = list(TEMPLATES)
    if not (os.isatty(0) and can_animate(os.environ)):
        return names[0]
    for number, name in enumerate(names, 1):
        warn(f"  {number} {name}: {TEMPLATES[name].about}")
    while True:
        write_stderr(f"which one? [{names[0]}] ")
        line = sys.stdin.readline()
        choice = line.strip().lower()
        if not choice:
            return names[0]
        if choice.isdecimal() and 0 < int(choice) <= len(names):
            return names[int(choice) - 1]
        if choice in names:
            return choice


def write(root: Path, files: dict[str, str], report: Callable[[str], object]) -> None:
    """Write new files; if one exists already, write none."""
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
            report(f"{path}\n")
    except OSError as error:
        raise UsageError(
            f"{error.filename or root} can't be written: {error.strerror or error}",
            hint="Name a folder that you may write to: llm-do init DIR.",
        ) from error


def _next_steps(folder: str) -> str:
    import shlex

    from llm_do.models.catalog import available_models

    where = "" if folder == "." else f" {shlex.quote(folder)}"
    script = shlex.quote(f"script:{'' if folder == '.' else folder.rstrip('/') + '/'}tests/answers.yaml")
    usable = {info.name: info for info in available_models()}
    if usable["local"].usable:
        model = "with the local model, offline, or with the provider whose key is set:"
    else:
        model = "with a model (`llm-do models` lists them; `llm-do models pull` downloads a local one):"
    return (
        f"\nIt runs {model}\n"
        f"  llm-do run{where}\n"
        "with scripted answers, as its tests do:\n"
        f"  llm-do run{where} --model {script}\n"
        "and as a chat:\n"
        f"  llm-do chat{where}\n"
        "Its tests run with:\n"
        f"  llm-do test{where}\n"
    )
