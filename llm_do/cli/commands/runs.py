"""`llm-do runs`: list, show."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.plain_commands import LeanCommand, LeanGroup

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Look at what runs have done.",
)


@app.command("list", cls=LeanCommand)
def list_runs(
    project: p.OfProject = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Of one thread.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20,
    as_json: p.AsJson = False,
    _debug: p.Debug = False,
) -> int:
    """List runs, the latest first."""
    from llm_do.cli.actions import stored_data

    return stored_data.carry_out(project, stored_data.list_runs, thread, limit=limit, as_json=as_json)


@app.command(cls=LeanCommand)
def show(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID", help="The run's id, or its beginning; by default the latest run.", show_default=False
        ),
    ] = None,
    project: p.OfProject = None,
    events: Annotated[bool, typer.Option("--events", help="Every event, one JSON record a line.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Events of this type only; repeatable.")
    ] = None,
    _debug: p.Debug = False,
) -> int:
    """Show how a run went; with `--events`, everything it told."""
    from llm_do.cli.actions import stored_data

    return stored_data.carry_out(project, stored_data.show_run, run, events=events, types=types)
