"""`llm-do run`: its help. What it does is in `llm_do.cli.actions.run_action`, imported when it runs."""

from __future__ import annotations

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments.run_options import CommandOptions, with_run_options

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
@with_run_options(prompt="The input, as text.", alone="the prompt")
def run(options: CommandOptions) -> int:
    """Run a project's entry, with input from the command line, stdin, or the manifest.

    The result goes to stdout, everything else to stderr. On a terminal you are asked to approve tool calls that need
    it; without a terminal they are denied, and the exit code is 4.

    \b
    Examples:
      llm-do run examples/greeter "Good morning"
      llm-do run report.agent < notes.txt
      llm-do run . --field city=Oslo --format json
      llm-do run . "Clean up" --allow 'delete_file(tmp/**)' --budget-usd 0.50
    """
    from llm_do.cli.actions.run_action import start

    return start(options)
