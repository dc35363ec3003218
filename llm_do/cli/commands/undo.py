"""`llm-do undo`: its help. What it does is in `llm_do.cli.actions.undo.undo_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import undoable_here
from llm_do.cli.arguments.project_first import ProjectFirst

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=ProjectFirst)
def undo(
    *,
    project: p.Project = None,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID",
            help="The run's id, that of an undo, or a prefix of it; by default the last run that changed files.",
            show_default=False,
            autocompletion=undoable_here,
        ),
    ] = None,
    named: p.OfProject = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Only files that the glob matches, such as 'docs/**'; with ! in front of it, only others. Repeatable.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, with a diff, and change nothing.")
    ] = False,
    form: p.Form = "text",
    trust: p.Trust = False,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Restore the files that a run's tools changed.

    Files, links and folders become what they were before the run. Nothing is undone if one of them has changed since:
    each is listed, and --path selects the others. On a terminal, a diff is shown first. Commands and other calls with
    effects of their own can't be undone; they are listed. An undo can be undone by its id.

    \b
    Examples:
      llm-do undo
      llm-do undo 5f3c --path 'docs/**' --path '!docs/index.md'
      llm-do undo --dry-run
      llm-do undo examples/desk --yes --format json
    """
    from llm_do.cli.actions.undo.undo_action import UndoOptions, carry_out

    options = UndoOptions(
        run,
        tuple(path or ()),
        yes=yes,
        dry_run=dry_run,
        as_json=form == "json",
        trust=trust,
        no_color=no_color,
    )
    return carry_out(project, named, options)
