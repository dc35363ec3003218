"""`llm-do chat`: its options. The conversation itself is in `llm_do.cli.chatting`, imported when they are complete."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do.cli import parameters as p
from llm_do.cli.lean import LeanCommand
from llm_do.cli.options import RunOptions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def chat(
    project: Annotated[
        str | None,
        typer.Argument(
            metavar="PROJECT",
            help="Folder, manifest or .agent file; by default the project of the current folder. "
            "There, an argument that is none of these is the first thing you say.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="The first thing you say.", show_default=False)
    ] = None,
    last: Annotated[bool, typer.Option("--continue", help="Go on with the conversation that was used last.")] = False,
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
    verbose: p.Verbose = 0,
    quiet: p.Quiet = False,
    debug: p.Debug = False,
    no_color: p.NoColor = False,
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
    options = RunOptions(
        project=project,
        prompt=prompt,
        named=named,
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
        verbosity=-1 if quiet else verbose,
        debug=debug,
        no_color=no_color,
    )
    from llm_do.cli.chatting import start

    return start(options, last=last)
