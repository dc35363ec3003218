"""`llm-do run`: its options. What they lead to is in `llm_do.cli.running`, imported when they are complete."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

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
    entry: Annotated[
        str | None,
        typer.Option("--entry", "--agent", metavar="NAME", help="Run another agent, flow or function of the project."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="[NAME=]MODEL", help="The model of every agent, or of the one named; repeatable."
        ),
    ] = None,
    approve_all: Annotated[
        bool, typer.Option("--approve-all", help="Allow every call that would be asked about.")
    ] = False,
    reject_all: Annotated[
        bool, typer.Option("--reject-all", help="Deny every call that would be asked about.")
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="PATTERN", help="Allow matching calls without asking; repeatable."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", metavar="PATTERN", help="Deny matching calls, whatever else is said; repeatable."),
    ] = None,
    max_depth: Annotated[int | None, typer.Option("--max-depth", min=1, help="Deepest nested call.")] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, help="Model requests in one agent's run.")
    ] = None,
    budget_usd: Annotated[
        float | None, typer.Option("--budget-usd", min=0.0, help="US dollars that the whole run may cost.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.001, help="Seconds that the whole run may take.")
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", help="The result as text or JSON, or events as JSON lines, live.")
    ] = "text",
    verbose: Annotated[
        int,
        typer.Option(
            "-v", "--verbose", count=True, help="Say on stderr what happens; -vv also streams text.", show_default=False
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Nothing but errors on stderr.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Link and resolve, and show what would run.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
) -> int:
    """Run a project: its entry, with the input given here, on stdin, or in the manifest."""
    options = RunOptions(
        project=project,
        prompt=prompt,
        input_json=input_json,
        fields=tuple(field or ()),
        attach=tuple(attach or ()),
        entry=entry,
        models=tuple(model or ()),
        approve_all=approve_all,
        reject_all=reject_all,
        allow=tuple(allow or ()),
        deny=tuple(deny or ()),
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
