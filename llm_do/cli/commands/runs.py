"""`llm-do runs`: list, show."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanGroup
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.project_first import ProjectFirst

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Show recorded runs and their events.",
)


@app.command("list", cls=ProjectFirst)
def list_runs(
    *,
    project: p.Project = None,
    named: p.OfProject = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Only runs of this thread.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N runs.")] = 20,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List runs, the most recent first."""
    from llm_do.cli.actions import stored_runs as runs

    return runs.print_from_store(
        project,
        named,
        lambda store: runs.list_runs(store, thread, limit=limit, as_json=form == "json"),
        verbatim=form == "json",
        title=True,
    )


@app.command(cls=ProjectFirst)
def show(
    *,
    project: p.Project = None,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID", help="The run's id or a prefix of it; by default the most recent run.", show_default=False
        ),
    ] = None,
    named: p.OfProject = None,
    events: Annotated[bool, typer.Option("--events", help="Print every event as one JSON record per line.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only events of this type; repeatable.")
    ] = None,
    _debug: p.Debug = False,
) -> int:
    """Show the events of a run."""
    from llm_do.cli.actions import stored_runs as runs

    return runs.print_from_store(
        project, named, lambda store: runs.show_run(store, run, events=events, types=types), verbatim=events, title=True
    )
