"""`llm-do tools`: what the models of a project's agents see, with schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import agents_here
from llm_do.cli.arguments.project_first import ProjectFirst

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=ProjectFirst)
def tools(
    *,
    project: p.Project = None,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT", help="One agent; by default all.", show_default=False, autocompletion=agents_here
        ),
    ] = None,
    named: p.OfProject = None,
    form: Annotated[
        Literal["text", "json"],
        typer.Option("--format", help="Text, or JSON with the full schemas."),
    ] = "text",
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Ask MCP servers for their tools first, and remember them for other commands."),
    ] = False,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """List the tools that an agent's model sees.

    \b
    Examples:
      llm-do tools
      llm-do tools examples/calculator explainer
      llm-do tools analyst --format json
      llm-do tools --connect
    """
    import json

    from llm_do._startup.process import hasten_reading
    from llm_do.cli.actions.link_report import show
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout

    results = claim_stdout()
    hasten_reading()
    path = project_at(project, named)
    from llm_do.cli.actions.admission import admit

    admission = admit(path, trust=trust, connects=connect, env_file=env_file, no_color=no_color)
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.ui.reports.tool_list import tool_lines

    failed = _connect(path, seconds, env_file) if connect and admission.open else False
    found = check_in_subprocess(
        path, "llm_do.ui.reports.tool_list:tools_data", {"agent": agent}, seconds=seconds, env_file=env_file
    )
    admission.say(found.left_out)
    if found.data is None:
        show(found, no_color=no_color)
        return 3
    if form == "json":
        data = {**found.data, **admission.as_data(found.left_out)}
        results.write(json.dumps(data, indent=2) + "\n")
    else:
        unread = found.left_out.names if found.left_out is not None else None
        results.write_lines(tool_lines(found.data, width=results.columns, unread=unread))
    return 1 if failed else 0


def _connect(path: Path, seconds: float, env_file: str | None) -> bool:
    """Ask the project's servers, and report those that don't answer; returns whether there are any."""
    from llm_do.cli.process.streams import warn
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.text.sanitizer import sanitize

    task = "llm_do.ui.reports.server_listing:connect_servers"
    asked = check_in_subprocess(path, task, seconds=seconds, env_file=env_file)
    failed = False
    answers: dict[str, dict[str, Any]] = asked.data or {}
    for name, answer in answers.items():
        if "fault" in answer:
            failed = True
            warn(sanitize(f"error: {name}: {' '.join(answer['fault'].split())}"))
        for tool, reason in answer.get("left_out", {}).items():
            warn(sanitize(f"warning: {name}: {tool} is left out, {reason}"))
    return failed
