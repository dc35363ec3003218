"""`llm-do models`: which models could be used here and now, and getting the weights of the local one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.plain_commands import LeanCommand

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def models(
    action: Annotated[
        Literal["list", "pull"],
        typer.Argument(metavar="list|pull", help="Show the models at hand, or get the weights of the local one."),
    ] = "list",
    everything: Annotated[bool, typer.Option("--all", help="List also what can't be used, and why.")] = False,
    _debug: p.Debug = False,
) -> int:
    """List the models at hand, or get the local one.

    \b
    Examples:
      llm-do models
      llm-do models --all
      llm-do models pull
    """
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    if action == "pull":
        from llm_do.models.builtin import weights

        results.write(f"{weights.pull_weights(warn)}\n")
        return 0
    from llm_do.models.catalog import available_models

    found = available_models()
    shown = [info for info in found if everything or info.usable or info.name == "local"]
    widest = max((len(info.name) for info in shown), default=0)
    notes = [info.note if info.usable else f"not at hand: {info.note}" for info in shown]
    results.write_lines(f"{info.name:<{widest}}  {said}".rstrip() for info, said in zip(shown, notes, strict=True))
    hidden = len(found) - len(shown)
    if hidden:
        warn(f"{hidden} more can't be used here; --all says why")
    return 0
