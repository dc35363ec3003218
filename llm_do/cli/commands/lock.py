"""`llm-do lock`: its help. What it does is in `llm_do.cli.actions.lock.lock_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.project_first import ProjectFirst

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=ProjectFirst)
def lock(
    *,
    project: p.Project = None,
    named: p.OfProject = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare, write nothing, and end with exit code 3 if anything differs.")
    ] = False,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Record in llm-do.lock what MCP servers offer, or compare with it.

    Asks every MCP server of the project for its tools, prints what has changed since `llm-do.lock` was written, and
    writes it again. The approvals in it stay. Look at what is printed before you commit the file.

    \b
    Examples:
      llm-do lock
      llm-do lock examples/desk --check
    """
    from llm_do.cli.actions.lock.lock_action import carry_out
    from llm_do.cli.arguments.target import project_at

    path = project_at(project, named)
    return carry_out(path, check=check, trust=trust, seconds=seconds, env_file=env_file, no_color=no_color)
