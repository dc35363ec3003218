"""`llm-do init`: creates a small project that runs, with tests, a workflow and schemas. It never overwrites."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from llm_do._machine_limits import hint_for
from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import models_here
from llm_do.text.sanitizer import shell_word

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
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="The project's model; by default the one you have configured, or that of a provider whose key is set.",
            show_default=False,
            autocompletion=models_here,
        ),
    ] = None,
    _debug: p.Debug = False,
) -> int:
    """Create a small project that runs: an agent, a tool, tests, a workflow, editor schemas. It never overwrites.

    \b
    Examples:
      llm-do init hello && llm-do run hello
      llm-do init hello --model openai:gpt-5-mini
      llm-do init rooms --template toolkit
    """
    import json

    from llm_do._startup.process import hasten_reading
    from llm_do.cli.arguments.target import user_path
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    hasten_reading()
    from llm_do.cli.actions.project_templates import TEMPLATES
    from llm_do.formats.editor_schema import agent_schema, cases_schema, project_schema

    root = user_path(folder)
    models = _models(root, model)
    name = json.dumps(root.resolve().name or "project", ensure_ascii=False)
    files = dict(TEMPLATES[template or _ask_template(root)].files)
    named = json.dumps(models[0] if len(models) == 1 else models, ensure_ascii=False)
    line = f'  "model": {named},\n' if models else ""
    files["project.json"] = files["project.json"].replace("NAME", name).replace("MODEL", line)
    for kind, schema in (("project", project_schema), ("agent", agent_schema), ("tests", cases_schema)):
        files[f".schema/{kind}.schema.json"] = json.dumps(schema(), indent=2) + "\n"
    own = _is_empty(root)
    write(root, files | _repository_files(root), results.write)
    if own:
        _trust(root)
    warn(_next_steps(folder, models))
    return 0


def _models(root: Path, named: str | None) -> list[str]:
    """The models that the manifest names: the one of the command line, the configured ones, or that of a key; or none.

    What is written are names of models, as no one else who works on the project has this person's aliases.
    """
    import os

    from llm_do.models.aliases import known_aliases, resolve_aliases
    from llm_do.models.providers.env_files import keys_of, with_variables
    from llm_do.models.providers.model_names import check_model_name, default_model
    from llm_do.models.user_config import load_user_config
    from llm_do.runtime.record.project_variables import file_variables

    if named is not None:
        models = resolve_aliases(named)
        for each in models:
            check_model_name(each, aliases=known_aliases({}))
        return list(models)
    configured = resolve_aliases(load_user_config().model)
    if configured:
        return list(configured)
    found = default_model(with_variables(os.environ, keys_of(file_variables(root))))
    return [found] if found is not None else []


def _repository_files(root: Path) -> dict[str, str]:
    """What the project's repository needs and doesn't have: a `.gitignore` file, and at its root a workflow."""
    import os

    from llm_do.cli.actions.project_templates import IGNORED, WORKFLOW

    files: dict[str, str] = {}
    if not os.path.lexists(root / ".gitignore"):
        files[".gitignore"] = IGNORED
    inside = any(os.path.lexists(above / ".git") for above in root.resolve().parents)
    workflow = ".github/workflows/agents.yml"
    if not inside and not os.path.lexists(root / workflow):
        files[workflow] = WORKFLOW
    return files


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


def _ask_template(root: Path) -> str:
    """The template that a person chooses at a terminal; elsewhere the first one."""
    import os
    import sys

    from llm_do.cli.actions.project_templates import TEMPLATES
    from llm_do.cli.process.streams import warn, write_stderr
    from llm_do.ui.terminal.screen import can_animate

    names = list(TEMPLATES)
    if not (os.isatty(0) and can_animate(os.environ)):
        return names[0]
    _check_new(
        root, [file for file in TEMPLATES[names[0]].files if all(file in each.files for each in TEMPLATES.values())]
    )
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


def _check_new(root: Path, files: Iterable[str]) -> None:
    import os

    from llm_do.errors import UsageError

    there = [file for file in files if os.path.lexists(root / file)]
    if there:
        raise UsageError(
            f"{root} has {', '.join(there)} already, and nothing was written",
            hint="Name another folder: llm-do init DIR.",
        )


def write(root: Path, files: dict[str, str], report: Callable[[str], object]) -> None:
    """Write new files; if one exists already, write none."""

    from llm_do.cli.actions.new_files import create_file
    from llm_do.errors import UsageError

    _check_new(root, files)
    created: list[Path] = []
    try:
        for file, text in files.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            create_file(path, text.encode())
            created.append(path)
    except OSError as error:
        for path in created:  # so that the same command works once there is space
            with suppress(OSError):
                path.unlink()
        raise UsageError(
            f"{error.filename or root} can't be written: {error.strerror or error}",
            hint=hint_for(error, "Name a folder that you may write to: llm-do init DIR."),
        ) from error
    for path in created:
        report(f"{path}\n")


def _next_steps(folder: str, models: list[str]) -> str:
    from llm_do.models.catalog import available_models

    where = "" if folder == "." else f" {shell_word(folder)}"
    script = shell_word(f"script:{'' if folder == '.' else folder.rstrip('/') + '/'}tests/answers.yaml")
    usable = {info.name: info for info in available_models()}
    if models:
        model = f"with {', '.join(models)}, which project.json names:"
    elif usable["local"].usable:
        model = "with the local model, offline, or with the provider whose key is set:"
    else:
        model = "once a key such as OPENAI_API_KEY is set, or a small model downloaded (`llm-do models pull`):"
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
