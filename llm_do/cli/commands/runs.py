"""`llm-do runs`: list, costs, show, compare, drop, prune."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import typer

from llm_do._startup.plain_commands import LeanGroup
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import runs_here, threads_here
from llm_do.cli.arguments.moments import moment_parser
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.store_options import StoreOptions, with_store_options

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="List, show and compare recorded runs, and sum up what they cost.",
)

Entry = Annotated[str | None, typer.Option("--entry", metavar="NAME", help="Only runs of this entry.")]
Since = Annotated[
    float | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        parser=moment_parser,
        help="Only runs since a day (2026-11-28), a time (2026-11-28T14:30), or for the last 7d or 2h30m.",
    ),
]

Batch = Annotated[str | None, typer.Option("--batch", metavar="ID", help="Only runs of this batch of `llm-do map`.")]


@app.command("list", cls=ProjectFirst)
@with_store_options
def list_runs(
    where: StoreOptions,
    *,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            metavar="ID",
            help="Only runs of this thread.",
            autocompletion=threads_here,
        ),
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATUS", help="Only runs that ended like this; repeatable."),
    ] = None,
    entry: Entry = None,
    batch: Batch = None,
    since: Since = None,
    cost_above: Annotated[
        float | None, typer.Option("--cost-above", metavar="USD", min=0, help="Only runs that cost more.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N runs.")] = 20,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List runs, the most recent first.

    \b
    Examples:
      llm-do runs list --status failed --status denied --since 7d
      llm-do runs list --cost-above 0.50
      llm-do runs list --batch letters --status queued --status suspended
    """
    from llm_do.cli.actions.records import stored_runs as runs
    from llm_do.runtime.record.stored_records import RunFilter

    filter = RunFilter(thread, runs.known_statuses(status), entry, since, cost_above, batch=batch)
    headed = runs.is_read_by_person()
    return runs.print_from_store(
        where,
        lambda store: runs.list_runs(store, filter, limit=limit, as_json=form == "json", headed=headed),
        verbatim=form == "json",
        title=True,
    )


@app.command(cls=ProjectFirst)
@with_store_options
def costs(
    where: StoreOptions,
    *,
    by: Annotated[
        Literal["day", "agent", "model"], typer.Option("--by", help="What requests are summed up by.")
    ] = "day",
    entry: Entry = None,
    batch: Batch = None,
    since: Since = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Sum up what the requests of runs have used.

    \b
    Examples:
      llm-do runs costs --since 30d
      llm-do runs costs --by model --format json
    """
    from llm_do.cli.actions.records import stored_runs as runs
    from llm_do.runtime.record.stored_records import RunFilter

    filter = RunFilter(entry=entry, since=since, batch=batch)
    return runs.print_from_store(
        where,
        lambda store: runs.list_costs(store, by, filter, as_json=form == "json"),
        verbatim=form == "json",
        title=True,
    )


class _Show(ProjectFirst):
    """`runs show`, whose option `--requests` may have a number after it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        read: list[str] = []
        for word in args:
            if read[-1:] == ["--requests"]:
                number = re.fullmatch(r"\d{1,5}", word) is not None
                read[-1] = f"--requests={word}" if number else "--requests=all"
                if number:
                    continue
            read.append(word)
        if read[-1:] == ["--requests"]:
            read[-1] = "--requests=all"
        return super().parse_args(ctx, read)


@app.command(cls=_Show)
@with_store_options
def show(
    where: StoreOptions,
    *,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID",
            help="The run's id or a prefix of it; by default the most recent run.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ] = None,
    form: Annotated[
        Literal["text", "json", "events"],
        typer.Option("--format", help="A tree for people, one JSON object, or every event as a JSON line."),
    ] = "text",
    events: Annotated[bool, typer.Option("--events", hidden=True)] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="List the events of this type; repeatable.")
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests",
            metavar="[N]",
            help="Show what models were sent and what came back: what is new in each request, or all of request N.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the run as a page for browsers; - is stdout.", show_default=False
        ),
    ] = None,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Show a run as a tree of its calls, or what its models were sent.

    Each call has its input, result, time, tokens and cost. `--type` lists events of one type instead. `--html` writes
    all of it as one file that any browser shows, without a server or a network.

    \b
    Examples:
      llm-do runs show
      llm-do runs show examples/receipts 5f3c
      llm-do runs show 5f3c --requests
      llm-do runs show 5f3c --requests 3
      llm-do runs show --format events --type tool_call
      llm-do runs show 5f3c --html run.html
    """
    import os
    from functools import partial

    from llm_do.cli.actions.records import stored_runs as runs
    from llm_do.ui.terminal.screen import terminal_columns, wants_color

    shown = "events" if events else form
    if html is not None:
        from llm_do.cli.actions.serving.run_page import check_html_options, write_page

        check_html_options(html, form=shown, types=types, requests=requests)
        page = partial(write_page, run=run, file=html, root=where.location(quiet=True).root.resolve())
        return runs.print_from_store(where, page, verbatim=True)
    columns = terminal_columns(1)
    color = columns is not None and wants_color(os.environ, no_color=no_color)
    if requests is not None:
        from llm_do.cli.actions.records.stored_requests import request_number, show_requests

        number = request_number(requests, shown, types)
        as_json = shown == "json"
        sent = partial(show_requests, run=run, number=number, as_json=as_json, color=color)
        return runs.print_from_store(where, sent, verbatim=as_json, title=True)
    from llm_do.cli.actions.records.shown_run import show_run

    root = where.location(quiet=True).root
    lines_of = partial(show_run, root=root, run=run, form=shown, types=types, columns=columns, color=color)
    return runs.print_from_store(where, lines_of, verbatim=shown != "text", title=True)


@app.command(cls=ProjectFirst)
@with_store_options
def compare(
    where: StoreOptions,
    *,
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID",
            help="A run's id or a prefix of it; by default the run before.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID",
            help="The other run's; by default the most recent run.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ] = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Compare two runs: where they diverge, and how each ended.

    Calls are compared by their path, and requests by their number.

    \b
    Examples:
      llm-do runs compare
      llm-do runs compare 5f3c 81aa
    """
    from llm_do.cli.actions.records.stored_requests import compare_runs
    from llm_do.cli.actions.records.stored_runs import print_from_store

    return print_from_store(
        where,
        lambda store: compare_runs(store, first, second, as_json=form == "json"),
        verbatim=form == "json",
        title=True,
    )


@app.command(cls=ProjectFirst)
@with_store_options
def drop(
    where: StoreOptions,
    *,
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN_ID",
            help="The run's id or a prefix of it.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ],
    _debug: p.Debug = False,
) -> int:
    """End a durable run that waits to be resumed. What it has done on its thread is kept."""
    from llm_do.cli.actions.records import stored_runs as runs

    return runs.print_from_store(where, lambda store: runs.drop_run(store, run))


@app.command(cls=ProjectFirst)
@with_store_options
def prune(
    where: StoreOptions,
    *,
    before: Annotated[
        float,
        typer.Option(
            "--older-than",
            metavar="WHEN",
            parser=moment_parser,
            help="Runs that ended before a day (2026-11-28), a time (2026-11-28T14:30), or this long ago: 90d or 12h.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many there are, and delete nothing.")] = False,
    _debug: p.Debug = False,
) -> int:
    """Delete the record of runs that ended long ago.

    Their events, requests, costs and results are deleted, and the files that are kept to undo them. Conversations are
    kept; `llm-do threads delete` deletes them. A batch goes once all of its inputs ended long ago; mapping the same
    inputs then runs them again. Runs that wait or are running are kept.

    \b
    Examples:
      llm-do runs prune --older-than 90d --dry-run
      llm-do runs prune --older-than 2026-09-01
    """
    from llm_do.cli.actions.records import stored_runs as runs

    return runs.print_from_store(
        where,
        lambda store: runs.prune_runs(store, before, dry_run=dry_run),
        title=True,
    )
