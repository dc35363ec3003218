"""`llm-do mcp`: its help. What it does is in `llm_do.cli.actions.serving.mcp_action`, imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import TIME, LeanCommand, time_parser
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import agents_here, models_here
from llm_do.cli.arguments.run_options import InputOptions, OutputOptions, SessionOptions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def mcp(
    *,
    project: p.Project = None,
    named: p.OfProject = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Offer this agent, flow or function alone; repeatable.",
            autocompletion=agents_here,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="[NAME=]MODEL",
            help="The model of every agent, or of the one named; repeatable.",
            autocompletion=models_here,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="PATTERN", help="Allow calls that match these patterns without asking; repeatable."
        ),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(
            "--deny",
            metavar="PATTERN",
            help="Deny calls that match these patterns, whatever else allows them; repeatable.",
        ),
    ] = None,
    approve_all: Annotated[bool, typer.Option("--approve-all", help="Allow every call that needs approval.")] = False,
    reject_all: Annotated[bool, typer.Option("--reject-all", help="Deny every call that needs approval.")] = False,
    budget_usd: Annotated[
        float | None, typer.Option("--budget-usd", metavar="USD", min=0.0, help="US dollars that one call may cost.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar=TIME,
            parser=time_parser(0.001),
            help="Seconds that one call may take, or a time such as 5m or 1h30m.",
        ),
    ] = None,
    store: p.Store = None,
    env_file: p.EnvFile = None,
    no_record: Annotated[bool, typer.Option("--no-record", help="Keep nothing of the runs on disk.")] = False,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Show progress on stderr.", show_default=False)
    ] = 0,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Show only errors on stderr.")] = False,
    debug: p.Debug = False,
) -> int:
    """Serve a project's agents and flows to an MCP client.

    The client starts the command; docs/mcp.md has its configuration. Each call is a run. A client that can show forms
    is asked to approve tool calls that need it; with any other they are denied.

    \b
    Examples:
      llm-do mcp
      llm-do mcp examples/receipts --only receipts
      llm-do mcp . --allow 'write_file(out/**)' --timeout 5m
    """
    from llm_do.cli.actions.serving.mcp_action import start

    shared = {"allow": allow, "deny": deny, "run_timeout": timeout, "env_file": env_file}
    session = SessionOptions(
        {name: value for name, value in shared.items() if value},  # type: ignore[arg-type]
        tuple(model or ()),
        approve_all=approve_all,
        reject_all=reject_all,
        budget_usd=budget_usd,
        no_record=no_record,
        store=store,
    )
    output = OutputOptions("text", verbose, quiet, debug, no_color=True)
    return start(InputOptions(project=project, named=named), session, output, tuple(only or ()))
