"""`llm-do doctor`: what is missing on this machine, this terminal or this project, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def doctor(
    project: Annotated[
        str | None,
        typer.Argument(
            metavar="PROJECT",
            help="Folder, manifest or .agent file; by default the project of the current folder, if there is one.",
            show_default=False,
        ),
    ] = None,
    named: p.OfProject = None,
    env_file: p.EnvFile = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Check this machine's setup: Python, extras, keys, models, sandbox, terminal, and the project's store.

    Keys are never shown, only whether they are set. The exit code is 1 if something keeps llm-do from working.
    """
    import json

    from llm_do.cli.process.streams import claim_stdout
    from llm_do.ui.reports.checkup import checkup, checkup_lines

    results = claim_stdout()
    root = _root(project, named)
    found = checkup(root, _describe if root is not None and _may_contact(root) else None, env_file)
    if form == "json":
        data = {"checks": [item.to_dict() for item in found], "ok": all(item.status != "bad" for item in found)}
        results.write(json.dumps(data, indent=2) + "\n")
    else:
        results.write_lines(checkup_lines(found, results.columns))
    return 1 if any(item.status == "bad" for item in found) else 0


def _root(project: str | None, named: str | None):
    from llm_do.cli.arguments.target import project_at
    from llm_do.errors import UsageError
    from llm_do.linker.sources.project_root import locate_project

    try:
        return locate_project(project_at(project, named)).root
    except UsageError:
        if project is not None or named is not None:
            raise
        return None


def _may_contact(root: Path) -> bool:
    """Whether the database that a project names may be contacted."""
    from llm_do.cli.actions.admission import is_trusted
    from llm_do.errors import LlmDoError

    try:
        return is_trusted(root)
    except LlmDoError:  # a damaged list trusts nothing
        return False


def _describe(url: str) -> str:
    from llm_do.threads.postgres.database_state import database_state

    return database_state(url)
