"""`llm-do runs`: list, show."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanCommand, LeanGroup
from llm_do.cli.arguments import parameters as p

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Show recorded runs and their events.",
)


@app.command("list", cls=LeanCommand)
def list_runs(
    project: p.OfProject = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Only runs of this thread.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N runs.")] = 20,
    as_json: p.AsJson = False,
    _debug: p.Debug = False,
) -> int:
    """List runs, the most recent first."""
    from llm_do.cli.actions import stored_runs as runs

    return runs.print_from_store(
        project,
        lambda store: runs.list_runs(store, thread, limit=limit, as_json=as_json),
        verbatim=as_json,
        title=True,
    )


@app.command(cls=LeanCommand)
def show(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID", help="The run's id or a prefix of it; by default the most recent run.", show_default=False
        ),
    ] = None,
    project: p.OfProject = None,
    events: Annotated[bool, typer.Option("--events", help="Print every event as one JSON record per line.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only events of this type; repeatable.")
    ] = None,
    _debug: p.Debug = False,
) -> int:
    """Show the events of a run."""
    from llm_do.cli.actions import stored_runs as runs

    return runs.print_from_store(
        project, lambda store: runs.show_run(store, run, events=events, types=types), verbatim=events, title=True
    )
