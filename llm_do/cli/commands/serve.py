"""`llm-do serve`: its help. What it does is in `llm_do.cli.actions.serving.serve_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def serve(
    projects: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROJECT", help="Projects; by default that of the current folder.", show_default=False),
    ] = None,
    *,
    named: p.OfProject = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 7878,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Don't open a browser.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Also answer for this host name; repeatable.", show_default=False
        ),
    ] = None,
    store: p.Store = None,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    _debug: p.Debug = False,
) -> int:
    """Show and start runs in a browser, and serve an HTTP interface.

    The page lists runs and shows them while they last, whichever process makes them. It starts runs, continues
    conversations, answers questions, also those of durable runs that wait with nothing running, and ends runs. The
    server listens on this machine only. Whoever has the address that it prints, which contains a key, may do what you
    may do.

    \b
    Examples:
      llm-do serve
      llm-do serve examples/approvals examples/newsroom --port 0 --no-browser
      llm-do serve . --store runs.db
    """
    from llm_do.cli.actions.serving.serve_action import serve_projects

    return serve_projects(
        projects or [],
        named,
        port=port,
        open_browser=not no_browser,
        hosts=allow_host or [],
        trust=trust,
        store=store,
        env_file=env_file,
    )
