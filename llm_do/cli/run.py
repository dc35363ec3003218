"""`llm-do run`: its options. What they lead to is in `llm_do.cli.running`, imported when they are complete."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do.cli import parameters as p
from llm_do.cli.lean import LeanCommand
from llm_do.cli.options import RunOptions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Output = Literal["text", "json", "events"]


@app.command(cls=LeanCommand)
def run(
    project: Annotated[
        str | None,
        typer.Argument(
            metavar="PROJECT",
            help="Folder, manifest or .agent file; by default the project of the current folder. "
            "There, an argument that is none of these is the prompt.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="The input, as text.", show_default=False)
    ] = None,
    input_json: Annotated[
        str | None, typer.Option("--input-json", metavar="JSON", help="The input, as a JSON object or string.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME=VALUE", help="One field of the input; repeatable."),
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option("--attach", metavar="FILE", help="A file to go with the input, - for stdin; repeatable."),
    ] = None,
    named: p.OfProject = None,
    entry: p.Entry = None,
    model: p.Models = None,
    approve_all: p.ApproveAll = False,
    reject_all: p.RejectAll = False,
    allow: p.Allow = None,
    deny: p.Deny = None,
    thread: p.Thread = None,
    user: p.User = None,
    no_record: p.NoRecord = False,
    otel: p.Otel = False,
    max_depth: p.MaxDepth = None,
    max_steps: p.MaxSteps = None,
    budget_usd: p.BudgetUsd = None,
    timeout: p.Timeout = None,
    output: Annotated[
        Output, typer.Option("--output", help="The result as text or JSON, or events as JSON lines, live.")
    ] = "text",
    verbose: p.Verbose = 0,
    quiet: p.Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Link and resolve, and show what would run.")] = False,
    debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Run a project: its entry, with the input given here, on stdin, or in the manifest.

    The result goes to stdout, everything else to stderr. A tool call that needs approval is asked about on a terminal;
    without one it is denied, and the exit code is 4.

    \b
    Examples:
      llm-do run examples/greeter "Good morning"
      llm-do run report.agent < notes.txt
      llm-do run . --field city=Oslo --output json
      llm-do run . "Clean up" --allow 'delete_file(tmp/**)' --budget-usd 0.50
    """
    options = RunOptions(
        project=project,
        prompt=prompt,
        named=named,
        input_json=input_json,
        fields=tuple(field or ()),
        attach=tuple(attach or ()),
        entry=entry,
        models=tuple(model or ()),
        approve_all=approve_all,
        reject_all=reject_all,
        allow=tuple(allow or ()),
        deny=tuple(deny or ()),
        thread=thread,
        user=user,
        no_record=no_record,
        otel=otel,
        max_depth=max_depth,
        max_steps=max_steps,
        budget_usd=budget_usd,
        timeout=timeout,
        output=output,
        verbosity=-1 if quiet else verbose,
        dry_run=dry_run,
        debug=debug,
        no_color=no_color,
    )
    from llm_do.cli.running import start

    return start(options)
