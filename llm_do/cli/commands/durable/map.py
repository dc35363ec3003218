"""`llm-do map`: its help. What it does is in `llm_do.cli.actions.batches.map_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.batch_options import with_batch_options
from llm_do.cli.arguments.completions import agents_here, batches_here
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.run_options import CommandOptions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("map", cls=ProjectFirst)
@with_batch_options
def map_inputs(
    options: CommandOptions,
    project: p.Project = None,
    entry: Annotated[
        str | None,
        typer.Argument(
            metavar="ENTRY",
            help="An agent, flow or function of the project, instead of its entry.",
            show_default=False,
            autocompletion=agents_here,
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The inputs, one on each line: a JSON object, or a JSON string. By default stdin, as with -.",
            show_default=False,
        ),
    ] = None,
    named_entry: Annotated[
        str | None, typer.Option("--entry", "--agent", metavar="NAME", help="The same as ENTRY.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", metavar="N", min=1, help="Runs at once; 20 by default.")
    ] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(
            "--budget-usd",
            metavar="USD",
            min=0.0,
            help="US dollars that all inputs together may cost; needs --budget-each-usd.",
        ),
    ] = None,
    budget_each_usd: Annotated[
        float | None,
        typer.Option("--budget-each-usd", metavar="USD", min=0.0, help="US dollars that each input may cost."),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="ID",
            help="The batch's id; by default the same for the same file and entry.",
            autocompletion=batches_here,
        ),
    ] = None,
    retry: Annotated[
        Literal["failed"] | None, typer.Option("--retry", help="Run the inputs again that have failed.")
    ] = None,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach", help="Only put the inputs on the queue; `llm-do worker` carries them out on any machine."
        ),
    ] = False,
    in_flight: Annotated[
        Literal["repeat", "done", "fail"] | None,
        typer.Option(
            "--in-flight",
            help="What becomes of calls that were running when a run was stopped: run them again, or tell the model"
            " that they were carried out, or that it isn't known.",
        ),
    ] = None,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="Continue though the project's files or the models have changed."),
    ] = False,
) -> int:
    """Run an entry on many inputs, several at once.

    Each input is a durable run. Results are printed as lines of JSON in the order of the inputs. The same command
    continues after an interruption: inputs that have results aren't run again, and the output is the same in the end.

    \b
    Examples:
      llm-do map . in.jsonl > out.jsonl
      llm-do map classify in.jsonl --concurrency 50 > out.jsonl
      llm-do map . in.jsonl --budget-usd 5 --budget-each-usd 0.05 > out.jsonl
      llm-do map . in.jsonl --retry failed > out.jsonl
      llm-do map . in.jsonl --detach --store postgresql://db/jobs
    """
    from llm_do.cli.actions.batches.map_action import MapOptions, start

    if file is None:  # a single argument is the file
        entry, file = None, entry
    return start(
        MapOptions(
            project,
            file,
            entry,
            named_entry,
            concurrency,
            budget_usd,
            budget_each_usd,
            batch,
            retry is not None,
            in_flight,
            accept_changes,
            detach,
        ),
        options,
    )
