"""`llm-do chat`: its help. The conversation itself is elsewhere.

It is in `llm_do.cli.actions.chat_session`, imported when the options are complete.
"""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do.cli.arguments.plain_commands import LeanCommand
from llm_do.cli.arguments.run_options import CommandOptions, with_run_options

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
@with_run_options(prompt="The first thing you say.", alone="the first thing you say")
def chat(
    options: CommandOptions,
    last: Annotated[bool, typer.Option("--continue", help="Go on with the conversation that was used last.")] = False,
) -> int:
    """Talk with a project over several turns; it remembers. Lines from a pipe are one turn each.

    On a terminal, Alt-Enter or a backslash at the end of a line begins another line, /help lists the commands,
    @FILE attaches a file. Ctrl-C stops a turn, twice leaves; Ctrl-D leaves.

    \b
    Examples:
      llm-do chat examples/support_desk
      llm-do chat --continue
      printf 'My name is Ann.\\nWhat is my name?\\n' | llm-do chat assistant.agent
    """
    from llm_do.cli.actions.chat_session import start

    return start(options, last=last)
