"""`llm-do chat`: its help. What it does is in `llm_do.cli.actions.chat.chat_session`, imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments.run_options import CommandOptions, with_run_options

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
@with_run_options(prompt="Your first message.", alone="your first message")
def chat(
    options: CommandOptions,
    last: Annotated[bool, typer.Option("--continue", help="Continue the most recent conversation.")] = False,
) -> int:
    """Chat with a project over several turns. From a pipe, each line is a turn.

    On a terminal, Alt-Enter or a backslash at the end of a line starts a new line, /help lists the commands, and
    @FILE attaches a file. Ctrl-C stops a turn; Ctrl-C twice or Ctrl-D ends the conversation.

    \b
    Examples:
      llm-do chat examples/support_desk
      llm-do chat --continue
      printf 'My name is Ann.\\nWhat is my name?\\n' | llm-do chat assistant.agent
    """
    from llm_do.cli.actions.chat.chat_session import start

    return start(options, last=last)
