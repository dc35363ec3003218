"""`llm-do import`: agents and skills of Claude Code become a project's. It never overwrites, and runs nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def import_(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Agents, skills, or folders with them.")],
    to: Annotated[
        str, typer.Option("--to", metavar="DIR", help="The project's folder, created if it doesn't exist.")
    ] = ".",
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Convert Claude Code's subagents and skills. It never overwrites, and lists what it could not convert.

    \b
    Examples:
      llm-do import .claude
      llm-do import reviewer.md --to review
    """
    import json

    from llm_do._startup.process import hasten_reading
    from llm_do.cli.arguments.target import user_path
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    hasten_reading()
    from llm_do.cli.actions.importing.import_action import import_agents

    imported = import_agents(paths, user_path(to))
    if form == "json":
        results.write(json.dumps(imported.as_data(), indent=2) + "\n")
    else:
        results.write_lines(imported.written)
        for line in imported.lines():
            warn(line)
    return 1 if imported.refused else 0
