"""`llm-do resume`: its help. What it does is in `llm_do.cli.actions.durable.resume_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import runs_here
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.run_options import InputOptions, OutputOptions, SessionOptions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=ProjectFirst)
def resume(
    *,
    project: p.Project = None,
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN_ID",
            help="The run's id or a prefix of it.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ],
    named: p.OfProject = None,
    in_flight: Annotated[
        Literal["repeat", "done", "fail"] | None,
        typer.Option(
            "--in-flight",
            help="What becomes of calls that were running: run them again, or tell the model that they were carried"
            " out, or that it isn't known.",
        ),
    ] = None,
    store: p.Store = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Continue though the project's files have changed.")
    ] = False,
    as_begun: Annotated[
        bool,
        typer.Option(
            "--as-begun", help="Continue with the project's files as the run began with them, which are kept with it."
        ),
    ] = False,
    approve_all: Annotated[bool, typer.Option("--approve-all", help="Allow every call that needs approval.")] = False,
    reject_all: Annotated[bool, typer.Option("--reject-all", help="Deny every call that needs approval.")] = False,
    output: Annotated[
        Literal["text", "json", "events"],
        typer.Option("--format", help="Print the result as text or JSON, or events as JSON lines as they happen."),
    ] = "text",
    verbose: Annotated[
        int,
        typer.Option(
            "-v", "--verbose", count=True, help="Show progress on stderr; -vv also streams text.", show_default=False
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Show only errors on stderr.")] = False,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Continue a durable run where it stopped: what it has done isn't done again.

    Models, limits and patterns are those that the run began with. Rules are the project's current ones; with
    --as-begun they are those that it began with, and current rules that deny still hold. A run that has ended prints
    the result that it ended with.

    \b
    Examples:
      llm-do run . --durable "Audit the accounts"
      llm-do resume 7f3a91
      llm-do resume 7f3a91 --in-flight repeat
      llm-do resume 7f3a91 --as-begun
    """
    from llm_do.cli.actions.durable.resume_action import ResumeOptions, start

    return start(
        ResumeOptions(run, in_flight, accept_changes, as_begun),
        InputOptions(named=named or project, trust=trust),
        SessionOptions(
            {} if env_file is None else {"env_file": env_file},
            approve_all=approve_all,
            reject_all=reject_all,
            store=store,
        ),
        OutputOptions(output, verbose, quiet, debug, no_color),
    )
