"""`llm-do worker`: its help. What it does is in `llm_do.cli.actions.batches.worker_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.batch_options import with_batch_options
from llm_do.cli.arguments.completions import batches_here
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.run_options import CommandOptions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("worker", cls=ProjectFirst)
@with_batch_options
def worker(
    options: CommandOptions,
    project: p.Project = None,
    concurrency: Annotated[int, typer.Option("--concurrency", metavar="N", min=1, help="Runs at once.")] = 10,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="ID",
            help="Work on this batch only; by default on all of the project.",
            autocompletion=batches_here,
        ),
    ] = None,
    exit_when_empty: Annotated[
        bool, typer.Option("--exit-when-empty", help="End when nothing is left to do, instead of waiting for more.")
    ] = False,
    engine: Annotated[
        Literal["rows", "dbos"],
        typer.Option(
            "--engine", help="What hands out the runs: the store's own rows, or DBOS, with limits over all workers."
        ),
    ] = "rows",
    total: Annotated[
        int | None,
        typer.Option("--total", metavar="N", min=1, help="Runs at once in all workers; with --engine dbos."),
    ] = None,
    per_minute: Annotated[
        int | None,
        typer.Option("--per-minute", metavar="N", min=1, help="Runs that begin within a minute; with --engine dbos."),
    ] = None,
) -> int:
    """Run the inputs that are on the queue, alongside other workers.

    Inputs are put there by `llm-do map`, which prints the results, or by `llm-do map --detach`. Workers that share a
    store share the work, on as many machines as have the project; what one leaves, another continues. SIGTERM and
    Ctrl-C let requests and calls that are running end, for 30 seconds at most; a second one ends the process at once.

    \b
    Examples:
      llm-do worker --store postgresql://db/jobs
      llm-do worker . --concurrency 50 --batch receipts --exit-when-empty
      llm-do worker --store postgresql://db/jobs --engine dbos --total 40 --per-minute 600
    """
    from llm_do.cli.actions.batches.worker_action import EngineOptions, WorkerOptions, start

    carrier = EngineOptions(engine, total, per_minute)
    return start(WorkerOptions(project, concurrency, batch, exit_when_empty, carrier), options)
