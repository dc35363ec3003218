"""`llm-do runs`: list, show."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanGroup
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.project_first import ProjectFirst

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="List recorded runs, and show one as a tree.",
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
    form: Annotated[
        Literal["text", "json", "events"],
        typer.Option("--format", help="A tree for people, one JSON object, or every event as a JSON line."),
    ] = "text",
    events: Annotated[bool, typer.Option("--events", hidden=True)] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="List the events of this type; repeatable.")
    ] = None,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Show a run as a tree of its calls.

    Each call has its input, result, time, tokens and cost. `--type` lists events of one type instead.

    \b
    Examples:
      llm-do runs show
      llm-do runs show examples/receipts 5f3c
      llm-do runs show --format events --type tool_call
    """
    import os
    from functools import partial

    from llm_do.cli.actions import stored_runs as runs
    from llm_do.ui.terminal.screen import terminal_columns, wants_color

    shown = "events" if events else form
    columns = terminal_columns(1)
    color = columns is not None and wants_color(os.environ, no_color=no_color)
    lines_of = partial(runs.show_run, run=run, form=shown, types=types, columns=columns, color=color)
    return runs.print_from_store(project, named, lines_of, verbatim=shown != "text", title=True)
